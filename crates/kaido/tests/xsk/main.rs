//! `kaido xsk`, with clients that open no AF_XDP socket.

mod ending;
mod files;
mod links;
mod metrics;
mod modes;
mod names;
mod ports;
mod preload;
mod programs;

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use testkit::{Kaido, Said, preloads, until};

/// Timeout for events that normally occur immediately.
const TIMEOUT: Duration = Duration::from_secs(60);

const FIREWALL: &str = include_str!("../../../p4/tests/programs/firewall.p4");
const TABLE: &str = include_str!("../../../p4/tests/programs/table_exact.p4");

/// Two tenants, with the programs of [`kaido`].
const TENANTS: &str = "tenants:\n\
                       \x20 blue: {program: firewall.p4, ports: {eth1: 1}}\n\
                       \x20 red: {program: table.p4, ports: {eth2: 4, eth3: 5}, device: 7}\n";

/// Returns the command, with programs and the tenants file `tenants.yaml` in its directory.
fn kaido() -> Kaido {
    let program = Path::new(env!("CARGO_BIN_EXE_kaido"));
    preloads(program);
    let kaido = Kaido::new(program);
    kaido.file("firewall.p4", FIREWALL);
    kaido.file("table.p4", TABLE);
    kaido.file("tenants.yaml", TENANTS);
    kaido
}

/// Runs a client to its end.
fn run(kaido: &Kaido, arguments: &[&str], client: &[&str]) -> Said {
    let config = kaido.directory().join("tenants.yaml");
    let config = ["xsk", "run", "--config", config.to_str().expect("it is ASCII")];
    kaido.run(&[&config, arguments, &["--"], client].concat())
}

/// Asserts that no client has left anything.
#[track_caller]
fn assert_empty(kaido: &Kaido) {
    let Ok(directory) = std::fs::read_dir(kaido.run_directory().join("xsk")) else { return };
    let left: Vec<_> = directory.map(|entry| entry.expect("an entry").file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Returns the state of a client.
fn stats(kaido: &Kaido, name: &str) -> Value {
    kaido.json(&["xsk", "stats", name])
}

/// A running command with its client. On drop, both are killed.
struct Running {
    child: Child,
    /// Process of the client.
    client: Pid,
}

impl Running {
    fn start(kaido: &Kaido, name: &str, arguments: &[&str]) -> Self {
        Self::with_client(kaido, name, arguments, &["/bin/sleep", "300"])
    }

    fn with_client(kaido: &Kaido, name: &str, arguments: &[&str], client: &[&str]) -> Self {
        let config = kaido.directory().join("tenants.yaml");
        let config = config.to_str().expect("it is ASCII");
        let mut command = kaido.command(&["xsk", "run", "--config", config, "--name", name]);
        command.args(arguments).arg("--").args(client).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let ask = || {
            if let Some(status) = child.try_wait().expect("it is a child") {
                let mut text = String::new();
                let errors = child.stderr.as_mut().expect("it is a pipe");
                errors.read_to_string(&mut text).expect("text");
                panic!("{status}: {text}");
            }
            let said = kaido.run(&["xsk", "stats", name, "--json"]);
            (said.code == Some(0)).then_some(said.stdout)
        };
        let said = until(TIMEOUT, ask, || "it does not respond".to_owned());
        let said: Value = serde_json::from_str(&said).expect("JSON");
        let client = said["process"].as_i64().expect("a process") as i32;
        Self { child, client: Pid::from_raw(client) }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("it runs");
    }

    /// Returns the exit code.
    fn code(&mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }

    /// Returns true if the client has ended.
    fn is_client_gone(&self) -> bool {
        kill(self.client, None).is_err()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // They may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = kill(self.client, Signal::SIGKILL);
    }
}
