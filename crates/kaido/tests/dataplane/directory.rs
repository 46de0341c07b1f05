//! The directory of the daemon's state: its ownership and its cleanup.

use std::path::Path;

use netlink::Namespace;
use testkit::Said;

use crate::net::{FILE, Net, ip, show};

/// Runs `kaido dataplane run` in a namespace until it ends.
pub(crate) fn run(net: &Net, namespace: &Namespace, arguments: &[&str]) -> Said {
    let mut command = net.kaido.command(&[&["dataplane", "run"], arguments].concat());
    namespace.run(|| Said::run(&mut command)).unwrap()
}

#[test]
fn root_a_start_that_fails_leaves_nothing_behind() {
    let net = Net::new();
    let file = |name, ports: &str| {
        let text = format!(
            "source: \"fd00:1::\"\nports: {ports}\n\
             tenants: {{blue: {{routes: {{fd00:7::/64: [\"fd00:2::d6\"]}}}}}}\n"
        );
        net.kaido.file(name, &text)
    };
    let index = net.node.run(|| nix::net::if_::if_nametoindex("r").unwrap()).unwrap();
    let measure = net.node.run(|| bpf::Measure::load("fd00::".parse().unwrap()).unwrap()).unwrap();
    let attach = || bpf::attach::Attached::new(measure.nothing(), index, bpf::attach::Mode::Native);
    let theirs = net.node.run(attach).unwrap().unwrap();

    let missing = file("missing.yaml", "{l: {tenant: blue}, nowhere: {}}");
    let occupied = file("occupied.yaml", "{l: {tenant: blue}, r: {}}");
    let tunsrc = show(&net.node, "sr tunsrc show");
    for (arguments, code, says) in [
        (&["--file", &missing][..], 2, "no interface `nowhere`"),
        (&["--file", &occupied], 1, "has an XDP program already"),
        (&["--metrics", "192.0.2.1:9464"], 1, "cannot listen on 192.0.2.1:9464"),
    ] {
        run(&net, &net.node, arguments).failed(code, &[says]);
        assert!(!Path::new(&net.state()).exists(), "{arguments:?}");
        assert!(!show(&net.node, "link show dev l").contains("xdp"));
        assert_eq!(show(&net.node, "-6 route show table all proto 76"), "");
        assert_eq!(show(&net.node, "sr tunsrc show"), tunsrc);
    }
    drop(theirs);
}

#[test]
fn root_a_failed_start_keeps_the_running_data_plane() {
    let mut net = Net::new();
    for (dataplane, in_xdp) in [("xdp", true), ("kernel", false)] {
        let key = format!("dataplane: {dataplane}\n");
        net.start(&[]);
        net.apply(&format!("{key}{FILE}"));
        net.end();
        let missing =
            net.kaido.file("missing.yaml", &format!("{key}ports: {{l: {{}}, nowhere: {{}}}}\n"));
        run(&net, &net.node, &["--file", &missing]).failed(2, &["nowhere"]);
        assert_eq!(show(&net.node, "link show dev l").contains("xdp"), in_xdp);
        assert!(net.ping(3), "{dataplane}");
        net.start(&[]);
        assert_eq!(net.packets("fd00:1::1/128").is_some(), in_xdp);
        net.end();
    }
}

#[test]
fn root_a_port_whose_name_another_interface_took_keeps_working() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(FILE);
    net.kill();
    ip(
        &net.node,
        &[
            "link set dev l down",
            "link set dev l name was-l",
            "link set dev was-l up",
            "link add dev l type veth peer name other",
        ],
    );
    let file = net.kaido.file("named.yaml", "ports: {was-l: {}, l: {}, r: {}}\n");
    net.start(&["--file", &file]);
    net.kill();
    for port in ["was-l", "l", "r"] {
        assert!(show(&net.node, &format!("link show dev {port}")).contains("xdp"), "{port}");
    }
}

#[test]
fn root_a_directory_is_one_namespaces() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(FILE);
    net.end();
    let says = ["another network namespace's data plane", "--state", "umount"];
    run(&net, &net.left, &[]).failed(1, &says);
    assert!(net.ping(3));
    net.start(&[]);
    net.kaido.ok(&["dataplane", "detach"]);
    net.end();
    // Without attached ports any daemon may use the directory.
    let file = net.kaido.file("missing.yaml", "ports: {nowhere: {}}\n");
    run(&net, &net.left, &["--file", &file]).failed(2, &["nowhere"]);
}

#[test]
fn root_unmounted_pins_are_reported() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(FILE);
    nix::mount::umount(&*Path::new(&net.state()).join("bpf")).unwrap();
    let file = net.kaido.file("again.yaml", FILE);
    for command in [&["dataplane", "apply", &file][..], &["dataplane", "detach"]] {
        let says = ["/bpf, which keeps the ports attached, was unmounted", "start it again"];
        net.kaido.run(command).failed(1, &says);
    }
    assert!(net.ping(3), "it works as long as the daemon does");
    net.end();
    assert!(net.log().contains("was unmounted"), "{}", net.log());
    assert!(!show(&net.node, "link show dev l").contains("xdp"));
    net.start(&[]);
    assert!(show(&net.node, "link show dev l").contains("xdp"), "{}", net.log());
    net.kaido.ok(&["dataplane", "detach"]);
    net.end();
}

/// `tc` creates its directory in any BPF file system that it finds.
#[test]
fn root_a_directory_of_another_program_between_the_pins_is_left_alone() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(FILE);
    let directory = Path::new(&net.state()).join("bpf/tc");
    std::fs::create_dir(&directory).unwrap();
    net.apply("ports: { l: {} }\n");
    net.kaido.ok(&["dataplane", "detach"]);
    assert!(!show(&net.node, "link show dev l").contains("xdp"));
    assert!(directory.exists());
    net.end();
}
