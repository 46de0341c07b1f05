//! Labs whose routers run SRv6 in XDP.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::sockopt;
use nix::unistd::Pid;
use testkit::{Datagrams, Kaido, Lab, Machine, pause, until};

use crate::frr::assert_full_mesh;
use crate::kaido;
use crate::rate::tcp;
use crate::srv6::{paths, steer};
use crate::topologies::{CHAIN, FRR, addresses, resolved, with_xdp};

const ROUTERS: [&str; 3] = ["r1", "r2", "r3"];
const TIMEOUT: Duration = Duration::from_secs(20);

/// The lab, opened with the library.
fn open(kaido: &Kaido, lab: &Lab<'_>) -> lab::Lab {
    lab::Labs::at(kaido.run_directory()).open(lab.name()).unwrap()
}

/// Output of `kaido dataplane show` for a node.
fn show(kaido: &Kaido, node: &str) -> serde_json::Value {
    kaido.json(&["dataplane", "show", "--node", node])
}

/// Number of packets that a node's SIDs have processed in XDP.
fn packets(kaido: &Kaido, node: &str) -> u64 {
    let shown = show(kaido, node);
    let sids = shown["sids"].as_array().unwrap().clone();
    sids.iter().map(|sid| sid["packets"].as_u64().unwrap()).sum()
}

fn has_xdp(lab: &Lab<'_>, node: &str, interface: &str) -> bool {
    let shown = lab.exec(node, &format!("ip -o link show dev {interface}"));
    assert!(!shown.contains("xdpgeneric"), "{shown}");
    shown.contains(" xdp ")
}

/// PID of a node's data plane.
fn daemon(directory: &Path, node: &str) -> Option<Pid> {
    let state = directory.join("nodes").join(node).join("dataplane");
    let state = state.as_os_str().as_encoded_bytes().to_owned();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut pids = processes.filter_map(|p| p.file_name().to_str()?.parse::<i32>().ok());
    let pid = pids.find(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == state)
    });
    pid.map(Pid::from_raw)
}

#[test]
fn root_every_router_forwards_in_xdp_and_says_so() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let text = with_xdp(CHAIN);
    let topology = resolved(&text);
    let lab = kaido.lab_up(&text);
    for (router, interfaces) in ROUTERS.iter().zip([["h1", "r2"], ["r1", "r3"], ["r2", "h2"]]) {
        assert!(interfaces.iter().all(|name| has_xdp(&lab, router, name)), "{router}");
        let shown = show(&kaido, router);
        let ports = shown["ports"].as_array().unwrap();
        let ports: Vec<_> = ports.iter().map(|port| [&port["name"], &port["mode"]]).collect();
        assert_eq!(ports, interfaces.each_ref().map(|name| [*name, "native"]));
        assert!(shown["imported"].as_u64() >= Some(4), "{shown}");
    }
    assert!(!has_xdp(&lab, "h1", "r1"));
    let far = addresses(&topology, "h2");
    // The first packets resolve the neighbors, with the kernel's help.
    steer(&lab, &topology, &paths(&topology)[1]);
    lab.ping("h1", &far.each_ref().map(String::as_str));
    let counted = ROUTERS.map(|router| packets(&kaido, router));
    lab.ping("h1", &far.each_ref().map(String::as_str));
    for (router, before) in ROUTERS.iter().zip(counted) {
        assert_eq!(packets(&kaido, router) - before, 2, "{router}: {}", show(&kaido, router));
    }

    assert_eq!(kaido.json(&["lab", "ls"])[0]["xdp"], 3);
    let drawn = kaido.ok(&["lab", "graph"]);
    assert!(drawn.contains("r2  router  XDP") && !drawn.contains("host  XDP"), "{drawn}");
    let show = |more: &[&str]| kaido.run(&[&["dataplane", "show"], more].concat());
    show(&["--node", "h1"]).failed(2, &["`dataplane: xdp`", "r1, r2, r3"]);
    show(&["--node", "r9"]).failed(2, &["no node `r9`", "h1, h2, r1"]);
    show(&["--node", "r1", "--state", "/x"]).failed(2, &["--state"]);
    show(&["--lab", "chain"]).failed(2, &["--node"]);
    let faster = kaido.run(&["lab", "link", "r1-r2", "set", "rate=10mbit"]);
    faster.failed(2, &["r1-r2 has no rate in the topology file", "r1 sends with XDP"]);
    lab.down();
    before.assert_restored(&kaido);
}

