//! The XDP mode of a port: as the file says, and as `show` prints.

use std::process::Command;
use std::time::Duration;

use testkit::{pause, until};

use crate::net::{FILE, Net, ip, show};

const GENERIC: &str = "ports: { l: {mode: generic}, r: {} }\n";

const TIMEOUT: Duration = Duration::from_secs(20);

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
        .failed(1, &["has no native XDP", "use `mode: generic` if all of its senders are trusted"]);
    assert_eq!((mode(&net, "l"), mode(&net, "r")), ("native".into(), "native".into()));
    assert!(!show(&net.node, "link show dev b").contains("xdp"));
    assert!(net.ping(3));

    // A bridge may have a port whose senders could send packets past the generic one.
    let auto = net.kaido.file("a.yaml", "ports: { l: {}, r: {}, b: {} }\n");
    net.kaido.run(&["dataplane", "apply", &auto]).failed(1, &["has no native XDP"]);
    net.apply("ports: { l: {}, r: {}, b: {mode: generic} }\n");
    assert_eq!((mode(&net, "l"), mode(&net, "b")), ("native".into(), "generic".into()));
    // If a mode is not possible, the previous one stays.
    let text = "ports: { l: {mode: generic}, r: {}, b: {mode: native} }\n";
    let native = net.kaido.file("n.yaml", text);
    net.kaido.run(&["dataplane", "apply", &native]).failed(1, &["has no native XDP"]);
    let modes = ["b", "l", "r"].map(|port| mode(&net, port));
    assert_eq!(modes, ["generic", "native", "native"]);
    assert!(net.ping(3));
}

/// Creates a veth pair at the node, or changes the number of TX queues of its other end. XDP of `x` is
/// refused while the other end has more of them than it has RX queues.
pub(crate) fn pair(net: &Net, lines: &[&str], queues: &str) {
    ip(&net.node, lines);
    let set = || Command::new("ethtool").args(["-L", "y", "tx", queues]).status().unwrap();
    assert!(net.node.run(set).unwrap().success());
}

/// In generic mode, senders on this machine could send packets past the program.
#[test]
fn root_auto_is_native_on_a_veth() {
    let mut net = Net::new();
    pair(&net, &["link add x type veth peer name y", "link set x up", "link set y up"], "2");
    net.start(&[]);
    let text = "ports: { l: {}, r: {}, x: {} }\n";
    let file = net.kaido.file("auto.yaml", text);
    let refused = net.kaido.run(&["dataplane", "apply", &file]);
    refused.failed(
        1,
        &["`x` cannot be a port", "not at present", "if all of its senders are trusted"],
    );
    assert!(!show(&net.node, "link").contains("xdp"));
    pair(&net, &[], "1");
    net.apply(text);
    assert_eq!(mode(&net, "x"), "native");
    let edge = "ports: { l: {sids: false, mode: generic}, r: {mode: generic} }\n";
    let warnings = net.apply(edge)["warnings"].to_string();
    let evaded = "can send packets past the program";
    assert!(warnings.contains(&format!("senders on `l` (veth) {evaded}")), "{warnings}");
    assert!(!warnings.contains("senders on `r`"), "not at the edge: {warnings}");
}

/// The other end of a port that comes back may be a tenant's: it does not keep the other ports from
/// being followed.
#[test]
fn root_a_port_that_cannot_be_attached_again_is_down_alone() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(FILE);
    pair(&net, &["link del dev l", "link add x type veth peer name y"], "2");
    ip(&net.node, &["link set dev x name l", "link set dev l up"]);
    let is_down = || (!show(&net.node, "link show dev l").contains("UP")).then_some(());
    until(TIMEOUT, is_down, || show(&net.node, "link"));
    // The other port is followed.
    ip(&net.node, &["link set dev r address 02:00:00:00:00:77"]);
    let warns = || {
        let shown = net.show();
        shown["warnings"].to_string().contains("`l` is down").then_some(shown)
    };
    let shown = until(TIMEOUT, warns, || net.show().to_string());
    let ports = shown["ports"].as_array().unwrap();
    assert_eq!((ports.len(), &ports[0]["name"]), (1, &"r".into()));
    pair(&net, &[], "1");
    ip(&net.node, &["link set dev l up"]);
    let is_back = || (net.show()["ports"].as_array().map(Vec::len) == Some(2)).then_some(());
    until(TIMEOUT, is_back, || net.show().to_string());
    assert_eq!(mode(&net, "l"), "native");
}
