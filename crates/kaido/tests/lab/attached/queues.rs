//! Interfaces attached by netfilter queues.

use std::process::Command;

use nix::sys::signal::Signal;
use testkit::Said;

use super::{Outside, STREAM, answers, ip, run, stream};
use crate::daemons::{end, signal};
use crate::{direction, kaido, soon};

const QUEUED: &str = "\
name: wan
nodes:
  ga: {attach: out1, via: nfqueue, prefixes: ['192.0.2.0/24', '2001:db8:a::/64']}
  gb: {attach: out2, via: nfqueue, prefixes: ['198.51.100.0/24', '2001:db8:b::/64']}
  x1: {router: virtual}
  x2: {router: virtual}
  h: {}
links:
  - ga-x1: {delay: 10ms}
  - x1-x2
  - x2-gb
  - x2-h
";

#[test]
fn root_outside_hosts_go_through_the_lab_by_queues() {
    let (kaido, outside) = (kaido(), Outside::routed());
    let file = kaido.file("wan.yaml", QUEUED);
    let up = |words: &[&str]| outside.kaido(&kaido, &[&["lab", "up", &file], words].concat());
    up(&[]).failed(
        1,
        &["does not forward packets from the lab: `sysctl -w net.ipv4.ip_forward=1` for IPv4"],
    );
    outside.forward();
    let before = outside.look();
    up(&[]).ok();
    for to in ["198.51.100.2", "2001:db8:b::2", "10.0.4.2", "fd02:0:0:4::2"] {
        assert!(answers(&outside.a, to), "{to}");
    }
    // Four routers in the lab, and the machine, which forwards packets that leave the lab.
    let said = run(&outside.a, "ping -n -c 1 -W 2 198.51.100.2");
    assert!(said.stdout.contains("ttl=59"), "{said}");
    let time = said.stdout.split("time=").nth(1).and_then(|text| text.split(' ').next());
    assert!((20.0..200.0).contains(&time.unwrap().parse::<f64>().unwrap()), "{said}");
    let said = run(&outside.b, "ping -n -c 1 -W 2 -t 2 192.0.2.2");
    assert!(said.stdout.contains("From 10.0.3.1 icmp_seq=1 Time to live exceeded"), "{said}");
    // The attachments at both ends are also counted as links, from socket to socket.
    let links = kaido.json(&["lab", "links"]);
    for (from, edge, key) in [("out1", "entry", "received"), ("ga", "exit", "sent")] {
        let way = direction(&links, "ga@out1", from);
        assert!(way[edge][key].as_u64().unwrap() >= 5, "{way}");
        assert_eq!(way[edge][key], way["arrived"], "{way}");
    }
    // The machine's own traffic is not affected.
    assert!(answers(&outside.a, "192.0.2.1"));
    up(&["--name", "other"]).failed(1, &["`out1` is attached to the lab wan"]);
    let exec = kaido.run(&["lab", "exec", "ga", "--", "true"]);
    exec.failed(2, &["ga represents the hosts on out1: programs cannot run there"]);
    outside.kaido(&kaido, &["lab", "down", "wan"]).ok();
    assert_eq!(outside.look(), before);
    assert!(answers(&outside.a, "198.51.100.2"), "the machine is as it was");
}

/// A stream of megabytes passes the queues intact.
#[test]
fn root_a_stream_passes_queues_whole() {
    let (kaido, outside) = (kaido(), Outside::routed());
    outside.forward();
    let file = kaido.file("wan.yaml", &QUEUED.replace(": {delay: 10ms}", ""));
    outside.kaido(&kaido, &["lab", "up", &file]).ok();
    for (to, from) in [("198.51.100.2", "192.0.2.2"), ("2001:db8:b::2", "2001:db8:a::2")] {
        let bytes = stream(&outside, to, from);
        assert_eq!(bytes, STREAM, "{to}");
    }
    outside.kaido(&kaido, &["lab", "down", "wan"]).ok();
}

#[test]
fn root_without_its_emulator_a_queue_is_open_or_closed_as_asked() {
    for (bypass, passes) in [("false", false), ("true", true)] {
        let (kaido, outside) = (kaido(), Outside::routed());
        outside.forward();
        let text = QUEUED.replace("::/64']}", &format!("::/64'], bypass: {bypass}}}"));
        let file = kaido.file("wan.yaml", &text);
        outside.kaido(&kaido, &["lab", "up", &file]).ok();
        assert!(answers(&outside.a, "198.51.100.2"));
        end(&kaido, "emulator");
        if passes {
            soon("packets pass by the lab", || answers(&outside.a, "198.51.100.2"));
        } else {
            assert!(!answers(&outside.a, "198.51.100.2"), "the way is closed");
        }
        let other = outside.kaido(&kaido, &["lab", "up", &file, "--name", "other"]);
        other.failed(1, &["`out1` is attached to the lab wan"]);
        // From any namespace: the machine is the namespace of `up`.
        kaido.ok(&["lab", "start", "emulator"]);
        let said = run(&outside.a, "ping -n -c 1 -W 2 198.51.100.2");
        assert!(said.stdout.contains("ttl=59"), "through the lab again: {said}");
        end(&kaido, "emulator");
        kaido.ok(&["lab", "down", "wan"]);
        assert!(!outside.look().contains("kaido"), "{}", outside.look());
    }
}

