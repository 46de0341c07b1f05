use testkit::testpmd::Testpmd;

use crate::bed::Bed;

const BYTES: u64 = 20_000_000;

/// DPDK keeps headers of its own in the UMEM, beside the packets.
#[test]
fn root_testpmd_forwards_under_programs() {
    let bed = Bed::new("");
    let testpmd = Testpmd::start(&bed.hosts.switch, ["p1", "p2"], &[], &bed.launch());
    bed.hosts.await_path(|| testpmd.log());
    assert!(bed.hosts.ping(50).answers >= 50, "ping(8) sends more if answers are late");
    println!("{BYTES} bytes in {:?}", bed.hosts.stream(BYTES));
    bed.table(&["add", "filter", "input_port=1", "type=0x0800", "drop()"]);
    let ping = testkit::Said::of_words(&bed.hosts.h1, "ping -n -c 2 -i 0.1 -W 1 10.0.0.2");
    assert_eq!(ping.code, Some(1), "{ping}");
    let counters = testpmd.finish();
    let [a, b] = counters;
    assert!(a.received >= BYTES / 1460 && b.sent <= a.received, "{counters:?}");
}

/// Without `kaido xsk` the library only moves descriptors.
#[test]
fn root_testpmd_forwards_with_the_library_alone() {
    let bed = Bed::new("");
    let launch = testkit::Launch::default().with("LD_PRELOAD", crate::bed::library());
    let testpmd = Testpmd::start(&bed.hosts.switch, ["p1", "p2"], &[], &launch);
    bed.hosts.await_path(|| testpmd.log());
    println!("{BYTES} bytes in {:?}", bed.hosts.stream(BYTES));
    testpmd.finish();
}
