//! Programs and ports that come and go in random order, under packets.
//!
//! `KAIDO_CHANGES` sets the number of changes; the default is short (`make soak`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::openvswitch::Switch;
use testkit::{Random, Said, until};

use crate::bed::{Bed, kaido_of};
use crate::openvswitch::start;

const TIMEOUT: Duration = Duration::from_secs(20);
/// Time between two kills of the program's process. Eight failures in a minute evict a tenant.
const KILLS: Duration = Duration::from_secs(10);
/// Changes on the same ports. After some 30 starts on the same ports, Open vSwitch forwards
/// nothing, also without Kaido.
const CHANGES_OF_PORTS: u32 = 20;

/// Changes of a switch and its programs, each of which ends with the state before it or is undone
/// by the next one of its kind.
struct Changes<'a> {
    bed: &'a Bed,
    switch: Switch,
    is_detached: bool,
    has_entry: bool,
    killed: Instant,
}

impl Changes<'_> {
    /// Makes a random change, and returns its name.
    fn change(&mut self, random: &mut Random) -> &'static str {
        match random.bits() % 16 {
            0..6 => self.attach_or_detach(),
            6..11 => self.add_or_delete_entry(),
            11..14 => self.add_port_again(),
            14 => self.kill_process(),
            _ => self.restart_switch(),
        }
    }

    fn attach_or_detach(&mut self) -> &'static str {
        let words: &[&str] = if self.is_detached {
            &["attach", "blue", "p2", "--port", "2"]
        } else {
            &["detach", "p2"]
        };
        self.bed.kaido.ok(&[&["xsk"], words].concat());
        self.is_detached = !self.is_detached;
        "attachment"
    }

    fn add_or_delete_entry(&mut self) -> &'static str {
        let entry = ["filter", "input_port=1", "type=0x88cc"];
        match self.has_entry {
            true => self.bed.table(&[&["delete"], &entry[..]].concat()),
            false => self.bed.table(&[&["add"], &entry[..], &["drop()"]].concat()),
        };
        self.has_entry = !self.has_entry;
        "entry"
    }

    fn add_port_again(&mut self) -> &'static str {
        self.switch.vsctl(&["del-port", "br0", "p2"]).ok();
        self.switch.add_port("br0", "p2", &[]);
        "port"
    }

    fn kill_process(&mut self) -> &'static str {
        if self.killed.elapsed() < KILLS {
            return self.add_or_delete_entry();
        }
        self.killed = Instant::now();
        let process = self.bed.await_sandbox(kaido_of(self.switch.pid()), None);
        kill(Pid::from_raw(process), Signal::SIGKILL).expect("it runs");
        "process"
    }

    /// The new client has the attachments of the file.
    fn restart_switch(&mut self) -> &'static str {
        self.switch.restart(Signal::SIGKILL, &self.bed.launch());
        for port in ["p1", "p2"] {
            self.switch.await_port(port);
        }
        (self.is_detached, self.has_entry) = (false, false);
        "switch"
    }

    /// Asserts that packets pass under the program in both directions, and that no frame is missing.
    fn assert_balanced(&self) {
        let Self { bed, switch, .. } = self;
        bed.hosts.await_path(|| switch.log());
        assert!(bed.hosts.ping(20).answers >= 20, "{}", switch.log());
        let sockets = || bed.kaido.json(&["xsk", "stats"])["sockets"].as_array().cloned();
        let are_quiet = || {
            let all = sockets().filter(|all| all.len() == 4)?;
            all.iter().all(|one| one["in_flight"] == 0 && one["passed"] != 0).then_some(all)
        };
        let missing = || format!("{:?}\n{}", sockets(), switch.log());
        for socket in until(TIMEOUT, are_quiet, missing) {
            assert_eq!(
                (&socket["wrong_owner"], &socket["unfit"]),
                (&0.into(), &0.into()),
                "{socket:#}"
            );
        }
    }
}

#[test]
fn root_packets_pass_after_programs_and_ports_have_come_and_gone() {
    let mut left: u32 = std::env::var("KAIDO_CHANGES").map_or(10, |text| text.parse().unwrap());
    let mut random = Random::seeded();
    while left > 0 {
        let bed = Bed::new(", hold: 10s");
        let switch = start(&bed);
        let killed = Instant::now();
        let mut changes =
            Changes { bed: &bed, switch, is_detached: false, has_entry: false, killed };
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    // Most are lost while a port is not there.
                    Said::of_words(&bed.hosts.h1, "ping -n -q -c 100 -i 0.002 -W 0.1 10.0.0.2");
                }
            });
            let number = left.min(CHANGES_OF_PORTS);
            let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                (0..number).map(|_| changes.change(&mut random)).collect::<Vec<_>>()
            }));
            is_over.store(true, Ordering::SeqCst);
            left -= number;
            println!("{left} left after {:?}", made.expect("each change succeeds"));
        });
        if changes.is_detached {
            changes.attach_or_detach();
        }
        changes.assert_balanced();
        changes.switch.assert_running();
    }
}
