//! Interfaces that are attached to links of the lab.

use super::{Outside, STREAM, answers, ip, stream};
use crate::daemons::end;
use crate::events::wait_for_steps;
use crate::{direction, kaido, soon};

const FRAMES: &str = "\
name: lan
nodes:
  a: {attach: out1}
  b: {attach: out2}
  h: {}
  x: {router: virtual}
links:
  - lan0: {nodes: [x, a, h], ipv4: 192.0.2.0/24, ipv6: '2001:db8:a::/64'}
  - x-b: {ipv4: 198.51.100.0/24, ipv6: '2001:db8:b::/64'}
";

#[test]
fn root_outside_hosts_are_on_the_labs_links() {
    let (kaido, outside) = (kaido(), Outside::new());
    for (host, own, own6, router, router6) in [
        (&outside.a, "192.0.2.2/24", "2001:db8:a::2/64", "192.0.2.1", "2001:db8:a::1"),
        (&outside.b, "198.51.100.2/24", "2001:db8:b::2/64", "198.51.100.1", "2001:db8:b::1"),
    ] {
        ip(
            host,
            &[
                &format!("addr add {own} dev eth0"),
                &format!("addr add {own6} dev eth0 nodad"),
                &format!("route add default via {router}"),
                &format!("-6 route add default via {router6}"),
            ],
        );
    }
    let before = outside.look();
    let file = kaido.file("lan.yaml", FRAMES);
    outside.kaido(&kaido, &["lab", "up", &file]).ok();
    for to in ["198.51.100.2", "2001:db8:b::2", "192.0.2.3", "2001:db8:a::3"] {
        assert!(answers(&outside.a, to), "{to}");
    }
    assert_eq!(stream(&outside, "198.51.100.2", "192.0.2.2"), STREAM);
    // Removing one interface does not affect the others.
    ip(&outside.machine, &["link del out2"]);
    assert!(!answers(&outside.a, "198.51.100.2"));
    assert!(answers(&outside.a, "192.0.2.3"));
    outside.kaido(&kaido, &["lab", "down", "lan"]).ok();
    let now = outside.look();
    assert!(before.lines().filter(|line| !line.contains("out2@")).eq(now.lines()), "{now}");
}

/// The lab keeps running without the interface and reports it, and so does a restarted emulator.
#[test]
fn root_a_lab_survives_and_reports_an_interface_that_disappears() {
    let (kaido, outside) = (kaido(), Outside::new());
    ip(&outside.a, &["addr add 192.0.2.1/24 dev eth0"]);
    ip(&outside.machine, &["addr add 203.0.113.1/24 dev out2"]);
    let file = kaido.file(
        "lan.yaml",
        "name: lan\nnodes: {a: {attach: out1}, h: {}, b: {attach: out2}, g: {}}\n\
         links: [a-h: {ipv4: 192.0.2.0/24}, b-g]\n",
    );
    outside.kaido(&kaido, &["lab", "up", &file]).ok();
    let reached = || answers(&outside.a, "192.0.2.2");
    let carrier = || kaido.ok(&["lab", "exec", "g", "--", "ip", "-o", "link", "show", "b"]);
    assert!(reached() && carrier().contains("state UP"));
    ip(&outside.machine, &["link del out2"]);
    soon("the other end sees it", || carrier().contains("NO-CARRIER"));
    let said = |arguments: &[&str]| {
        let said = kaido.ok(arguments);
        assert!(said.contains("b:out2 is gone"), "{said}");
        said
    };
    assert!(said(&["lab", "ls"]).contains("degraded"));
    said(&["lab", "events"]);
    assert!(reached());
    end(&kaido, "emulator");
    soon("the end is noticed", || kaido.ok(&["lab", "ls"]).contains("links are down"));
    let started = said(&["lab", "start", "emulator"]);
    assert!(started.contains("emulator is started"), "{started}");
    soon("the rest is there again", reached);
    assert!(carrier().contains("NO-CARRIER"));
    said(&["lab", "ls"]);
    // Once the interface exists again, a restarted emulator uses it.
    ip(&outside.machine, &["link add out2 type veth peer name in2", "link set out2 up"]);
    ip(&outside.machine, &["link set in2 up"]);
    said(&["lab", "ls"]);
    end(&kaido, "emulator");
    soon("the end is noticed", || kaido.ok(&["lab", "ls"]).contains("links are down"));
    let started = kaido.ok(&["lab", "start", "emulator"]);
    assert!(!started.contains("gone"), "{started}");
    soon("its link is up", || carrier().contains("state UP"));
    outside.kaido(&kaido, &["lab", "down", "lan"]).ok();
}

/// No node of this lab has a namespace, so the emulator has no device that goes down with it.
#[test]
fn root_a_restarted_emulator_without_namespaces_gets_the_events_so_far() {
    let (kaido, outside) = (kaido(), Outside::new());
    let file = kaido.file(
        "line.yaml",
        "name: line\nnodes: {a: {attach: out1}, x: {router: virtual}, b: {attach: out2}}\n\
         links: [a-x, x-b]\nevents:\n  - {at: 0s, link: x-b, set: {delay: 40ms}, from: x}\n  \
         - {at: 100ms, link: a-x, down: 1h}\n",
    );
    outside.kaido(&kaido, &["lab", "up", &file]).ok();
    wait_for_steps(&kaido, 2);
    let does = |link: &str| {
        let links = kaido.json(&["lab", "links"]);
        direction(&links, link, "x")["does"].as_str().unwrap().to_owned()
    };
    let before = ["x-b", "a-x"].map(does);
    assert_eq!(before, ["delay 40ms", "down"]);
    end(&kaido, "emulator");
    let ls = || kaido.ok(&["lab", "ls"]);
    soon("the end is noticed", || ls().contains("the emulator exited and its links are down"));
    outside.kaido(&kaido, &["lab", "start", "emulator"]).ok();
    assert_eq!(["x-b", "a-x"].map(does), before);
    let said = kaido.ok(&["lab", "events"]);
    assert!(
        said.contains("the emulator exited") && said.contains("the emulator was restarted"),
        "{said}"
    );
    outside.kaido(&kaido, &["lab", "down", "line"]).ok();
}

#[test]
fn root_an_interface_that_cannot_be_attached_is_refused() {
    let (kaido, outside) = (kaido(), Outside::new());
    let up = |text: &str, words: &[&str]| {
        let file = kaido.file("lan.yaml", text);
        outside.kaido(&kaido, &[&["lab", "up", &file], words].concat())
    };
    up(&FRAMES.replace("out2", "eth9"), &[])
        .failed(2, &["b: this machine has no interface `eth9` to attach (known: out1, out2)"]);
    ip(
        &outside.machine,
        &["addr add 203.0.113.1/24 dev out1", "route add default via 203.0.113.9"],
    );
    up(FRAMES, &[]).failed(2, &["`out1` has this machine's only default route", "use --yes"]);
    up(FRAMES, &["--yes"]).ok();
    kaido.ok(&["lab", "down", "lan"]);
    ip(&outside.machine, &["link set out2 down"]);
    up(FRAMES, &["--yes"]).failed(1, &["`out2` to attach is down: `ip link set out2 up`"]);
    assert!(kaido.labs().is_empty());
}
