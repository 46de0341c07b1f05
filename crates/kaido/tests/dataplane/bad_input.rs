//! What cannot be: refused with a clear message, and nothing changes.

use crate::net::{FILE, Net, ip};

#[test]
fn root_a_failed_apply_changes_nothing() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(FILE);
    let before = net.show();
    for (text, code, words) in [
        ("ports: { l: {}, r: {}, nowhere: {} }\n", 2, "nowhere"),
        ("ports: { l: {}, lo: {} }\n", 2, "lo"),
        ("ports: { l: {}, r: {} }\nsids: { \"fd00:1::1\": Ende }\n", 2, "End"),
        ("port: { l: {} }\n", 2, "ports"),
    ] {
        let file = net.kaido.file("bad.yaml", text);
        let said = net.kaido.run(&["dataplane", "apply", &file]);
        assert_eq!(said.code, Some(code), "{text}: {said:?}");
        assert!(said.stderr.contains(words), "{text}: {said:?}");
        let now = net.show();
        assert_eq!((&now["ports"], &now["sids"]), (&before["ports"], &before["sids"]));
    }
    assert!(net.ping(3));
}

#[test]
fn root_another_program_on_a_port_is_left_alone() {
    let mut net = Net::new();
    net.start(&[]);
    // The data plane of another daemon is somebody else's program.
    let other = net.kaido.folder().join("other");
    let other = other.to_str().unwrap();
    net.apply(FILE);
    let mut command = net.kaido.command(&["dataplane", "run", "--state", other]);
    let file = net.kaido.file("other.yaml", FILE);
    command.args(["--file", &file]).stderr(std::process::Stdio::piped());
    let ended = net.node.run(|| command.output().unwrap()).unwrap();
    let text = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{text}");
    assert!(text.contains("has an XDP program already"), "{text}");
    let _ = nix::mount::umount(&*std::path::Path::new(other).join("bpf"));
    assert!(net.ping(3));
    ip(&net.node, &["link show dev l"]);
}

#[test]
fn root_without_a_daemon_a_command_says_so() {
    let net = Net::new();
    let said = net.kaido.run(&["dataplane", "show"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("no data plane answers on"), "{said:?}");
}
