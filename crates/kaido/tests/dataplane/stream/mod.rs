//! A stream of frames through a node with a changing data plane, and judges that know the valid
//! results for each frame:
//!
//! ```text
//!                          +-- r --- right: judge
//!  generator: left --- l | node |
//!                          +-- s --- side: judge
//! ```
//! The generator yields to everything else on its CPU, so no ring overflows for long; lost
//! frames are counted by the interface.

pub(crate) mod frames;
pub(crate) mod state;

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bpf::attach::{Attached, Mode};
use bpf::proof::{Expected, Proof, Tally};
use netlink::{Batch, Handle, Namespace, VethEnd, add_veth};
use serde_json::Value;
use testkit::{Kaido, until};

use crate::daemon::Daemon;
use crate::net::{become_router, ip, slower};
use state::{LEFT, RIGHT, SIDE, State, WORLD_LEFT, WORLD_RIGHT, WORLD_SIDE};

/// Flows of each kind: enough to be spread over the node's paths.
const FLOWS: u32 = 1000;
/// More frames than all rings between generator and judge can hold: once this number has been sent,
/// no earlier frame is in flight.
const IN_FLIGHT: u64 = 16_384;
/// Maximum number of such rounds until frames of each kind must have arrived.
const MAX_ROUNDS: usize = 50;
/// Frames per call: starting and ending a call takes the kernel several milliseconds.
const PORTION: f64 = 131_072.0;
/// Timeout of every wait.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Stream {
    pub(crate) daemon: Daemon,
    world: Namespace,
    proof: Arc<Proof>,
    generator: Option<JoinHandle<()>>,
    /// Total number of frames to send.
    wanted: Arc<AtomicU64>,
    state: State,
    _judges: Vec<Attached>,
}

/// The fate of all frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) tally: Tally,
    /// Frames that the program left to the kernel or dropped; for a plain state, frames that the
    /// kernel has sent, because the counters are removed with the program.
    pub(crate) reasons: u64,
    /// Frames that interfaces could not take.
    pub(crate) overflow: u64,
}

impl Account {
    /// Returns the number of frames that are not accounted for.
    pub(crate) fn missing(&self) -> i64 {
        let known = self.tally.delivered + self.reasons + self.overflow;
        self.tally.sent as i64 - known as i64
    }
}

impl Stream {
    /// Creates the node with its daemon in the first state; no frame is sent yet.
    pub(crate) fn new() -> Self {
        Self::of(State::first())
    }

    /// Does the same with another state.
    pub(crate) fn of(state: State) -> Self {
        let (world, node) = (Namespace::unnamed().unwrap(), Namespace::unnamed().unwrap());
        connect(&world, &node);
        let mut proof = world.run(Proof::load).unwrap().unwrap();
        let samples: Vec<_> = frames::Kind::all(&state).iter().map(|kind| kind.sample()).collect();
        proof.send(&samples, FLOWS, WORLD_LEFT).unwrap();
        let judge = |interface| {
            let attach = || Attached::new(proof.judge(), interface, Mode::Native);
            world.run(attach).unwrap().unwrap()
        };
        let judges = [WORLD_RIGHT, WORLD_SIDE].map(judge).into();
        node.run(|| [RIGHT, SIDE].map(|port| proof.judge_kernel(port).unwrap())).unwrap();
        for line in state.commands(None) {
            ip(&node, &[&line]);
        }
        let daemon = Daemon::new(Kaido::new(env!("CARGO_BIN_EXE_kaido")), node);
        let mut stream = Self {
            daemon,
            world,
            proof: Arc::new(proof),
            generator: None,
            wanted: Arc::default(),
            state: state.clone(),
            _judges: judges,
        };
        stream.daemon.start(&[]);
        stream.expect(&state);
        stream.daemon.apply(&state.file());
        stream.settle();
        stream
    }

    fn expect(&self, state: &State) {
        for expected in frames::expected(state) {
            self.proof.expect(&expected).unwrap();
        }
    }

    /// Lets the generator send `count` more frames in the background.
    pub(crate) fn go_on(&mut self, count: u64) {
        self.wanted.fetch_add(count, Ordering::SeqCst);
        if self.generator.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let (world, proof, wanted) = (self.world.clone(), self.proof.clone(), self.wanted.clone());
        self.generator = Some(std::thread::spawn(move || {
            world.enter().unwrap();
            pin();
            let portion = (PORTION / slower() / slower()) as u32;
            while proof.tally().unwrap().sent < wanted.load(Ordering::SeqCst) {
                if let Err(error) = proof.generate(portion) {
                    // The tally includes the frames sent until then.
                    let said = format!("{error:?}");
                    assert!(said.contains("Interrupted"), "{said}");
                }
            }
        }));
    }

