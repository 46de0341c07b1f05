//! Tenants of a client, between two hosts.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use testkit::{Hosts, Kaido, Launch, until};

/// Passes all packets; the table `filter` drops EtherTypes.
pub(crate) const FILTER: &str = include_str!("filter.p4");

/// A switch's thread polls without a pause, so that the tests run one after the other.
static PROCESSORS: Mutex<()> = Mutex::new(());

/// Hosts, and a `kaido xsk run` that starts a client between them.
pub(crate) struct Bed {
    pub(crate) hosts: Hosts,
    pub(crate) kaido: Kaido,
    config: String,
    _turn: MutexGuard<'static, ()>,
}

impl Bed {
    /// Creates hosts and a tenants file with the given settings of the only tenant, `blue`, which
    /// owns both ports.
    pub(crate) fn new(settings: &str) -> Self {
        let turn = PROCESSORS.lock().unwrap_or_else(PoisonError::into_inner);
        testkit::preloads(Path::new(env!("CARGO_BIN_EXE_kaido")));
        let kaido = Kaido::new(env!("CARGO_BIN_EXE_kaido"));
        kaido.file("filter.p4", FILTER);
        let text = format!(
            "tenants:\n  blue: {{program: filter.p4, ports: {{p1: 1, p2: 2}}{settings}}}\n"
        );
        let config = kaido.file("tenants.yaml", &text);
        Self { hosts: Hosts::new(), kaido, config, _turn: turn }
    }

    /// The way to start a client under `kaido xsk run`.
    pub(crate) fn launch(&self) -> Launch {
        let kaido = env!("CARGO_BIN_EXE_kaido");
        let run = self.kaido.run_directory();
        let wrapper = [kaido, "xsk", "run", "--config", &self.config, "--"];
        Launch::through(wrapper).with("KAIDO_RUN", run.to_str().expect("the path is ASCII"))
    }

    /// Runs `kaido p4 table` with the tenant's program.
    pub(crate) fn table(&self, arguments: &[&str]) -> String {
        let socket = self.kaido.run_directory().join("xsk/default/p4runtime.sock");
        let address = format!("unix:{}", socket.display());
        let (command, rest) = arguments.split_first().expect("a command");
        self.kaido.ok(&[&["p4", "table", command, "--address", &address], rest].concat())
    }

    /// Pids of the running sandbox processes below a process.
    pub(crate) fn sandboxes(&self, ancestor: i32) -> Vec<i32> {
        descendants(ancestor).into_iter().filter(|pid| is_sandbox(*pid)).collect()
    }

    /// Waits for a sandbox process below a process that is not `other`.
    pub(crate) fn await_sandbox(&self, ancestor: i32, other: Option<i32>) -> i32 {
        let limit = std::time::Duration::from_secs(20);
        let new = || self.sandboxes(ancestor).into_iter().find(|pid| Some(*pid) != other);
        until(limit, new, || format!("no new process, {other:?}"))
    }
}

fn name(pid: i32) -> String {
    let path = format!("/proc/{pid}/comm");
    std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

/// A sandbox process is executed by a descriptor; its path is the first argument.
fn is_sandbox(pid: i32) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).next().is_some_and(|path| path.ends_with(b"kaido-sandbox"))
}

fn parent(pid: i32) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())
}

/// Pid of the nearest `kaido` among the ancestors.
pub(crate) fn kaido_of(pid: i32) -> i32 {
    let mut at = pid;
    while name(at) != "kaido" {
        at = parent(at).filter(|pid| *pid > 1).expect("`kaido` is an ancestor");
    }
    at
}

fn descendants(ancestor: i32) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").expect("there is /proc").flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_below = |pid: &i32| {
        let mut at = *pid;
        while let Some(parent) = parent(at) {
            if parent == ancestor {
                return true;
            }
            at = parent;
        }
        false
    };
    pids.filter(is_below).collect()
}

/// Path of the library, which [`Bed::new`] has put there.
pub(crate) fn library() -> String {
    let kaido = Path::new(env!("CARGO_BIN_EXE_kaido"));
    kaido.with_file_name("libkaido_xsk.so").to_str().expect("the path is ASCII").into()
}
