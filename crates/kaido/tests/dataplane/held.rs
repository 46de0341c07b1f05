//! Packets that stay with a service function for long: each gets its own outer header back.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::function_drops::drops;
use crate::functions::{FILE, expect, function_net};
use crate::net::Net;
use crate::numbered::{Numbered, receive};
use netlink::Namespace;
use testkit::Tap;

/// A consumer of two queues in the node, compiled from `hold.c`.
pub(crate) struct Consumer {
    child: Child,
    says: BufReader<ChildStdout>,
}

impl Consumer {
    /// Starts a consumer that holds packets until there are `count`; with 0 it accepts each one at
    /// once.
    pub(crate) fn start(net: &Net, count: u32) -> Self {
        Self::start_in(&net.node, net.kaido.directory(), count)
    }

    /// Does the same, and compiles into a directory.
    pub(crate) fn start_in(node: &Namespace, directory: &Path, count: u32) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dataplane/hold.c");
        let program = directory.join("hold");
        let mut compiler = Command::new("gcc");
        compiler.arg("-o").arg(&program).arg(source).arg("-lnetfilter_queue");
        assert!(compiler.status().unwrap().success());
        let mut command = Command::new(program);
        command.arg(count.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = node.run(|| command.spawn().unwrap()).unwrap();
        let says = BufReader::new(child.stdout.take().unwrap());
        let mut consumer = Self { child, says };
        consumer.expect("ready");
        for program in ["iptables", "ip6tables"] {
            for (queue, which) in [(1, ""), (2, "-p udp --sport 1112 ")] {
                let rule = format!("-I FORWARD -i kaido-in {which}-j NFQUEUE --queue-num {queue}");
                let run = || Command::new(program).args(rule.split(' ')).status().unwrap();
                assert!(node.run(run).unwrap().success());
            }
        }
        consumer
    }

    /// Waits for this line of the consumer's output.
    fn expect(&mut self, word: &str) {
        let mut line = String::new();
        self.says.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), word);
    }

    fn let_go(&mut self) {
        let mut stdin = self.child.stdin.take().unwrap();
        stdin.write_all(b"\n").unwrap();
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn root_a_hundred_thousand_packets_wait_and_each_gets_its_own_header_back() {
    let count = 100_000;
    let mut net = function_net();
    net.start(&[]);
    net.apply(&format!("{FILE}limits: {{ held: 131072 }}\n"));
    expect(&net, "10.9.0.1", true);
    let mut consumer = Consumer::start(&net, count);
    let received = net.right.run(|| Tap::open("port")).unwrap();
    Numbered::new(&net).send(0..count);
    consumer.expect("held");
    std::thread::scope(|scope| {
        scope.spawn(|| receive(&received, count));
        consumer.let_go();
        consumer.expect("gone");
    });
}

#[test]
fn root_packets_in_a_queue_outlive_the_daemon() {
    let count = 1_000;
    let mut net = function_net();
    net.start(&[]);
    net.apply(FILE);
    expect(&net, "10.9.0.1", true);
    let mut consumer = Consumer::start(&net, count);
    let received = net.right.run(|| Tap::open("port")).unwrap();
    let numbered = Numbered::new(&net);
    numbered.send(0..count / 2);
    net.kill();
    net.start(&[]);
    numbered.send(count / 2..count);
    consumer.expect("held");
    // The program of the next daemon has taken over.
    net.end();
    net.start(&[]);
    consumer.let_go();
    receive(&received, count);
    consumer.expect("gone");
}

/// A queue without a reader drops its packets.
#[test]
fn root_drops_of_a_queue_are_counted_where_the_packet_was_queued() {
    let mut net = function_net();
    net.start(&[]);
    net.apply(FILE);
    expect(&net, "10.9.0.1", true);
    let queue = "-I FORWARD -i kaido-in -j NFQUEUE --queue-num 7";
    let run = || Command::new("iptables").args(queue.split(' ')).status().unwrap();
    assert!(net.node.run(run).unwrap().success());
    expect(&net, "10.9.0.1", false);
    assert_eq!(drops(&net)["forward"], 3);
}
