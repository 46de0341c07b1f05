//! `kaido dataplane run` in a namespace, and its commands.

use std::process::{Child, Command};
use std::time::Duration;

use netlink::Namespace;
use serde_json::Value;
use testkit::{Kaido, until};

/// A data plane's daemon; it is killed on drop.
pub(crate) struct Daemon {
    pub(crate) kaido: Kaido,
    pub(crate) node: Namespace,
    child: Option<Child>,
}

impl Daemon {
    /// Creates the daemon of a node without starting it.
    pub(crate) fn new(kaido: Kaido, node: Namespace) -> Self {
        Self { kaido, node, child: None }
    }

    /// Returns the state directory.
    pub(crate) fn state(&self) -> String {
        self.kaido.run_directory().join("dataplane").to_str().unwrap().into()
    }

    /// Starts the daemon in the node; returns when it answers.
    pub(crate) fn start(&mut self, more: &[&str]) {
        let command = self.kaido.command(&[&["dataplane", "run"], more].concat());
        self.start_as(command);
    }

    /// Starts the daemon with this command.
    pub(crate) fn start_as(&mut self, mut command: Command) {
        let path = self.kaido.directory().join("log");
        let log = std::fs::File::options().create(true).append(true).open(path).unwrap();
        command.stderr(log);
        let child = self.node.run(|| command.spawn().unwrap()).unwrap();
        self.child = Some(child);
        until(
            Duration::from_secs(20),
            || self.kaido.run(&["dataplane", "show"]).code.filter(|code| *code == 0),
            || self.log(),
        );
    }

    /// Returns the process ID.
    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.kaido.directory().join("log")).unwrap_or_default()
    }

    /// Kills the daemon with SIGKILL.
    pub(crate) fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Asks the daemon to end, and waits for it.
    pub(crate) fn end(&mut self) {
        let mut child = self.child.take().unwrap();
        let pid = nix::unistd::Pid::from_raw(child.id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        assert!(child.wait().unwrap().success(), "{}", self.log());
    }

    pub(crate) fn apply(&self, text: &str) -> Value {
        let file = self.kaido.file("dataplane.yaml", text);
        let said = self.kaido.json(&["dataplane", "apply", &file]);
        self.wait_for_cards();
        said
    }

    /// Waits for links to come up again that a card has reset to attach a program.
    fn wait_for_cards(&self) {
        if !testkit::has_cards() {
            return;
        }
        // The driver reports the reset after a moment.
        testkit::pause(Duration::from_secs(1));
        let links = || crate::net::show(&self.node, "-o link show up");
        let is_down = |line: &str| line.contains("NO-CARRIER") && !line.contains("@");
        until(Duration::from_secs(20), || (!links().lines().any(is_down)).then_some(()), links);
    }

    pub(crate) fn show(&self) -> Value {
        self.kaido.json(&["dataplane", "show"])
    }

    /// Returns the packet count of a SID; `None` if the SID does not exist.
    pub(crate) fn packets(&self, sid: &str) -> Option<u64> {
        let shown = self.show();
        let sids = shown["sids"].as_array().unwrap();
        let found = sids.iter().find(|entry| entry["name"] == sid);
        found.map(|entry| entry["packets"].as_u64().unwrap())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = nix::mount::umount(&*std::path::Path::new(&self.state()).join("bpf"));
    }
}
