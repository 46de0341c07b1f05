//! Executes the commands of docs/mobile.md literally, and sends GTP-U between a base station and a UPF by
//! scapy:
//!
//! ```text
//!  gnb eth0 --- eth1 | gw1 | eth0 --- eth0 | gw2 | eth1 --- eth0 upf
//! ```

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::machines::{Machines, perform};
use crate::net::ip;

const PAGE: &str = include_str!("../../../../docs/mobile.md");
const PYTHON: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/../tools/scapy/bin/python");
const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/dataplane/mobile.py");

/// Number of packets in each direction and family.
const PACKETS: u64 = 40;

/// A process that ends with the test.
struct Peer(Child);

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn root_tunnels_of_gtp_u_pass_two_gateways() {
    let links = [
        (("gw1", "eth0"), ("gw2", "eth0")),
        (("gw1", "eth1"), ("gnb", "eth0")),
        (("gw2", "eth1"), ("upf", "eth0")),
    ];
    let mut machines = Machines::new(&["gw1", "gw2"], &["gnb", "upf"], &links);
    for (host, v4, v6, gateway) in [
        ("gnb", "10.0.1.2/24", "fd00:a::2/64", ("10.0.1.1", "fd00:a::1")),
        ("upf", "10.0.9.2/24", "fd00:b::2/64", ("10.0.9.1", "fd00:b::1")),
    ] {
        machines.run(host, "ip link set eth0 up");
        ip(
            &machines.hosts[host],
            &[
                "link set lo up",
                &format!("addr add {v4} dev eth0"),
                &format!("addr add {v6} dev eth0 nodad"),
                &format!("route add default via {}", gateway.0),
                &format!("-6 route add default via {}", gateway.1),
            ],
        );
    }
    assert!(perform(PAGE, &mut machines) > 20);
    machines.wait_for_addresses();
    let peer = |words: &[&str]| {
        let mut command = Command::new(PYTHON);
        command.arg(PEER).args(words).stdout(Stdio::piped());
        command
    };
    let mut upf = Peer(machines.hosts["upf"].run(|| peer(&["upf"]).spawn().unwrap()).unwrap());
    let mut ready = String::new();
    BufReader::new(upf.0.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    for to in ["10.0.9.2", "fd00:b::2"] {
        let count = PACKETS.to_string();
        let run = || peer(&["gnb", to, &count]).output().unwrap();
        let said = machines.hosts["gnb"].run(run).unwrap();
        assert!(said.status.success(), "{to}: {}", machines.servers["gw1"].show());
        let text = String::from_utf8(said.stdout).unwrap();
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for (number, line) in (0..PACKETS).zip(&lines) {
            let down = &line["answer"];
            // The UPF's answer contains the session of the packet that it got.
            let up: Value = serde_json::from_str(down["payload"].as_str().unwrap()).unwrap();
            let teid = 0x8000_0000 + number;
            let uplink = json!([up["teid"], up["type"], up["qfi"], up["payload"]]);
            assert_eq!(uplink, json!([teid, 1, number % 64, line["sent"]]), "{to} {number}");
            let downlink = json!([down["teid"], down["type"], down["qfi"], down["rqi"]]);
            assert_eq!(downlink, json!([teid ^ 0xffff_ffff, 0, number % 64, 1]), "{to} {number}");
            // IPv4 tunnels keep their addresses; with IPv6, the source is the gateway's.
            let peer = if to.contains(':') { "fd00:0:1::1" } else { to };
            assert_eq!(line["peer"], peer);
        }
        let echo = &lines[PACKETS as usize];
        assert_eq!(*echo, json!({"echo": 2, "seq": 7}), "{to}");
    }
    for (server, sids) in [("gw1", "fd00:0:1"), ("gw2", "fd00:0:2")] {
        for sid in [format!("{sids}:e400::/56"), format!("{sids}:e6::/64")] {
            let packets = machines.servers[server].packets(&sid);
            assert!(packets >= Some(PACKETS), "{sid}: {packets:?}");
        }
    }
}