/// Sends numbered datagrams from h1 to an address of h2, at `mbit` Mbit/s.
fn datagrams(open: &lab::Lab, to: &str, mbit: f64) -> Datagrams {
    let to: SocketAddr = format!("{to}:7000").parse().unwrap();
    let receiving = open.namespace("h2").unwrap().run(|| UdpSocket::bind(to).unwrap()).unwrap();
    // A short receive queue would cause losses in the test itself.
    nix::sys::socket::setsockopt(&receiving, sockopt::RcvBufForce, &(32 << 20)).unwrap();
    let connect = || {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.connect(to).unwrap();
        socket
    };
    let sending = open.namespace("h1").unwrap().run(connect).unwrap();
    Datagrams::start(sending, receiving, 1000, mbit)
}

/// Without an exit, XDP bypasses a port's queue.
#[test]
fn root_rates_and_drops_are_as_with_the_kernel() {
    let kaido = kaido();
    let text = with_xdp(CHAIN).replace("r1-r2,", "r1-r2: {rate: 50mbit},");
    assert_ne!(text, with_xdp(CHAIN));
    let topology = resolved(&text);
    let lab = kaido.lab_up(&text);
    let open = open(&kaido, &lab);
    steer(&lab, &topology, &paths(&topology)[1]);
    let [sink, _] = addresses(&topology, "h2");
    lab.ping("h1", &[&sink]);
    let sample = |node: &str, name: &str| {
        let mut handle = netlink::Handle::within(&open.namespace(node).unwrap()).unwrap();
        handle.samples().unwrap().into_iter().find(|sample| sample.name == name).unwrap()
    };

    let before = (sample("r1", "r2"), packets(&kaido, "r1"));
    let datagrams = datagrams(&open, &sink, 70.0);
    pause(Duration::from_secs(2));
    let count = datagrams.finish();
    let after = (sample("r1", "r2"), packets(&kaido, "r1"));
    assert_eq!(after.0.rate.map(|rate| rate.bps()), Some(50_000_000));
    assert_eq!(after.1 - before.1, count.sent, "all of them in XDP");
    let (dropped, passed) =
        (after.0.drops - before.0.drops, after.0.tx_packets - before.0.tx_packets);
    // On a busy machine a veth's ring of 256 frames sometimes overflows.
    let elsewhere = count.sent - count.received - dropped;
    assert!(elsewhere * 50 <= count.sent, "{elsewhere} of {count:?} are lost elsewhere");
    assert!(passed >= count.received && passed <= count.sent - dropped + 20, "{passed}: {count:?}");
    // 96 bytes of outer headers and 42 of the datagram's own: 70 Mbit/s of datagrams are 76 Mbit/s
    // here.
    let lost = dropped as f64 / count.sent as f64;
    assert!((0.2..0.5).contains(&lost), "{lost}: {count:?}");

    // 1,448 of 1,514 bytes plus 96.
    let expected = |rate: f64| rate * 1e6 * 1448.0 / 1610.0;
    let reached = tcp(&lab, &sink, 2) / expected(50.0);
    assert!((0.9..=1.1).contains(&reached), "{reached}");
    lab.link("r1-r2", &["set", "rate=20mbit"]);
    assert_eq!(sample("r1", "r2").rate.map(|rate| rate.bps()), Some(20_000_000));
    let reached = tcp(&lab, &sink, 2) / expected(20.0);
    assert!((0.9..=1.1).contains(&reached), "{reached}");
}

