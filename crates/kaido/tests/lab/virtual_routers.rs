//! Routers without a namespace, between hosts with one.

use testkit::{Machine, Said};

use crate::{direction, kaido, soon};

/// Two hosts with `routers` virtual routers between them. The last one is connected to a LAN, which
/// also has a kernel router.
fn chain(routers: usize) -> String {
    let mut text = "name: chain\nnodes:\n  a: {}\n  b: {}\n  s: {router: linux}\n".to_owned();
    for n in 1..=routers {
        text += &format!("  x{n}: {{router: virtual}}\n");
    }
    text += "links:\n  - a-x1\n";
    for n in 1..routers {
        text += &format!("  - x{n}-x{}\n", n + 1);
    }
    text + &format!("  - lan: [x{routers}, s, b]\n")
}

#[test]
fn root_traceroute_through_60_virtual_routers_reads_as_it_should() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let lab = kaido.lab_up(&chain(60));
    lab.ping("a", &["10.0.61.3", "fd02:0:0:3d::3", "10.255.0.60", "fd01::3c"]);
    for (ttl, router) in [(1, "10.0.1.2"), (2, "10.0.2.2"), (30, "10.0.30.2"), (60, "10.0.60.2")] {
        let ttl = ttl.to_string();
        let said = lab.run("a", &["ping", "-n", "-c", "1", "-W", "2", "-t", &ttl, "10.0.61.3"]);
        let words = format!("From {router} icmp_seq=1 Time to live exceeded");
        assert!(said.stdout.contains(&words), "{said}");
    }
    for (hops, router) in [(1, "fd02:0:0:1::2"), (60, "fd02:0:0:3c::2")] {
        let hops = hops.to_string();
        let said =
            lab.run("a", &["ping", "-n", "-c", "1", "-W", "2", "-t", &hops, "fd02:0:0:3d::3"]);
        let words = format!("From {router} icmp_seq=1 Time exceeded: Hop limit");
        assert!(said.stdout.contains(&words), "{said}");
    }
    // The first address does not exist; there is no route to the second.
    let unreachable = |to: &str| lab.run("a", &["ping", "-n", "-c", "1", "-W", "5", to]).stdout;
    assert!(unreachable("10.0.61.9").contains("Destination Host Unreachable"));
    assert!(unreachable("192.0.2.1").contains("Destination Net Unreachable"));
    lab.down();
    before.assert_restored(&kaido);
}

#[test]
fn root_a_link_of_virtual_routers_is_cut_and_mended() {
    let kaido = kaido();
    let lab = kaido.lab_up(&chain(2));
    let ping = || -> Said { lab.run("a", &["ping", "-c", "1", "-W", "1", "10.0.3.3"]) };
    assert!(ping().stdout.contains("1 received"));
    kaido.ok(&["lab", "link", "x1-x2", "down"]);
    assert!(ping().stdout.contains("0 received"));
    kaido.ok(&["lab", "link", "x1-x2", "up"]);
    assert!(ping().stdout.contains("1 received"));
    let exec = kaido.run(&["lab", "exec", "x1", "--", "true"]);
    exec.failed(2, &["x1 is a virtual router: no program can run there"]);
    kaido.run(&["lab", "capture", "x1:a"]).failed(2, &["x1 is a virtual router"]);
    lab.down();
}

/// Every packet that is dropped on the path is counted.
#[test]
fn root_drops_of_virtual_routers_and_switches_are_counted() {
    let kaido = kaido();
    let lab = kaido.lab_up(
        "name: stops\nrouting: [static]\nnodes: {a: {}, b: {}, c: {}, x: {router: virtual}}\n\
         links:\n  - a-x\n  - x-b: {mtu: 1400}\n  - lan: {nodes: [x, b, c], engine: true}\n",
    );
    let ping = |arguments: &str| lab.run("a", &words(&format!("ping -c 1 -W 1 {arguments}")));
    ping("10.0.2.2");
    let stopped = |cause: &str| {
        let links = kaido.json(&["lab", "links"]);
        direction(&links, "x-b", "x")["router"]["stopped"][cause].as_u64().unwrap()
    };
    for (cause, arguments) in [
        ("hop-limit", "-t 1 10.0.2.2"),
        ("no-route", "192.0.2.9"),
        ("too-big", "-M do -s 1450 10.0.2.2"),
        ("no-neighbor", "-W 5 10.0.2.99"),
    ] {
        assert_eq!(stopped(cause), 0, "{cause}");
        ping(arguments);
        soon(cause, || stopped(cause) == 1);
    }
    let links = kaido.json(&["lab", "links"]);
    let lan = direction(&links, "lan", "b");
    assert!(lan["switch"]["received"].as_u64() > Some(0) && lan["router"].is_null(), "{lan}");
    let text = kaido.ok(&["lab", "links"]);
    assert!(text.contains("ORIGINATED") && text.contains("hop-limit 1, no-route 1"), "{text}");
    let metrics = kaido.ok(&["lab", "metrics"]);
    let line = "kaido_lab_node_stopped_packets_total{lab=\"stops\",node=\"x\",cause=\"too-big\"} 1";
    assert!(metrics.contains(line), "{metrics}");
    assert!(metrics.contains("node=\"lan\",cause=\"same-side\""), "{metrics}");
    lab.down();
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}
