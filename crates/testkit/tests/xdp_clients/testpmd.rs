use testkit::testpmd::Testpmd;
use testkit::{Hosts, Launch};

const BYTES: u64 = 100_000_000;

#[test]
fn root_testpmd_forwards_between_two_hosts() {
    let hosts = Hosts::new();
    let testpmd = Testpmd::start(&hosts.switch, ["p1", "p2"], "io", &Launch::default());
    hosts.await_path(|| testpmd.log());
    let trips = hosts.ping(100);
    assert_eq!(trips.answers, 100, "{trips:?}");
    let elapsed = hosts.stream(BYTES);
    let counters = testpmd.finish();
    println!("{trips:?}; {BYTES} bytes in {elapsed:?}; {counters:?}");
    let [a, b] = counters;
    // 1500 bytes without the headers of IPv4 and TCP.
    let segments = BYTES / 1460;
    assert!(a.received >= segments && b.sent >= segments, "{counters:?}");
    assert!(b.sent <= a.received && a.sent <= b.received, "{counters:?}");
}