/// Sends `bytes` from h1 to h2, which verifies each of them.
fn transfer(open: &lab::Lab, to: &str, bytes: usize) {
    let to: SocketAddr = format!("{to}:7001").parse().or(format!("[{to}]:7001").parse()).unwrap();
    let byte = |at: usize| (at.wrapping_mul(2_654_435_761) >> 13) as u8;
    let sent: Vec<u8> = (0..bytes).map(byte).collect();
    let listener = open.namespace("h2").unwrap().run(|| TcpListener::bind(to).unwrap()).unwrap();
    let mut sending =
        open.namespace("h1").unwrap().run(|| TcpStream::connect(to).unwrap()).unwrap();
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(TIMEOUT)).unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            received
        });
        sending.set_write_timeout(Some(TIMEOUT)).unwrap();
        sending.write_all(&sent).unwrap();
        sending.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(receiver.join().unwrap() == sent, "{to}: other bytes than were sent");
    });
}

/// A veth with XDP accepts no GSO packets, so hosts segment them; incorrect segmentation reduces
/// TCP to a few Mbit/s. The comparison is with the kernel, which also processes single packets
/// here; with GSO packets it is three or four times as fast. The runs alternate, on unlimited and
/// on fast links.
#[test]
fn root_tcp_through_xdp_routers_keeps_every_byte_and_its_speed() {
    let fast = CHAIN.replace("r1-r2, r2-r3", "r1-r2: {rate: 5gbit}, r2-r3: {rate: 5gbit}");
    assert_ne!(fast, CHAIN);
    for text in [CHAIN, &fast] {
        let kaido = kaido();
        let topology = resolved(text);
        let kernel = kaido.lab_up(text);
        let file = kaido.file("xdp.yaml", &with_xdp(text));
        let xdp = kaido.lab_up_file(&file, &["--name", "xdp"]);
        for lab in [&kernel, &xdp] {
            steer(lab, &topology, &paths(&topology)[1]);
        }
        kernel.exec("h1", "ethtool -K r1 tx off");
        for address in addresses(&topology, "h2") {
            xdp.ping("h1", &[&address]);
            transfer(&open(&kaido, &xdp), &address, 32 << 20);
            // Other tests run concurrently: use the best of a few pairs.
            let mut ratios = Vec::new();
            while ratios.iter().all(|ratio| *ratio <= 0.25) {
                assert!(ratios.len() < 4, "{address}: XDP reaches {ratios:?} of the kernel's");
                let by_kernel = tcp(&kernel, &address, 2);
                ratios.push(tcp(&xdp, &address, 2) / by_kernel);
            }
            eprintln!("{address}: XDP reaches {ratios:.2?} of the kernel's TCP");
        }
    }
}

/// Every byte passes a sequence of kernel routers and XDP routers.
#[test]
fn root_kernel_and_xdp_routers_go_together() {
    for xdp in [&["r1", "r3"][..], &["r2"]] {
        let kaido = kaido();
        let mut text = CHAIN.to_owned();
        for router in xdp {
            let node = format!("{router}: {{router: linux");
            text = text.replace(&node, &format!("{node}, dataplane: xdp"));
        }
        let topology = resolved(&text);
        assert_eq!(topology.nodes.iter().filter(|node| node.runs_xdp()).count(), xdp.len());
        let lab = kaido.lab_up(&text);
        let open = open(&kaido, &lab);
        for path in paths(&topology) {
            steer(&lab, &topology, &path);
            for address in addresses(&topology, "h2") {
                let line = format!("ping -n -c 3 -i 0.01 -W 3 -M do -s 1400 {address}");
                assert!(lab.exec("h1", &line).contains("3 received"), "{path:?} {address}");
                transfer(&open, &address, 1 << 20);
            }
        }
        // A router as headend with H.Encaps.Red: it sends replies from h2 over SIDs.
        let back = addresses(&topology, "h1");
        let ends = crate::topologies::decapsulating(&topology, "r1");
        let over = crate::topologies::sid(&topology, "r2", srv6::function::END);
        for ((family, address), end) in ["-4", "-6"].iter().zip(&back).zip(ends) {
            let encap = format!("encap seg6 mode encap.red segs {over},{end} dev r2");
            lab.exec("r3", &format!("ip {family} route replace {address} {encap}"));
        }
        if xdp.contains(&"r3") {
            let taken =
                |shown: &serde_json::Value| shown["policies"].as_array().unwrap().len() == 2;
            let shown = || show(&kaido, "r3");
            until(TIMEOUT, || taken(&shown()).then_some(()), || shown().to_string());
        }
        for address in addresses(&topology, "h2") {
            lab.ping("h1", &[&address]);
            transfer(&open, &address, 4 << 20);
        }
        if xdp.contains(&"r3") {
            let shown = show(&kaido, "r3");
            let taken = |policy: &serde_json::Value| policy["packets"].as_u64() > Some(20);
            let policies = shown["policies"].as_array().unwrap();
            assert!(policies.iter().all(taken), "{shown}");
        }
        for router in xdp {
            assert!(packets(&kaido, router) > 1000, "{}", show(&kaido, router));
        }
    }
}

