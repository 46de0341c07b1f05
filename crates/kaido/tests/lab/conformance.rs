//! Conformance of all link backends: the kernel's own links, the emulator, and netem if the kernel
//! supports it. The packets received are compared with the options.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use netlink::Namespace;
use testkit::feature::NETEM;
use testkit::{Kaido, pause};

use crate::kaido;

const KERNEL: &str = "engine: false";
const EMULATOR: &str = "engine: true";
const WITH_NETEM: &str = "engine: netem";
/// Headers in the layer-2 frame of a datagram.
const HEADERS: usize = 14 + 20 + 8;
/// Receive timeout, after which no more datagrams are expected.
const SILENCE: Duration = Duration::from_millis(500);

/// A datagram that was received.
#[derive(Debug, Clone, Copy)]
struct Arrived {
    number: u64,
    /// One-way delay.
    took: Duration,
    /// Time since the first one was sent.
    at: Duration,
}

/// A stream to send: number of datagrams, payload size and interval.
#[derive(Debug, Clone, Copy)]
struct Sent {
    count: u64,
    bytes: usize,
    gap: Duration,
}

/// Factor by which this machine, for example a VM guest, is slower than others.
fn slower() -> f64 {
    std::env::var("KAIDO_SLOWER").map_or(1.0, |times| times.parse().unwrap())
}

/// Sends a stream over a link with these options on each backend, and passes the datagrams received
/// to `judge`.
fn conform(backends: &[&str], options: &str, sent: Sent, judge: impl Fn(&str, &[Arrived])) {
    for backend in backends {
        if *backend == WITH_NETEM
            && let Err(why) = netlink::try_netem()
        {
            NETEM.is_missing(why);
            continue;
        }
        let kaido = kaido();
        let comma = if options.is_empty() { "" } else { ", " };
        let file = format!(
            "name: two\nseed: 3\nnodes: {{a: {{}}, b: {{}}}}\n\
             links: [a-b: {{{options}{comma}{backend}}}]\n"
        );
        let lab = kaido.lab_up(&file);
        let [a, b] = ["a", "b"].map(|node| namespace(&kaido, node));
        let arrived = stream(&a, &b, sent);
        judge(backend, &arrived);
        lab.down();
    }
}

fn namespace(kaido: &Kaido, node: &str) -> Namespace {
    Namespace::open(kaido.run_directory().join("labs/two/netns").join(node)).unwrap()
}

/// Sends a stream, and returns the datagrams received in order of arrival.
fn stream(a: &Namespace, b: &Namespace, sent: Sent) -> Vec<Arrived> {
    let bind = |address: &str| UdpSocket::bind(address).unwrap();
    let sending = a.run(|| bind("10.0.1.1:0")).unwrap();
    let receiving = b.run(|| bind("10.0.1.2:7000")).unwrap();
    let room = nix::sys::socket::sockopt::RcvBufForce;
    nix::sys::socket::setsockopt(&receiving, room, &(64 << 20)).unwrap();
    sending.connect("10.0.1.2:7000").unwrap();
    receiving.set_read_timeout(Some(SILENCE.mul_f64(slower()))).unwrap();
    find_neighbors(&sending, &receiving);
    let start = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut payload = vec![0; sent.bytes];
            for number in 0..sent.count {
                let due = sent.gap * u32::try_from(number).unwrap();
                pause(due.saturating_sub(start.elapsed()));
                payload[..8].copy_from_slice(&number.to_be_bytes());
                let now = u64::try_from(start.elapsed().as_nanos()).unwrap();
                payload[8..16].copy_from_slice(&now.to_be_bytes());
                // The socket reports an error if a queue is full.
                let _ = sending.send(&payload);
            }
        });
        let mut arrived = Vec::new();
        let mut payload = vec![0; sent.bytes + 1];
        while let Ok(length) = receiving.recv(&mut payload) {
            let at = start.elapsed();
            let word =
                |from: usize| u64::from_be_bytes(payload[from..from + 8].try_into().unwrap());
            if length == sent.bytes && word(0) < sent.count {
                let took = at.saturating_sub(Duration::from_nanos(word(8)));
                arrived.push(Arrived { number: word(0), took, at });
            }
        }
        arrived
    })
}

