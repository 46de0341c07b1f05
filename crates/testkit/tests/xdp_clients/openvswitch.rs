use nix::sys::signal::Signal;
use testkit::openvswitch::Switch;
use testkit::{Hosts, Launch, Said};

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

#[test]
fn root_open_vswitch_restarts_through_a_wrapper() {
    let hosts = Hosts::new();
    let plain = Launch::default().with("LIBXDP_SKIP_DISPATCHER", "1");
    let mut switch = start(&hosts, &plain);
    hosts.await_path(|| switch.log());
    let first = switch.pid();

    switch.restart(Signal::SIGKILL, &Launch::through(WITH_BPFFS));
    assert_ne!(switch.pid(), first);
    for port in ["p1", "p2"] {
        switch.await_port(port);
    }
    hosts.await_path(|| switch.log());
    assert_eq!(hosts.ping(20).answers, 20);
    switch.ofctl(&["add-flow", "br0", "priority=100,icmp,actions=drop"]).ok();
    assert!(switch.ofctl(&["dump-flows", "br0"]).ok().contains("priority=100,icmp"));
    let ping = Said::of_words(&hosts.h1, "ping -n -c 3 -i 0.1 -W 1 10.0.0.2");
    assert_eq!(ping.code, Some(1), "{ping}");
    let shown = switch.appctl(&["dpif/show"]).ok();
    assert!(shown.contains("xdp-mode-in-use=native"), "{shown}");
    switch.assert_running();
}

#[test]
#[should_panic(expected = "nowhere (No such device)")]
fn root_a_port_that_cannot_be_is_reported() {
    let hosts = Hosts::new();
    let mut switch = Switch::start(&hosts.switch, &Launch::default());
    switch.add_bridge("br0");
    switch.add_port("br0", "nowhere", &[]);
}
