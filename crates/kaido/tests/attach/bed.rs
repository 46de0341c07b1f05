//! A bridge between two hosts, with a program at one of its ports:
//!
//! ```text
//!  h1 --- p1 | program | p4-p1 --- br0 --- p2 --- h2
//! ```

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use netlink::{Handle, Link, Namespace};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use testkit::{Hosts, Kaido, Said, until};

/// Passes all packets; the table `filter` drops EtherTypes of a port.
pub(crate) const FILTER: &str = include_str!("../clients/filter.p4");

/// Timeout of events that normally occur immediately.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// Threads poll for packets, so that the tests run one after the other.
static PROCESSORS: Mutex<()> = Mutex::new(());

pub(crate) struct Bed {
    pub(crate) hosts: Hosts,
    pub(crate) kaido: Kaido,
    /// The program.
    pub(crate) program: String,
    _turn: MutexGuard<'static, ()>,
}

impl Bed {
    pub(crate) fn new() -> Self {
        let turn = PROCESSORS.lock().unwrap_or_else(PoisonError::into_inner);
        let kaido = Kaido::new(env!("CARGO_BIN_EXE_kaido"));
        let program = kaido.file("filter.p4", FILTER);
        let bed = Self { hosts: Hosts::new(), kaido, program, _turn: turn };
        bed.at_switch("ip link add br0 type bridge");
        bed.at_switch("ip link set br0 up");
        bed.at_switch("ip link set p2 master br0");
        bed
    }

    /// Writes a tenants file with settings of the only tenant, `blue`, which owns p1.
    pub(crate) fn tenants(&self, settings: &str) -> String {
        let text =
            format!("tenants:\n  blue: {{program: filter.p4, ports: {{p1: 1}}{settings}}}\n");
        self.kaido.file("tenants.yaml", &text)
    }

    /// Runs a command line in the switch's namespace, which must succeed.
    #[track_caller]
    pub(crate) fn at_switch(&self, line: &str) -> String {
        Said::of_words(&self.hosts.switch, line).ok()
    }

    /// Runs the command to its end in the switch's namespace.
    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        let mut command = self.kaido.command(&[&["p4", "attach"], arguments].concat());
        self.hosts.switch.run(|| Said::run(&mut command)).expect("root enters a namespace")
    }

    /// Starts the command, and puts the new interface of p1 into the bridge.
    #[track_caller]
    pub(crate) fn attach(&self, arguments: &[&str]) -> Running {
        let running = self.start(arguments, "p1");
        self.at_switch("ip link set p4-p1 master br0");
        self.hosts.await_path(|| format!("{}\n{:#}", running.log(), self.stats()));
        running
    }

    /// Starts the command, and waits until an interface is attached.
    #[track_caller]
    pub(crate) fn start(&self, arguments: &[&str], interface: &str) -> Running {
        self.start_until(arguments, &format!("p4-{interface} takes the place of {interface}"))
    }

    /// Starts the command, and waits until it has printed a line.
    #[track_caller]
    pub(crate) fn start_until(&self, arguments: &[&str], line: &str) -> Running {
        let mut running = self.spawn(arguments);
        let is_ready = || {
            let ended = running.child.try_wait().expect("it is a child");
            assert!(ended.is_none(), "{ended:?}: {}", running.log());
            running.log().contains(line).then_some(())
        };
        until(TIMEOUT, is_ready, || "it is not ready".to_owned());
        running
    }

    /// Starts another command in a namespace, with a log in the test's directory.
    pub(crate) fn background(&self, host: &Namespace, mut command: Command, log: &str) -> Running {
        let log = self.kaido.directory().join(log);
        let file = std::fs::File::create(&log).expect("/tmp takes a file");
        command.stderr(file).stdout(Stdio::null());
        let child = host.run(|| command.spawn()).expect("root enters a namespace");
        Running { child: child.expect("it starts"), log }
    }

    /// Starts the command.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Running {
        let command = self.kaido.command(&[&["p4", "attach"], arguments].concat());
        self.background(&self.hosts.switch, command, "log")
    }

    /// State of the only client.
    pub(crate) fn stats(&self) -> Value {
        self.kaido.json(&["xsk", "stats"])
    }

    /// Runs `kaido p4 table` with the program of client `name`.
    #[track_caller]
    pub(crate) fn table(&self, name: &str, arguments: &[&str]) {
        let socket = self.kaido.run_directory().join("xsk").join(name).join("p4runtime.sock");
        let address = format!("unix:{}", socket.display());
        let (command, rest) = arguments.split_first().expect("a command");
        self.kaido.ok(&[&["p4", "table", command, "--address", &address], rest].concat());
    }

    /// Returns true if h2 answers h1.
    pub(crate) fn answers(&self) -> bool {
        Said::of_words(&self.hosts.h1, "ping -n -c 1 -W 1 10.0.0.2").code == Some(0)
    }

    /// An interface of the switch's namespace.
    pub(crate) fn link(&self, name: &str) -> Option<Link> {
        link(&self.hosts.switch, name)
    }

    /// Everything of p1 that is to be restored, without counters.
    pub(crate) fn settings(&self) -> String {
        self.settings_of("p1")
    }

    /// The same of another port.
    pub(crate) fn settings_of(&self, port: &str) -> String {
        let shown = self.at_switch(&format!("ip -d link show dev {port}"));
        let offloads = self.at_switch(&format!("ethtool -k {port}"));
        format!("{shown}{offloads}")
    }
}

/// An interface of a namespace.
pub(crate) fn link(namespace: &Namespace, name: &str) -> Option<Link> {
    let links = Handle::within(namespace).and_then(|mut handle| handle.links());
    links.expect("root reads links").into_iter().find(|link| link.name == name)
}

/// A running `kaido p4 attach`, ended on drop.
pub(crate) struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// Sends a signal, and returns the exit code.
    pub(crate) fn end(&mut self, signal: Signal) -> Option<i32> {
        kill(self.pid(), signal).expect("it runs");
        self.code()
    }

    /// Waits for the end, and returns the exit code.
    pub(crate) fn code(&mut self) -> Option<i32> {
        let ended = || self.child.try_wait().expect("it is a child");
        until(TIMEOUT, ended, || "it does not end".to_owned()).code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = kill(self.pid(), Signal::SIGTERM);
        testkit::pause(Duration::from_millis(100));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