/// Resolves the neighbors. The link may also lose solicitations and their answers.
fn find_neighbors(sending: &UdpSocket, receiving: &UdpSocket) {
    for _ in 0..100 {
        sending.send(b"hello").unwrap();
        if receiving.recv(&mut [0; 16]).is_ok() {
            while receiving.recv(&mut [0; 16]).is_ok() {}
            return;
        }
    }
    panic!("nothing arrives at all");
}

/// A stream for options that are random for each packet.
fn many() -> Sent {
    let count = (4000.0 / slower().sqrt()) as u64;
    Sent { count, bytes: 100, gap: Duration::from_millis(1) }
}

/// Asserts that `part` of `of` is plausible for a probability of `share`: within five standard
/// deviations, times `burstier`.
#[track_caller]
fn assert_share(backend: &str, part: usize, of: u64, share: f64, burstier: f64) {
    let (found, count) = (part as f64 / of as f64, of as f64);
    let most = 5.0 * burstier * (share * (1.0 - share) / count).sqrt();
    assert!((found - share).abs() < most, "{backend}: {found} of {count} for {share} ± {most}");
}

fn milliseconds(arrived: &[Arrived]) -> Vec<f64> {
    let mut all: Vec<f64> = arrived.iter().map(|one| one.took.as_secs_f64() * 1e3).collect();
    all.sort_by(f64::total_cmp);
    all
}

#[test]
fn root_conformance_without_impairments() {
    conform(&[KERNEL, EMULATOR, WITH_NETEM], "", many(), |backend, arrived| {
        let numbers: Vec<u64> = arrived.iter().map(|one| one.number).collect();
        assert!(numbers.iter().copied().eq(0..many().count), "{backend}: {numbers:?}");
    });
}

/// Before Linux 6.2 a packet socket cannot receive them (`PACKET_VNET_HDR`).
#[test]
fn root_segmented_datagrams_do_not_end_the_emulator() {
    let kaido = kaido();
    let lab = kaido
        .lab_up("name: two\nnodes: {a: {}, b: {}}\nlinks: [a-b: {delay: 1ms, engine: true}]\n");
    let [a, b] = ["a", "b"].map(|node| namespace(&kaido, node));
    let sending = a.run(|| UdpSocket::bind("10.0.1.1:0").unwrap()).unwrap();
    let receiving = b.run(|| UdpSocket::bind("10.0.1.2:7000").unwrap()).unwrap();
    sending.connect("10.0.1.2:7000").unwrap();
    receiving.set_read_timeout(Some(SILENCE.mul_f64(slower()))).unwrap();
    find_neighbors(&sending, &receiving);
    let segment = nix::sys::socket::sockopt::UdpGsoSegment;
    nix::sys::socket::setsockopt(&sending, segment, &500).unwrap();
    for _ in 0..3 {
        sending.send(&[0; 5000]).unwrap();
    }
    find_neighbors(&sending, &receiving);
    assert!(!kaido.ok(&["lab", "ls"]).contains("degraded"));
    lab.down();
}

#[test]
fn root_conformance_of_delays() {
    let options = "delay: 20ms, reverse: {delay: 0ms}";
    conform(&[EMULATOR, WITH_NETEM], options, many(), |backend, arrived| {
        assert_eq!(arrived.len() as u64, many().count, "{backend}");
        let all = milliseconds(arrived);
        let (least, median) = (all[0], all[all.len() / 2]);
        assert!(least >= 20.0 && median < 20.0 + 3.0 * slower(), "{backend}: {least}, {median}");
    });
}

#[test]
fn root_conformance_of_jitter() {
    // Spaced so that no packet waits for another: the emulator preserves their order, netem does
    // not.
    let sent = Sent { count: 150, bytes: 100, gap: Duration::from_millis(40) };
    // Standard deviation and minimum; Pareto's minimum is sharp. netem clamps at four deviations.
    for (shape, deviation, least) in
        [("uniform", 5.77, 90.0..94.0), ("normal", 10.0, 0.0..88.0), ("pareto", 9.0, 94.0..100.0)]
    {
        let options = format!("delay: 100ms, jitter: 10ms {shape}");
        conform(&[EMULATOR, WITH_NETEM], &options, sent, |backend, arrived| {
            let all = milliseconds(arrived);
            let count = all.len() as f64;
            let mean = all.iter().sum::<f64>() / count;
            let square = all.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / count;
            let found = format!("{backend}, {shape}: {mean} ± {}, {}", square.sqrt(), all[0]);
            assert!((96.0..104.0 + 3.0 * slower()).contains(&mean), "{found}");
            // Late wake-ups add to it.
            let spread = square.sqrt() / deviation;
            assert!((0.6..1.3 + 0.1 * slower()).contains(&spread), "{found}");
            assert!((least.start..least.end + 0.5 * slower()).contains(&all[0]), "{found}");
        });
    }
}

