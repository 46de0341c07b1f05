use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{MsgFlags, setsockopt, sockopt::Linger};

use crate::{ClientLink, Error, Link, Listener, Order, Report, socket};

/// Sends bytes and descriptors over a link.
fn send_raw(link: &Link, bytes: &[u8], files: &[RawFd]) {
    socket::send(link.as_fd(), bytes, files, MsgFlags::empty()).unwrap();
}

/// Creates a link of a new client, with the client's and the daemon's end.
fn link() -> (Link, ClientLink) {
    let (listener, inherited) = Listener::new().unwrap();
    link_of(&listener, &inherited)
}

fn link_of(listener: &Listener, inherited: &OwnedFd) -> (Link, ClientLink) {
    thread::scope(|scope| {
        let client = scope.spawn(|| Link::request(inherited.as_fd()).unwrap());
        assert!(listener.wait().unwrap());
        let (ours, end) = ClientLink::new().unwrap();
        listener.give(&end).unwrap();
        (client.join().unwrap(), ours)
    })
}

#[test]
fn messages_arrive_with_their_descriptors() {
    let (client, ours) = link();
    assert!(client.receive().unwrap().is_none());
    let file = std::fs::File::open("/dev/null").unwrap();
    ours.send(&Order::Count, &[file.as_raw_fd(), file.as_raw_fd()]).unwrap();
    let (order, files) = client.receive().unwrap().unwrap();
    assert_eq!((order, files.len()), (Order::Count, 2));
    client.send(&Report::Closed { socket: 7 }).unwrap();
    assert_eq!(ours.receive().unwrap(), Report::Closed { socket: 7 });
}

#[test]
fn a_request_may_be_refused() {
    let (listener, inherited) = Listener::new().unwrap();
    thread::scope(|scope| {
        let client = scope.spawn(|| Link::request(inherited.as_fd()));
        assert!(listener.wait().unwrap());
        listener.refuse().unwrap();
        assert!(matches!(client.join().unwrap(), Err(Error::Refused)));
    });
    drop(listener);
    assert!(matches!(Link::request(inherited.as_fd()), Err(Error::Closed)));
}

#[test]
fn a_client_that_does_not_read_blocks_no_one() {
    let (client, ours) = link();
    let sent = (0..100_000).find_map(|_| ours.send(&Order::Count, &[]).err());
    assert!(matches!(sent, Some(Error::Full)), "{sent:?}");
    client.receive().unwrap().unwrap();

    let (listener, inherited) = Listener::new().unwrap();
    let refused = (0..100_000).find_map(|_| listener.refuse().err());
    assert!(matches!(refused, Some(Error::Full)), "{refused:?}");
    let (_ours, end) = ClientLink::new().unwrap();
    assert!(matches!(listener.give(&end), Err(Error::Full)));
    assert!(matches!(Link::request(inherited.as_fd()), Err(Error::Refused)));
}

#[test]
fn each_request_gets_a_link_of_its_own() {
    let (listener, inherited) = Listener::new().unwrap();
    let (clients, links): (Vec<_>, Vec<_>) =
        [(); 2].iter().map(|()| link_of(&listener, &inherited)).unzip();
    for (socket, (client, link)) in (0..).zip(clients.iter().zip(&links)) {
        client.send(&Report::Closed { socket }).unwrap();
        assert_eq!(link.receive().unwrap(), Report::Closed { socket });
    }
    drop(clients);
    for link in &links {
        assert!(matches!(link.receive(), Err(Error::Closed)));
    }
    drop(inherited);
    assert!(!listener.wait().unwrap());
}

#[test]
fn other_bytes_and_descriptors_are_invalid() {
    let (client, ours) = link();
    let file = client.as_fd().as_raw_fd();
    for (bytes, files) in [(&[0xff_u8; 9][..], 0), (&[4, 0], 0), (&[2, 7], 1), (&[2, 7], 3)] {
        send_raw(&client, bytes, &vec![file; files]);
        let received = ours.receive();
        assert!(matches!(received, Err(Error::Invalid)), "{bytes:?}: {received:?}");
    }
    let (listener, inherited) = Listener::new().unwrap();
    socket::send(inherited.as_fd(), &[0], &[file], MsgFlags::empty()).unwrap();
    assert!(matches!(listener.wait(), Err(Error::Invalid)));
}

/// A TCP socket whose close waits for its peer, for at most a minute, and the peer.
fn lingering() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (peer, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    while socket.write(&[0; 1 << 16]).is_ok() {}
    setsockopt(&socket, Linger, &libc::linger { l_onoff: 1, l_linger: 60 }).unwrap();
    (socket, peer)
}

#[test]
fn descriptors_of_a_client_block_its_own_reader_alone() {
    let (client, ours) = link();
    let (socket, peer) = lingering();
    // Two in a message, so that the reader closes them, and one that is left in the queue.
    let report = socket::encode(&Report::Closed { socket: 7 }).unwrap();
    for _ in 0..2 {
        send_raw(&client, &report, &[socket.as_raw_fd()]);
    }
    drop(socket);
    let begin = Instant::now();
    let link = Arc::new(ours);
    let (done, is_closed) = channel();
    let its = Arc::clone(&link);
    let reader = thread::spawn(move || {
        assert!(matches!(its.receive(), Err(Error::Invalid)));
        ClientLink::close_last(its);
        done.send(()).unwrap();
    });
    // The daemon's thread does not wait for the reader.
    let _ = link.send(&Order::Count, &[]);
    link.close();
    drop(link);
    assert!(is_closed.recv_timeout(Duration::from_millis(500)).is_err(), "nothing has blocked");
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    drop(peer);
    is_closed.recv_timeout(Duration::from_secs(20)).unwrap();
    reader.join().unwrap();
}