#[test]
fn root_a_data_plane_that_is_killed_keeps_forwarding_and_starts_again() {
    let kaido = kaido();
    let before_all = Machine::now(&kaido);
    let text = with_xdp(CHAIN);
    let topology = resolved(&text);
    let lab = kaido.lab_up(&text);
    let open = open(&kaido, &lab);
    let directory: PathBuf = open.directory().into();
    steer(&lab, &topology, &paths(&topology)[1]);
    let [sink, _] = addresses(&topology, "h2");
    lab.ping("h1", &[&sink]);
    let start = ["lab", "start", "r2"];
    kaido.run(&start).failed(2, &["r2 is running already"]);

    let datagrams = datagrams(&open, &sink, 8.0);
    let pid = daemon(&directory, "r2").expect("r2 has a data plane");
    kill(pid, Signal::SIGKILL).unwrap();
    let gone = || daemon(&directory, "r2").is_none().then_some(());
    until(TIMEOUT, gone, || "r2's data plane is still there".into());
    assert!(has_xdp(&lab, "r2", "r1"), "its ports stay at work");
    lab.ping("h1", &[&sink]);
    kaido.run(&["dataplane", "show", "--node", "r2"]).failed(1, &["no data plane answers on"]);
    let said = kaido.ok(&["lab", "ls"]);
    assert!(said.contains("the data plane of r2 exited") && said.contains("degraded"), "{said}");

    kaido.ok(&start);
    assert!(!kaido.ok(&["lab", "ls"]).contains("exited"));
    let before = packets(&kaido, "r2");
    lab.ping("h1", &[&sink]);
    assert!(packets(&kaido, "r2") > before, "{}", show(&kaido, "r2"));
    let count = datagrams.finish();
    assert!(count.sent > 100, "{count:?}");
    count.assert_whole("all the time");
    // It applies a user's file, and restores its configuration after a restart.
    let file = kaido.file("dataplane.yaml", "ports: {r1: {}, r3: {}}\nlimits: {sids: 8192}\n");
    kaido.ok(&["dataplane", "apply", "--node", "r2", &file]);
    kaido.ok(&["dataplane", "detach", "--node", "r2"]);
    assert!(!has_xdp(&lab, "r2", "r1"));
    lab.ping("h1", &[&sink]);
    kaido.run(&["lab", "start", "h1"]).failed(2, &["h1 has no daemon"]);

    // Without ports it leaves no state when it exits, and starts without any.
    kill(daemon(&directory, "r2").unwrap(), Signal::SIGTERM).unwrap();
    let state = directory.join("nodes/r2/dataplane");
    let empty = || (fs::read_dir(&state).unwrap().count() == 0).then_some(());
    until(TIMEOUT, empty, || format!("{:?}", fs::read_dir(&state).unwrap().collect::<Vec<_>>()));
    until(TIMEOUT, gone, || "r2's data plane is still there".into());
    kaido.ok(&start);
    assert_eq!(show(&kaido, "r2")["ports"], serde_json::json!([]));
    kaido.ok(&["dataplane", "apply", "--node", "r2", &file]);
    assert!(has_xdp(&lab, "r2", "r1"));
    lab.ping("h1", &[&sink]);
    lab.down();
    before_all.assert_restored(&kaido);
}