#[test]
fn root_conformance_of_loss() {
    conform(&[EMULATOR, WITH_NETEM], "loss: 10%", many(), |backend, arrived| {
        assert_share(backend, arrived.len(), many().count, 0.9, 1.0);
    });
    // Mean burst length of five packets, and 50 between bursts: one of eleven is lost.
    let bursts = "loss: {gilbert-elliott: {p: 2%, r: 20%}}";
    conform(&[EMULATOR, WITH_NETEM], bursts, many(), |backend, arrived| {
        assert_share(backend, arrived.len(), many().count, 10.0 / 11.0, 3.0);
        let came: BTreeSet<u64> = arrived.iter().map(|one| one.number).collect();
        let lost: Vec<u64> = (0..many().count).filter(|number| !came.contains(number)).collect();
        let bursts = lost.iter().filter(|number| came.contains(&(*number + 1))).count();
        let length = lost.len() as f64 / bursts as f64;
        assert!((2.5..10.0).contains(&length), "{backend}: {length} in a row");
    });
}

#[test]
fn root_conformance_of_duplicate_reorder_and_corrupt() {
    conform(&[EMULATOR, WITH_NETEM], "duplicate: 10%", many(), |backend, arrived| {
        let came: BTreeSet<u64> = arrived.iter().map(|one| one.number).collect();
        assert_eq!(came.len() as u64, many().count, "{backend}");
        assert_share(backend, arrived.len() - came.len(), many().count, 0.1, 1.0);
    });
    let delay = Duration::from_millis(200);
    conform(&[EMULATOR, WITH_NETEM], "delay: 200ms, reorder: 10%", many(), |backend, arrived| {
        assert_eq!(arrived.len() as u64, many().count, "{backend}");
        let early = arrived.iter().filter(|one| one.took < delay).count();
        assert_share(backend, early, many().count, 0.1, 1.0);
    });
    // The kernel drops a datagram with a wrong bit, unless the bit is in the MAC addresses or the
    // EtherType.
    conform(&[EMULATOR, WITH_NETEM], "corrupt: 10%", many(), |backend, arrived| {
        assert_share(backend, arrived.len(), many().count, 0.905, 1.2);
    });
}

#[test]
fn root_conformance_of_rates_and_queues() {
    let sent = Sent { count: 300, bytes: 1000, gap: Duration::ZERO };
    let all = [KERNEL, EMULATOR, WITH_NETEM];
    conform(&all, "rate: 10mbit, queue: 400p", sent, |backend, arrived| {
        assert_eq!(arrived.len() as u64, sent.count, "{backend}");
        // A token bucket passes the first twelve immediately.
        let time = arrived[299].at.as_secs_f64();
        let rate = 300.0 * (sent.bytes + HEADERS) as f64 * 8.0 / time / 1e6;
        // A slow machine may not reach the rate.
        assert!((9.0 / slower()..11.0).contains(&rate), "{backend}: {rate} Mbit/s");
    });
    let sent = Sent { count: 200, ..sent };
    conform(&all, "rate: 1mbit, queue: 20p", sent, |backend, arrived| {
        // The kernel's limit is in bytes: 20 full-sized packets equal 29 of these; two more fit the
        // bucket.
        assert!((20..=45).contains(&arrived.len()), "{backend}: {} came", arrived.len());
        let numbers: Vec<u64> = arrived.iter().map(|one| one.number).collect();
        assert!(numbers.is_sorted(), "{backend}: {numbers:?}");
    });
}

#[test]
fn root_netem_is_refused_where_the_kernel_has_none() {
    let kaido = kaido();
    let file = kaido.file(
        "lab.yaml",
        "name: two\nnodes: {a: {}, b: {}}\nlinks: [a-b: {delay: 1ms, engine: netem}]\n",
    );
    match netlink::try_netem() {
        Ok(()) => drop(kaido.lab_up_file(&file, &[])),
        Err(_) => {
            kaido.run(&["lab", "up", &file]).failed(1, &["a-b", "netem", "engine: true"]);
            assert!(kaido.labs().is_empty());
        }
    }
}
