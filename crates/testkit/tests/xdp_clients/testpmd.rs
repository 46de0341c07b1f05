use testkit::testpmd::Testpmd;
use testkit::{Hosts, Launch};

const BYTES: u64 = 100_000_000;

#[test]
fn root_testpmd_forwards_between_two_hosts() {
    let hosts = Hosts::new();
    let testpmd = Testpmd::start(&hosts.switch, ["p1", "p2"], &[], &Launch::default());
    hosts.await_path(|| testpmd.log());
    let trips = hosts.ping(100);
    assert_eq!(trips.answers, 100, "{trips:?}");
    let elapsed = hosts.stream(BYTES);
    let counters = testpmd.finish();
    println!("{trips:?}; {BYTES} bytes in {elapsed:?}; {counters:?}");
    let [a, b] = counters;
    assert!(a.received > BYTES / 1460, "{counters:?}");
    assert_eq!((a.sent, b.sent), (b.received, a.received));
}