/// Rules are not forgotten, whatever happens to the files that record them.
#[test]
fn root_rules_are_not_forgotten_with_the_file_that_names_them() {
    let (kaido, outside) = (kaido(), Outside::routed());
    outside.forward();
    let before = outside.look();
    let file = kaido.file("wan.yaml", QUEUED);
    let up = || outside.kaido(&kaido, &["lab", "up", &file]).ok();
    up();
    let directory = kaido.run_directory().join("labs/wan");
    let config = directory.join("emulator.json");
    let whole = std::fs::read(&config).unwrap();
    for damaged in [&whole[..whole.len() / 2], b""] {
        std::fs::write(&config, damaged).unwrap();
        let says = ["cannot tell which", "emulator.json cannot be read", "iptables -t mangle -S"];
        kaido.run(&["lab", "down", "wan"]).failed(1, &says);
        assert!(outside.look().contains("kaido-"));
    }
    std::fs::write(&config, whole).unwrap();
    kaido.ok(&["lab", "down", "wan"]);
    assert_eq!(outside.look(), before);

    up();
    let rm = Said::run(Command::new("rm").arg("-rf").arg(&directory));
    assert_eq!(rm.code, Some(1), "mounts stay: {rm}");
    kaido.run(&["lab", "gc"]).failed(1, &["cannot tell which"]);
    for program in ["iptables", "ip6tables"] {
        run(&outside.machine, &format!("{program} -t mangle -F")).ok();
        run(&outside.machine, &format!("{program} -t mangle -X")).ok();
    }
    let collected = kaido.json(&["lab", "gc"]);
    assert_eq!(collected, serde_json::json!([{ "name": "wan", "removed": true }]));
    assert_eq!(outside.look(), before);
}

#[test]
fn root_labs_that_come_up_at_once_have_queues_of_their_own() {
    let (kaido, outside) = (kaido(), Outside::routed());
    outside.forward();
    let before = outside.look();
    let file = |name: &str, interface: &str, prefix: &str| {
        let attached = format!("attach: {interface}, via: nfqueue, prefixes: [{prefix}]");
        let nodes = format!("{{g: {{{attached}}}, x: {{router: virtual}}}}");
        kaido
            .file(&format!("{name}.yaml"), &format!("name: {name}\nnodes: {nodes}\nlinks: [g-x]\n"))
    };
    let files = [file("one", "out1", "192.0.2.0/24"), file("two", "out2", "198.51.100.0/24")];
    for _ in 0..3 {
        std::thread::scope(|scope| {
            for file in &files {
                scope.spawn(|| outside.kaido(&kaido, &["lab", "up", file]).ok());
            }
        });
        let chains = |rules: String| -> Vec<String> {
            let new = rules.lines().filter(|line| line.starts_with("-N kaido-"));
            new.map(str::to_owned).collect()
        };
        // Two chains for each address family and each lab.
        assert_eq!(chains(outside.look()).len(), 8, "{}", outside.look());
        kaido.ok(&["lab", "down", "one"]);
        assert_eq!(chains(outside.look()).len(), 4, "{}", outside.look());
        // If the rules cannot be removed, the lab that records them is kept.
        let mut down = kaido.command(&["lab", "down", "two"]);
        Said::run(down.env("PATH", "/nonexistent")).failed(1, &["iptables"]);
        kaido.ok(&["lab", "down", "two"]);
        assert_eq!(outside.look(), before);
    }
}

#[test]
fn root_packets_that_overflow_a_queue_are_counted() {
    const PACKETS: u64 = 100_000;
    let (kaido, outside) = (kaido(), Outside::routed());
    outside.forward();
    let file = kaido.file("wan.yaml", QUEUED);
    outside.kaido(&kaido, &["lab", "up", &file]).ok();
    assert!(answers(&outside.a, "198.51.100.2"));
    // A stopped emulator does not read its queue, which fills.
    signal(&kaido, "emulator", Signal::SIGSTOP);
    let send = || {
        let socket = std::net::UdpSocket::bind("192.0.2.2:0").unwrap();
        (0..PACKETS).filter(|_| socket.send_to(&[0], "198.51.100.2:9").is_ok()).count() as u64
    };
    let sent = outside.a.run(send).unwrap();
    signal(&kaido, "emulator", Signal::SIGCONT);
    let edge = || {
        let links = kaido.json(&["lab", "links"]);
        let entry = &direction(&links, "ga@out1", "out1")["entry"];
        let number = |key: &str| entry[key].as_u64().unwrap();
        (number("received"), number("overflowed"))
    };
    // A queue's capacity of packets was received, the others overflowed: every packet is counted.
    let is_all = |(received, overflowed)| overflowed > 0 && received + overflowed >= sent;
    soon("every packet has come or is lost", || is_all(edge()));
    let (received, overflowed) = edge();
    assert!(received + overflowed < sent + 100, "{received} and {overflowed} of {sent}");
    outside.kaido(&kaido, &["lab", "down", "wan"]).ok();
}

#[test]
fn root_an_emulator_restarts_without_the_interface_of_a_queue() {
    let (kaido, outside) = (kaido(), Outside::routed());
    outside.forward();
    let file = kaido.file("wan.yaml", QUEUED);
    outside.kaido(&kaido, &["lab", "up", &file]).ok();
    assert!(answers(&outside.a, "198.51.100.2"));
    ip(&outside.machine, &["link del out2"]);
    soon("it is told", || kaido.ok(&["lab", "ls"]).contains("gb:out2 is gone"));
    end(&kaido, "emulator");
    soon("the end is noticed", || kaido.ok(&["lab", "ls"]).contains("links are down"));
    let started = kaido.ok(&["lab", "start", "emulator"]);
    assert!(started.contains("gb:out2 is gone"), "{started}");
    // Packets reach the lab, but not the removed interface.
    assert!(answers(&outside.a, "10.0.4.2"));
    outside.kaido(&kaido, &["lab", "down", "wan"]).ok();
    assert!(!outside.look().contains("kaido"), "{}", outside.look());
}
