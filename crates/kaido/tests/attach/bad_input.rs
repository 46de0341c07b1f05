//! Mistakes, after each of which nothing is left.

use std::process::Command;

use testkit::Said;

use crate::bed::Bed;

/// Asserts that the command fails, and that the interface is as before.
#[track_caller]
fn refused(bed: &Bed, arguments: &[&str], code: i32, words: &[&str]) {
    let before = bed.settings();
    bed.run(arguments).failed(code, words);
    assert_eq!(bed.settings(), before);
    assert!(bed.link("p4-p1").is_none());
    let left = std::fs::read_dir(bed.kaido.run_directory().join("xsk")).into_iter().flatten();
    assert_eq!(left.count(), 0);
}

#[test]
fn root_mistakes_of_the_command_line_are_reported() {
    let bed = Bed::new();
    let program = bed.program.as_str();
    let broken = bed.kaido.file("broken.p4", "header h {");
    for (arguments, words) in [
        (&[program, "none0"][..], &["no interface `none0`"][..]),
        (&[program, "lo"], &["`lo` is not an Ethernet interface"]),
        (&[program, "an-interface-of-20-b"], &["cannot name an interface", "up to 15 bytes"]),
        (&[program, "a-name-of-14-b"], &["`p4-a-name-of-14-b` cannot name", "--peer"]),
        (&[program, "p1", "--peer", "p2"], &["there is an interface `p2` already", "--peer"]),
        (&[program, "p1", "--peer", "p1"], &["`p1` would be the name of two interfaces"]),
        (&[program, "p1", "--peer", "x=y"], &["`x` is not a port of a tenant"]),
        (&[program, "p1", "--peer", "a", "--peer", "b"], &["`p1` has two peers"]),
        (&[program, "p1", "--peer", "a", "--to", "p2"], &["`p1` has two peers"]),
        (&[program, "p1", "--to", "p1"], &["`p1` would be the name of two interfaces"]),
        (&[program, "p1", "--to", "none0"], &["no interface `none0`"]),
        (&[program, "p1", "--to", "p2"], &["`p2` is a port of br0", "ip link set dev p2 nomaster"]),
        (&[program, "p1", "--peer", "a/b"], &["`a/b` cannot name the peer of `p1`"]),
        (&[program, "p1", "--tenant", "Red"], &["`Red` cannot name a tenant"]),
        (&[program, "p1", "--name", "a/b"], &["`a/b` cannot name a client"]),
        (&[program, "p1", "--kernel", "x"], &["`--kernel` needs `--isolation vm`"]),
        (&[program, "p1", "--isolation", "vm", "--kernel", "none"], &["kernel none: No such file"]),
        (&[&broken, "p1"], &["broken.p4: 1 error"]),
        (&["none.p4", "p1"], &["none.p4"]),
        (&[program], &["INTERFACE"]),
        (&[], &["PROGRAM"]),
        (&[program, "p1", "--config", "x"], &["cannot be used with"]),
        (&["--config", "x", "--isolation", "inline"], &["cannot be used with"]),
        (&["--config", "none.yaml"], &["none.yaml"]),
    ] {
        refused(&bed, arguments, 2, words);
    }
    let config = bed.tenants("");
    refused(&bed, &["--config", &config, "--peer", "p2=x"], 2, &["`p2` is not a port"]);
    // Of several interfaces, all fail.
    let text = "tenants:\n  blue: {program: filter.p4, ports: {none0: 1, none1: 2}}\n";
    let config = bed.kaido.file("two.yaml", text);
    refused(&bed, &["--config", &config], 2, &["no interface `none0`"]);
    // Generic XDP does not see all packets of a bridge with a veth.
    refused(&bed, &[program, "br0"], 2, &["`br0` is a bridge interface, without native XDP"]);
}

/// The kernel finds interfaces by their alternative names, which no tenant has.
#[test]
fn root_an_alternative_name_is_refused() {
    let bed = Bed::new();
    bed.at_switch("ip link property add dev p1 altname wan0");
    bed.at_switch("ip link property add dev p2 altname lan0");
    let program = bed.program.as_str();
    let text = "tenants:\n  blue: {program: filter.p4, ports: {wan0: 1}}\n";
    let config = bed.kaido.file("tenants.yaml", text);
    let words = ["`wan0` is an alternative name of `p1`", "write `p1`"];
    for arguments in [&[program, "wan0"][..], &["--config", &config]] {
        refused(&bed, arguments, 2, &words);
    }
    refused(&bed, &[program, "p1", "--to", "lan0"], 2, &["`lan0` is an alternative name of `p2`"]);
    refused(&bed, &[program, "p1", "--peer", "lan0"], 2, &["there is an interface `lan0` already"]);
}

#[test]
fn root_an_interface_that_cannot_be_used_is_reported() {
    let bed = Bed::new();
    let attach = [bed.program.as_str(), "p1"];
    bed.at_switch("ip link set p1 mtu 9000");
    let words = ["`p1` has an MTU of 9000, and at most 3498 fits", "ip link set dev p1 mtu 3498"];
    refused(&bed, &attach, 2, &words);
    bed.at_switch("ip link set p1 mtu 3498");
    let h1 = |line: &str| Said::of_words(&bed.hosts.h1, line).ok();
    h1("ip link set eth0 mtu 3498");
    bed.at_switch("ip link set p2 mtu 3498");
    Said::of_words(&bed.hosts.h2, "ip link set eth0 mtu 3498").ok();
    let running = bed.attach(&attach);
    h1("ping -n -c 1 -W 5 -M do -s 3470 10.0.0.2");
    println!("{:?}", bed.hosts.stream(10_000_000));
    // Another one for the same interface.
    let words =
        ["`p1` has an XDP program already, `to_socket` (id ", "end the process that attached it"];
    bed.run(&[&bed.program, "p1", "--name", "other", "--peer", "x"]).failed(2, &words);
    bed.run(&attach).failed(1, &["another client is running as `p1`"]);
    assert!(bed.answers(), "the first one is not affected");
    drop(running);
}

/// Root without CAP_IPC_LOCK has the limit of other users.
#[test]
fn root_too_little_locked_memory_is_reported() {
    let bed = Bed::new();
    let before = bed.settings();
    let mut command = Command::new("prlimit");
    command.args(["--memlock=65536:65536", "setpriv", "--bounding-set=-ipc_lock"]);
    command.args([env!("CARGO_BIN_EXE_kaido"), "p4", "attach", &bed.program, "p1"]);
    command.env("KAIDO_RUN", bed.kaido.run_directory());
    let said = bed.hosts.switch.run(|| Said::run(&mut command)).expect("root enters a namespace");
    said.failed(1, &["`p1`: the kernel locks no 16 MiB for packets: raise RLIMIT_MEMLOCK"]);
    assert_eq!(bed.settings(), before);
    assert!(bed.link("p4-p1").is_none());
}
