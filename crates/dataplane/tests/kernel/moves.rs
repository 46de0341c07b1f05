//! Traffic while its policy moves.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dataplane::{Headend, KernelSeg6};
use model::Color;
use netlink::Namespace;

use crate::bed::{INNER_MTU, forwarded, policy, up};

/// Moves the policy onto b, onto a and away, repeatedly.
fn move_often(host: &Namespace) {
    const MOVES: u32 = 100;
    let mut plane = KernelSeg6::within(host, INNER_MTU).unwrap();
    for number in 0..MOVES {
        match number % 4 {
            0 | 2 => plane.install(&policy('b')).unwrap(),
            1 => plane.install(&policy('a')).unwrap(),
            _ => plane.remove(Color(7001)).unwrap(),
        }
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn root_moving_a_flow_of_datagrams_loses_none() {
    let net = up();
    for to in ["10.9.0.1:7000", "[fd00:9::1]:7000"] {
        let to: SocketAddr = to.parse().unwrap();
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let receiver = net.server.run(|| UdpSocket::bind(to).unwrap()).unwrap();
        receiver.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let sender = net.host.run(|| UdpSocket::bind(any).unwrap()).unwrap();
        // Connected: the socket caches its route and must notice its changes.
        sender.connect(to).unwrap();
        let before = [forwarded(&net.a), forwarded(&net.b)];
        let stop = AtomicBool::new(false);
        let (mut received, sent) = thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                let (mut numbers, mut buffer) = (Vec::new(), [0; 8]);
                while let Ok(8) = receiver.recv(&mut buffer) {
                    numbers.push(u64::from_be_bytes(buffer));
                }
                numbers
            });
            let sending = scope.spawn(|| {
                let mut number = 0u64;
                while !stop.load(Ordering::Relaxed) {
                    sender.send(&number.to_be_bytes()).unwrap();
                    number += 1;
                    thread::sleep(Duration::from_micros(100));
                }
                number
            });
            let stop = StopOnDrop(&stop);
            move_often(&net.host);
            drop(stop);
            (receiving.join().unwrap(), sending.join().unwrap())
        });
        // Packets on two paths may be reordered, but none may be lost or duplicated.
        received.sort_unstable();
        let missing: Vec<_> = (0..sent).filter(|n| received.binary_search(n).is_err()).collect();
        assert!(missing.is_empty(), "{to}: {missing:?} of {sent} are missing");
        assert_eq!(received.len() as u64, sent);
        let over = [forwarded(&net.a) - before[0], forwarded(&net.b) - before[1]];
        assert!(over.iter().all(|count| *count > sent / 10), "{over:?} of {sent}");
    }
}

/// Sets the flag when dropped, including on panic.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn root_an_established_connection_moves() {
    let net = up();
    for to in ["10.9.0.1:7000", "[fd00:9::1]:7000"] {
        let to: SocketAddr = to.parse().unwrap();
        let listener = net.server.run(|| TcpListener::bind(to).unwrap()).unwrap();
        let mut stream = net.host.run(|| TcpStream::connect(to).unwrap()).unwrap();
        let mut accepted = listener.accept().unwrap().0;
        let mut plane = KernelSeg6::within(&net.host, INNER_MTU).unwrap();
        let stop = AtomicBool::new(false);
        let (read, written) = thread::scope(|scope| {
            let reading = scope.spawn(|| {
                let (mut buffer, mut total) = ([0; 65536], 0);
                loop {
                    match accepted.read(&mut buffer).unwrap() {
                        0 => return total,
                        count => total += count,
                    }
                }
            });
            let writing = scope.spawn(|| {
                let mut total = 0;
                while !stop.load(Ordering::Relaxed) {
                    stream.write_all(&[7; 20_000]).unwrap();
                    total += 20_000;
                    thread::sleep(Duration::from_millis(1));
                }
                stream.shutdown(std::net::Shutdown::Write).unwrap();
                total
            });
            // A failed assertion must also stop the writer, or the scope would wait for it.
            let _stop = StopOnDrop(&stop);
            for (letter, on, off) in [('b', &net.b, &net.a), ('a', &net.a, &net.b)] {
                plane.install(&policy(letter)).unwrap();
                thread::sleep(Duration::from_millis(50));
                let before = [forwarded(on), forwarded(off)];
                let end = Instant::now() + Duration::from_secs(10);
                while forwarded(on) - before[0] < 100 {
                    assert!(Instant::now() < end, "{to}: nothing moves onto {letter}");
                    thread::sleep(Duration::from_millis(10));
                }
                // Only neighbor discovery may remain on the other path.
                let left = forwarded(off) - before[1];
                assert!(left < 10, "{to}: {left} packets did not move onto {letter}");
            }
            stop.store(true, Ordering::Relaxed);
            (reading.join().unwrap(), writing.join().unwrap())
        });
        assert_eq!(read, written);
        plane.remove(Color(7001)).unwrap();
    }
}
