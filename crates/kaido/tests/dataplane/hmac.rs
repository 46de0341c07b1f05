//! If the kernel requires an HMAC in each segment routing header (RFC 8754 section 2.1.2), neither
//! the kernel nor XDP forwards a packet without one.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use netlink::Namespace;
use testkit::until;

use crate::functions;
use crate::net::{FILE, Net, ip};

/// Returns the number of packets, of four, that pass the node's SID with the SRH that left writes.
fn of_four(net: &Net, to: &str) -> u32 {
    let run = || {
        let mut ping = Command::new("ping");
        ping.args(["-q", "-c", "4", "-i", "0.01", "-W", "1", to]).output().unwrap()
    };
    let said = String::from_utf8(net.left.run(run).unwrap().stdout).unwrap();
    let received = said.split(", ").find_map(|part| part.strip_suffix(" received"));
    received.unwrap_or_else(|| panic!("{said}")).parse().unwrap()
}

fn require(net: &Net, interface: &str, value: &str) {
    let path = format!("ipv6/conf/{interface}/seg6_require_hmac");
    net.node.run(|| netlink::sysctl::write(&path, value).unwrap()).unwrap();
}

/// Returns the counts of packets left to the kernel and of dropped packets for this reason.
fn counted(net: &Net) -> [u64; 2] {
    let shown = net.show();
    let reasons = shown["reasons"].as_array().unwrap();
    let reason = reasons.iter().find(|reason| reason["reason"] == "no-hmac").unwrap();
    ["passed", "dropped"].map(|outcome| reason[outcome].as_u64().unwrap())
}

/// Waits until the daemon has seen the kernel's requirement on `l`.
fn until_shown(net: &Net, required: bool) {
    let is = || {
        let shown = net.show();
        let port = shown["ports"].as_array().unwrap().iter().find(|port| port["name"] == "l");
        (port.unwrap()["requires_hmac"] == required).then_some(())
    };
    until(Duration::from_secs(20), is, || net.log());
}

/// Sets the same key everywhere: each node that finds an HMAC verifies it.
fn set_key(namespace: &Namespace) {
    let run = || {
        let mut ip = Command::new("ip");
        ip.args(["sr", "hmac", "set", "7", "sha256"]).stdin(Stdio::piped()).stdout(Stdio::null());
        ip.stderr(Stdio::null());
        let mut child = ip.spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"a secret of all\n").unwrap();
        assert!(child.wait().unwrap().success());
    };
    namespace.run(run).unwrap();
}

#[test]
fn root_an_srh_without_the_hmac_that_the_kernel_requires_does_not_pass_xdp() {
    let mut net = Net::new();
    let to = "fd00:9::1";
    // The oracle: the kernel evaluates only the port's own value.
    require(&net, "all", "1");
    assert_eq!(of_four(&net, to), 4);
    require(&net, "l", "1");
    assert_eq!(of_four(&net, to), 0, "the kernel");
    net.start(&[]);
    net.apply(FILE);
    until_shown(&net, true);
    assert_eq!(of_four(&net, to), 0, "XDP");
    assert_eq!(counted(&net), [4, 0], "they are the kernel's, which drops them");
    let said = net.kaido.ok(&["dataplane", "show"]);
    assert!(said.contains("l (native, requires HMAC)"), "{said}");

    // Packets with an HMAC are left to the kernel, which verifies it.
    for namespace in [&net.left, &net.node, &net.right] {
        set_key(namespace);
    }
    ip(&net.left, &["sr tunsrc set fd00:a::2"]);
    let way = |hmac: &str| {
        format!(
            "-6 route replace fd00:9::/64 encap seg6 mode encap segs fd00:1::1,fd00:2::d6{hmac} via \
             fd00:a::1 dev port mtu 1500"
        )
    };
    ip(&net.left, &[&way(" hmac 7")]);
    assert_eq!(of_four(&net, to), 4, "with an HMAC");
    ip(&net.left, &[&way("")]);
    assert_eq!(of_four(&net, to), 0);

    // A change at run time, in both directions.
    require(&net, "l", "0");
    until_shown(&net, false);
    let before = net.redirected();
    assert_eq!(of_four(&net, to), 4);
    assert!(net.redirected() >= before + 4, "XDP forwards again");
    require(&net, "l", "1");
    until_shown(&net, true);
    assert_eq!(of_four(&net, to), 0, "required while it runs");
}

#[test]
fn root_a_service_function_drops_an_srh_without_the_hmac_that_the_kernel_requires() {
    let mut net = functions::function_net();
    functions::nft(&net, "table inet none {}");
    net.start(&[]);
    net.apply(functions::FILE);
    assert_eq!(of_four(&net, "10.9.0.1"), 4);
    require(&net, "l", "1");
    until_shown(&net, true);
    assert_eq!(of_four(&net, "10.9.0.1"), 0);
    assert_eq!(counted(&net), [0, 4]);
}

#[test]
fn root_the_doctor_says_where_an_hmac_is_required() {
    let net = Net::new();
    let say = || net.node.run(|| net.kaido.run(&["--json", "doctor"]).stdout).unwrap();
    assert!(!say().contains("HMAC"), "{}", say());
    require(&net, "l", "1");
    assert!(say().contains("HMAC required on l"), "{}", say());
    // This setting has no effect, despite its name.
    require(&net, "l", "0");
    require(&net, "all", "1");
    assert!(
        say().contains("net.ipv6.conf.all.seg6_require_hmac alone requires nothing"),
        "{}",
        say()
    );
}