    /// Returns true if all frames have been sent.
    pub(crate) fn is_over(&self) -> bool {
        self.generator.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops the generator, and returns when no frame is in flight.
    pub(crate) fn stop(&mut self) -> Account {
        self.wanted.store(0, Ordering::SeqCst);
        if let Some(generator) = self.generator.take() {
            generator.join().unwrap();
        }
        let mut before = self.account();
        self.wanted.store(before.tally.sent, Ordering::SeqCst);
        until(
            TIMEOUT,
            || {
                let now = self.account();
                let rests = now == before && now.missing() == 0;
                before = now;
                rests.then_some(())
            },
            || format!("not all is accounted for: {:?}", self.account()),
        );
        before
    }

    /// Moves the node to another state while the stream runs, and checks the frames that arrive:
    /// results of the old or the new state during the change, and only of the new one after the
    /// daemon has followed and the frames in flight have arrived.
    pub(crate) fn change(&mut self, change: impl Fn(&mut State)) {
        self.changes(&[change]);
    }

    /// Does the same through several states, without waiting in between.
    pub(crate) fn changes<F: Fn(&mut State)>(&mut self, changes: &[F]) {
        let mut old = Vec::new();
        for change in changes {
            let before = self.state.clone();
            change(&mut self.state);
            old.extend(frames::expected(&before));
            self.expect(&self.state);
            for line in self.state.commands(Some(&before)) {
                ip(&self.daemon.node, &[&line]);
            }
            if self.state.file() != before.file() {
                self.daemon.apply(&self.state.file());
            }
        }
        self.settle();
        self.pass();
        let now = frames::expected(&self.state);
        for expected in old.iter().filter(|old| !now.contains(old)) {
            self.proof.expect_no_more(expected).unwrap();
        }
        self.assert_right();
    }

    /// Asserts that all frames of the state arrive, and no others. A stalled CPU loses the
    /// frames sent meanwhile, so frames of a kind may arrive later.
    pub(crate) fn assert_flowing(&self) {
        let before = self.arrived();
        let mut still = Vec::new();
        for _ in 0..MAX_ROUNDS {
            self.pass();
            still = self.stands_still(&before);
            if still.is_empty() {
                break;
            }
        }
        assert!(still.is_empty(), "{still:?} stand still in {:?}", self.state);
        self.assert_right();
    }

    /// Returns the kinds of which no frame has arrived since, or none by one of their paths.
    fn stands_still(&self, before: &[(Expected, u64)]) -> Vec<frames::Kind> {
        let after = self.arrived();
        let judge = usize::from(self.state.alone);
        let mut still = Vec::new();
        for (kind, what) in frames::Kind::all(&self.state).iter().enumerate() {
            let of_kind = |(expected, _): &&(Expected, u64)| {
                // With XDP the kernel has nothing to send, or only a few packets.
                let mut ways = state::Way::BOTH.iter();
                let by_it = ways.any(|way| way.judges()[judge] == expected.interface);
                expected.kind == kind && by_it
            };
            let then = before.iter().filter(of_kind);
            let grown: Vec<u64> =
                then.zip(after.iter().filter(of_kind)).map(|(then, now)| now.1 - then.1).collect();
            let flows = if what.is_spread() {
                grown.iter().all(|grown| *grown > 0)
            } else {
                grown.is_empty() || grown.iter().sum::<u64>() > 0
            };
            if !flows {
                still.push(*what);
            }
        }
        still
    }

    /// Waits until the daemon has followed the kernel.
    fn settle(&self) {
        // An order is executed between two polls of the kernel's events: after the second order the
        // daemon has seen all events from before the first.
        self.daemon.show();
        self.daemon.show();
        let shown = |sid: &str| {
            let shown = self.daemon.show();
            shown["sids"].as_array().unwrap().iter().any(|entry| entry["name"] == sid)
        };
        // XDP imports it; without XDP it stays the kernel's own.
        let is_taken = self.state.kernel_sid && !self.state.alone;
        let is_followed = || (shown("fd00:1::f/128") == is_taken).then_some(());
        until(TIMEOUT, is_followed, || self.daemon.show().to_string());
    }

    /// Waits until enough frames have been sent that all earlier ones have arrived. Without a
    /// stream no frame is in flight.
    pub(crate) fn pass(&self) {
        let from = self.proof.tally().unwrap().sent;
        let passed = || {
            let sent = self.proof.tally().unwrap().sent;
            (self.is_over() || sent >= from + IN_FLIGHT).then_some(())
        };
        until(TIMEOUT, passed, || "the generator sends nothing".into());
    }

    /// Asserts that no frame was wrong.
    pub(crate) fn assert_right(&self) {
        let tally = self.proof.tally().unwrap();
        if tally.wrong > 0 {
            let (interface, frame) = self.proof.evidence().unwrap().unwrap();
            let mut text = format!("{tally:?}, {:?}\nby {interface}: ", self.state);
            for byte in &frame {
                let _ = write!(text, "{byte:02x}");
            }
            for expected in frames::expected(&self.state) {
                if expected.interface == interface && expected.frame[14..] != frame[14..] {
                    let _ = write!(text, "\nkind {}: ", expected.kind);
                    for byte in &expected.frame {
                        let _ = write!(text, "{byte:02x}");
                    }
                }
            }
            panic!("{text}");
        }
    }

    /// Returns the number of frames that have arrived for each expectation of the current state.
    pub(crate) fn arrived(&self) -> Vec<(Expected, u64)> {
        let count = |expected: Expected| {
            let arrived = self.proof.arrived_as(&expected).unwrap();
            (expected, arrived)
        };
        frames::expected(&self.state).into_iter().map(count).collect()
    }

    pub(crate) fn account(&self) -> Account {
        let shown = self.daemon.show();
        let reasons = shown["reasons"].as_array().unwrap();
        let number = |value: &Value| value.as_u64().unwrap();
        let tally = self.proof.tally().unwrap();
        let reasons = if self.state.plain {
            tally.by_kernel
        } else {
            reasons.iter().map(|one| number(&one["passed"]) + number(&one["dropped"])).sum()
        };
        let overflow = [("left", &self.world), ("r", &self.daemon.node), ("s", &self.daemon.node)]
            .map(|(name, namespace)| refused(namespace, name))
            .iter()
            .sum();
        Account { tally, reasons, overflow }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.wanted.store(0, Ordering::SeqCst);
        if let Some(generator) = self.generator.take() {
            let _ = generator.join();
        }
    }
}

/// Returns the number of frames from XDP that the peer of a veth did not take.
pub(crate) fn refused(namespace: &Namespace, name: &str) -> u64 {
    let run = || std::process::Command::new("ethtool").args(["-S", name]).output().unwrap();
    let text = String::from_utf8(namespace.run(run).unwrap().stdout).unwrap();
    let count = |line: &str| {
        let (key, value) = line.trim().split_once(": ")?;
        let is_one = key.starts_with("tx_queue_") && key.ends_with("_xdp_xmit_errors");
        is_one.then(|| value.parse::<u64>().unwrap())
    };
    let counts: Vec<u64> = text.lines().filter_map(count).collect();
    assert!(!counts.is_empty(), "ethtool -S {name}: {text}");
    counts.iter().sum()
}

fn connect(world: &Namespace, node: &Namespace) {
    let end = |name, namespace, mac, index| VethEnd {
        name,
        namespace,
        mtu: 2000,
        mac: Some(mac),
        index: Some(index),
    };
    let mac = |last| netlink::Mac([2, 0, 0, 0, 0, last]);
    let mut batch = Batch::new();
    for (a, b) in [
        (end("l", node, mac(1), LEFT), end("left", world, mac(0xa), WORLD_LEFT)),
        (end("r", node, mac(2), RIGHT), end("right", world, mac(0xb), WORLD_RIGHT)),
        (end("s", node, mac(3), SIDE), end("side", world, mac(0xc), WORLD_SIDE)),
    ] {
        batch.push("a veth pair", add_veth(&a, &b));
    }
    Handle::new().unwrap().commit(batch).unwrap();
    // No other traffic than the stream.
    let silent = || netlink::sysctl::write("ipv6/conf/all/disable_ipv6", "1").unwrap();
    world.run(silent).unwrap();
    for name in ["left", "right", "side"] {
        ip(world, &[&format!("link set dev {name} up")]);
    }
    node.run(become_router).unwrap();
    ip(
        node,
        &[
            "link set dev lo up",
            "link set dev l up",
            "link set dev r up",
            "link set dev s up",
            "addr add fd00:a::1/64 dev l nodad",
            "addr add fd00:b::1/64 dev r nodad",
            "addr add fd00:c::1/64 dev s nodad",
            "addr add 10.0.1.1/24 dev l",
            "addr add 10.0.2.1/24 dev r",
            "addr add 10.0.3.1/24 dev s",
            "-6 route add fd00:2::/32 via fd00:c::2 dev s table 77",
        ],
    );
}

/// Pins the calling thread to one CPU: a queue between two CPUs would overflow.
fn pin() {
    let given = std::env::var("KAIDO_PROCESSOR").ok();
    let processor = given.map_or(0, |given| given.parse().expect("KAIDO_PROCESSOR is a number"));
    let mut one = nix::sched::CpuSet::new();
    one.set(processor).unwrap();
    nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &one).unwrap();
}
