//! The XDP mode of a port: as the file says, and as `show` prints.

use std::time::Duration;

use testkit::pause;

use crate::net::{FILE, Net, ip, show};

const GENERIC: &str = "ports: { l: {mode: generic}, r: {} }\n";

/// Returns the mode of a port in `show`.
fn mode(net: &Net, port: &str) -> String {
    let shown = net.show();
    let ports = shown["ports"].as_array().unwrap();
    let found = ports.iter().find(|entry| entry["name"] == port);
    let found = found.unwrap_or_else(|| panic!("no port {port}: {shown}"));
    let mode = found["mode"].as_str().unwrap().to_owned();
    // The kernel's name for the mode.
    let link = show(&net.node, &format!("link show dev {port}"));
    let expected = if mode == "generic" { " xdpgeneric " } else { " xdp " };
    assert!(link.contains(expected), "{mode}: {link}");
    mode
}

#[test]
fn root_a_ports_mode_changes_with_the_file() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(FILE);
    assert_eq!((mode(&net, "l"), mode(&net, "r")), ("native".into(), "native".into()));
    // In between the kernel forwards by its own routes: the load runs before and after.
    let load = net.datagrams(10.0);
    pause(Duration::from_millis(100));
    for (file, expected) in [
        (GENERIC, "generic"),
        (FILE, "native"),
        ("mode: generic\nports: { l: {}, r: {mode: native} }\n", "generic"),
        (FILE, "native"),
    ] {
        net.apply(file);
        assert_eq!((mode(&net, "l").as_str(), mode(&net, "r").as_str()), (expected, "native"));
        let before = net.packets("fd00:1::1/128").unwrap();
        assert!(net.ping(5), "{expected}");
        assert!(net.packets("fd00:1::1/128").unwrap() >= before + 5, "{expected}");
    }
    let count = load.finish();
    eprintln!("{count:?}");
    assert!(count.received > count.sent / 2, "{count:?}");

    // A daemon that finds a port attached in another mode than its file's.
    net.apply(GENERIC);
    net.kill();
    let file = net.kaido.file("native.yaml", "ports: { l: {mode: native}, r: {} }\n");
    net.start(&["--file", &file]);
    assert_eq!(mode(&net, "l"), "native");
    assert!(net.ping(5));
}

#[test]
fn root_a_driver_without_native_xdp() {
    let mut net = Net::new();
    // A bridge's driver has no native XDP.
    ip(&net.node, &["link add name b type bridge", "link set dev b up"]);
    net.start(&[]);
    net.apply(FILE);
    let native =
        net.kaido.file("n.yaml", "ports: { l: {mode: generic}, r: {}, b: {mode: native} }\n");
    net.kaido
        .run(&["dataplane", "apply", &native])
        .failed(1, &["has no native XDP", "`mode: generic` or `auto`"]);
    assert_eq!((mode(&net, "l"), mode(&net, "r")), ("native".into(), "native".into()));
    assert!(!show(&net.node, "link show dev b").contains("xdp"));
    assert!(net.ping(3));

    // Without a given mode the port falls back to the slower one, and says so.
    net.apply("ports: { l: {}, r: {}, b: {} }\n");
    assert_eq!((mode(&net, "l"), mode(&net, "b")), ("native".into(), "generic".into()));
    // If a mode is not possible, the previous one stays.
    let text = "ports: { l: {mode: generic}, r: {}, b: {mode: native} }\n";
    let native = net.kaido.file("n.yaml", text);
    net.kaido.run(&["dataplane", "apply", &native]).failed(1, &["has no native XDP"]);
    let modes = ["b", "l", "r"].map(|port| mode(&net, port));
    assert_eq!(modes, ["generic", "native", "native"]);
    assert!(net.ping(3));
}