#[test]
fn root_a_link_that_is_cut_and_mended_is_sent_over_again() {
    let kaido = kaido();
    let text = with_xdp(CHAIN).replace("r1-r2,", "r1-r2: {rate: 50mbit},");
    let topology = resolved(&text);
    let lab = kaido.lab_up(&text);
    steer(&lab, &topology, &paths(&topology)[2]);
    let far = addresses(&topology, "h2");
    lab.ping("h1", &far.each_ref().map(String::as_str));
    for link in ["r1-r2", "r2-r3"] {
        lab.link(link, &["down"]);
        let ping = ["ping", "-n", "-c", "1", "-W", "1", far[0].as_str()];
        assert_ne!(lab.run("h1", &ping).code, Some(0), "{link} is cut");
        lab.link(link, &["up"]);
        let reaches = || lab.run("h1", &ping).code.filter(|code| *code == 0);
        until(TIMEOUT, reaches, || show(&kaido, "r1").to_string());
    }
    // In XDP as before, once the neighbors are resolved: until then the kernel forwards.
    let in_xdp = || {
        let before = ["r1", "r2"].map(|router| packets(&kaido, router));
        lab.ping("h1", &far.each_ref().map(String::as_str));
        let now = ["r1", "r2"].map(|router| packets(&kaido, router));
        (now == before.map(|packets| packets + 2)).then_some(())
    };
    until(TIMEOUT, in_xdp, || format!("{} {}", show(&kaido, "r1"), show(&kaido, "r2")));
}

/// Frames larger than a page.
#[test]
fn root_the_largest_mtu_passes_xdp() {
    let kaido = kaido();
    let text = with_xdp(CHAIN).replace("name: chain\n", "name: chain\nmtu: 9000\n");
    let topology = resolved(&text);
    assert_eq!(topology.mtu, 9000);
    let lab = kaido.lab_up(&text);
    steer(&lab, &topology, &paths(&topology)[1]);
    for (address, largest) in addresses(&topology, "h2").iter().zip([8972, 8952]) {
        lab.ping("h1", &[address]);
        let before = packets(&kaido, "r2");
        let line = format!("ping -n -c 3 -i 0.01 -W 3 -M do -s {largest} {address}");
        let text = lab.exec("h1", &line);
        assert!(text.contains("3 received"), "{text}");
        assert_eq!(packets(&kaido, "r2") - before, 3, "{}", show(&kaido, "r2"));
    }
}

#[test]
fn root_ospf_converges_and_reconverges_above_xdp() {
    let kaido = kaido();
    let text = with_xdp(FRR);
    let lab = kaido.lab_up(&text);
    assert!(has_xdp(&lab, "r1", "lan0"));
    assert_full_mesh(&lab);
    lab.link("lan0", &["down"]);
    let [sink, _] = addresses(&resolved(&text), "h2");
    let ping = ["ping", "-n", "-c", "1", "-W", "1", &sink];
    let reaches = || lab.run("h1", &ping).code.filter(|code| *code == 0);
    until(Duration::from_secs(30), reaches, || lab.exec("r1", "ip route"));
    lab.link("lan0", &["up"]);
    let [sink, _] = addresses(&resolved(&text), "h3");
    let ping = ["ping", "-n", "-c", "1", "-W", "1", &sink];
    let reaches = || lab.run("h1", &ping).code.filter(|code| *code == 0);
    until(Duration::from_secs(30), reaches, || lab.exec("r1", "ip route"));
}
