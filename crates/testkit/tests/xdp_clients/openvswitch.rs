use nix::sys::signal::Signal;
use testkit::openvswitch::Switch;
use testkit::{Hosts, Launch};

const BYTES: u64 = 100_000_000;

/// Mounts a file system for BPF objects, so that libxdp uses its dispatcher.
const WITH_BPFFS: [&str; 7] = [
    "unshare",
    "--mount",
    "--propagation=private",
    "sh",
    "-ec",
    "mount -t bpf bpf /sys/fs/bpf; exec \"$@\"",
    "with-bpffs",
];

fn start(hosts: &Hosts, launch: &Launch) -> Switch {
    let mut switch = Switch::start(&hosts.switch, launch);
    switch.add_bridge("br0");
    switch.add_port("br0", "p1", &[]);
    switch.add_port("br0", "p2", &[]);
    switch
}

#[test]
fn root_open_vswitch_forwards_between_two_hosts() {
    let hosts = Hosts::new();
    let mut switch = start(&hosts, &Launch::default());
    hosts.await_path(|| switch.log());
    let trips = hosts.ping(100);
    assert_eq!(trips.answers, 100, "{trips:?}");
    let elapsed = hosts.stream(BYTES);
    println!("{trips:?}; {BYTES} bytes in {elapsed:?}");
    switch.assert_running();
}
