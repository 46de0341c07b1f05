//! Interfaces that are removed and added, restarts of the daemon, and the command.

use testkit::until;

use super::bump::BUMP;
use super::*;
use crate::functions::{expect, ping};
use crate::net::show;

/// Returns true if the SID has its unreachable route, as a routing daemon sees it.
fn has_route(bed: &Bed) -> bool {
    show(&bed.net.node, "-6 route show fd00:1::f:0:1111").starts_with("unreachable")
}

fn action(bed: &Bed) -> String {
    let shown = bed.json();
    let sids = shown["sids"].as_array().unwrap();
    let sid = sids.iter().find(|sid| sid["name"] == "fd00:1::f:0:1111/128").unwrap();
    sid["action"].as_str().unwrap().into()
}

#[track_caller]
fn until_action(bed: &Bed, wanted: &str) {
    let is = || (action(bed) == wanted).then_some(());
    until(Duration::from_secs(10), is, || format!("{} {}", action(bed), bed.net.log()));
}

#[test]
fn root_an_interface_that_is_gone_drops_and_says_so() {
    let mut bed = Bed::bridged();
    // The main table has a route.
    ip(&bed.net.node, &["route add 10.9.0.0/24 via inet6 fd00:b::2 dev r"]);
    bed.start(BUMP);
    expect(&bed.net, "10.9.0.1", true);
    assert!(has_route(&bed));
    ip(&bed.function, &["link set dev a down"]);
    until_action(&bed, "End.AD to f0 (down) back f1");
    let before = bed.dropped("function-down");
    expect(&bed.net, "10.9.0.1", false);
    bed.expect_dropped("function-down", before + 3);
    ip(&bed.function, &["link set dev a up"]);
    until_action(&bed, "End.AD to f0 back f1");
    until(
        Duration::from_secs(10),
        || ping(&bed.net, "10.9.0.1").then_some(()),
        || format!("{:#}", bed.reasons()),
    );
    ip(&bed.net.node, &["link del f1"]);
    until_action(&bed, "End.AD to f0 back f1 (not there)");
    // The operator can still change the file.
    bed.apply(BUMP);
    until_action(&bed, "End.AD to f0 back f1 (not there)");
    expect(&bed.net, "10.9.0.1", false);
    assert!(has_route(&bed));
    // Its software creates it again as an interface without a MAC address.
    ip(&bed.net.node, &["tuntap add dev f1 mode tun"]);
    bed.apply(BUMP);
    until_action(&bed, "End.AD to f0 back f1 (not there)");
    bed.net.kill();
    bed.net.start(&[]);
    until_action(&bed, "End.AD to f0 back f1 (not there)");
    ip(&bed.net.node, &["link del dev f1"]);
    join(&bed.net.node, "f1", &bed.function, "b");
    ip(&bed.net.node, &["link set dev f1 mtu 1700 up"]);
    ip(&bed.function, &["link set dev b mtu 1700 up", "link set dev b master bridge"]);
    until_action(&bed, "End.AD to f0 back f1");
    until(
        Duration::from_secs(10),
        || ping(&bed.net, "10.9.0.1").then_some(()),
        || format!("{:#}", bed.reasons()),
    );
    // Without a daemon to notice it, nothing passes either.
    bed.net.kill();
    ip(&bed.net.node, &["link del f1"]);
    assert!(!ping(&bed.net, "10.9.0.1"));
}

#[test]
fn root_it_goes_on_without_the_daemon_and_with_the_next() {
    let mut bed = Bed::bridged();
    bed.start(BUMP);
    expect(&bed.net, "10.9.0.1", true);
    bed.net.kill();
    expect_without_daemon(&bed);
    bed.net.start(&[]);
    for address in ["10.9.0.1", "fd00:9::1"] {
        expect(&bed.net, address, true);
    }
    bed.net.end();
    expect_without_daemon(&bed);
    bed.net.start(&[]);
    bed.net.kaido.ok(&["dataplane", "detach"]);
    assert!(!ping(&bed.net, "10.9.0.1"));
    assert!(!show(&bed.net.node, "link").contains("kaido-px"));
    assert!(!has_route(&bed));
}

fn expect_without_daemon(bed: &Bed) {
    for address in ["10.9.0.1", "fd00:9::1", "-s 1400 10.9.0.1"] {
        assert!(ping(&bed.net, address), "{address}");
    }
}

#[test]
fn root_a_late_returning_packet_is_accepted_and_then_the_interface_is_released() {
    let mut bed = Bed::routed();
    bed.start(super::routed::ROUTED);
    expect(&bed.net, "10.9.0.1", true);
    assert!(!bed.reaches_node());
    bed.net.apply("ports: { l: {}, r: {} }\n");
    assert!(!show(&bed.net.node, "link").contains("kaido-px"));
    assert!(!bed.reaches_node());
    until(Duration::from_secs(10), || bed.reaches_node().then_some(()), || bed.net.log());
}

#[test]
fn root_a_proxy_is_added_listed_and_removed() {
    let mut bed = Bed::bridged();
    bed.start("");
    let kaido = &bed.net.kaido;
    for (sid, to, back) in [(THERE, "f0", "f1"), (BACK, "f1", "f0")] {
        let add = ["function", "add", sid, "--behavior", "End.AD", "--to", to, "--back", back];
        kaido.ok(&add);
    }
    expect(&bed.net, "10.9.0.1", true);
    let list = kaido.json(&["function", "ls"]);
    assert_eq!(list[0]["action"], "End.AD to f0 back f1");
    assert_eq!((&list[0]["in"], &list[0]["out"]), (&3.into(), &3.into()));
    kaido.ok(&["function", "rm", BACK]);
    expect(&bed.net, "10.9.0.1", false);
    let segments = ["function", "add", BACK, "--behavior", "End.AS", "--to", "f1", "--back", "f0"];
    kaido.run(&segments).failed(2, &["End.AS needs a policy"]);
    kaido.ok(&[&segments[..], &["--segments", "fd00:4::d4"]].concat());
    expect(&bed.net, "10.9.0.1", true);
    for (arguments, words) in [
        (&["--behavior", "End.AD"][..], &["End.AD needs an interface"][..]),
        (&["--behavior", "End.AD", "--to", "l"], &["`l` is a port, and leads to a function"]),
        (&["--behavior", "End.AD", "--to", "f7"], &["no interface `f7`", "did you mean"]),
        (&["--behavior", "End.AM", "--to", "f2", "--segments", "fd00::1"], &["takes no `policy`"]),
        (&["--to", "f2"], &["End.AN.NF takes no `to`"]),
        (&["--behavior", "End.AD", "--to", "lo"], &["`lo` carries no Ethernet frames"]),
    ] {
        let add = [&["function", "add", "fd00:1::f:0:3333"], arguments].concat();
        kaido.run(&add).failed(2, words);
    }
    let file = kaido.file(
        "kernel.yaml",
        &format!("dataplane: kernel\n{HEAD}{BUMP}").replace("source: \"fd00:1::\"\n", ""),
    );
    kaido
        .run(&["dataplane", "apply", &file])
        .failed(2, &["sid fd00:1::f:0:1111: the kernel has no End.AD: write `dataplane: xdp`"]);
}
