//! Open vSwitch with the userspace datapath and AF_XDP ports, from Debian's packages.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use netlink::Namespace;
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::kaido::Said;
use crate::packages::{Launch, Packages};
use crate::service::Service;

/// Timeout of a start, and of a port until it is up.
const LIMIT: Duration = Duration::from_secs(10);

/// Open vSwitch: the daemons of the switch and of its database, with a private directory. Both end
/// on drop.
#[derive(Debug)]
pub struct Switch {
    packages: Packages,
    namespace: Namespace,
    // Ends before the database, from which it disconnects.
    switch: Service,
    _database: Service,
    folder: TempDir,
}

impl Switch {
    /// Starts a switch without bridges in a namespace. One thread, on the first processor, polls
    /// the ports. `launch` applies to the switch, not to its database.
    ///
    /// # Panics
    ///
    /// If the packages are missing, or the switch does not start within 10 seconds.
    pub fn start(namespace: &Namespace, launch: &Launch) -> Self {
        let packages = Packages::open("openvswitch");
        // A Unix socket's path is limited to 108 bytes, so keep the directory's path short.
        let folder = tempfile::Builder::new().prefix("kd").tempdir_in("/tmp");
        let folder = folder.expect("/tmp takes a folder");
        let database = start_database(&packages, namespace, folder.path());
        let switch = start_switch(&packages, namespace, folder.path(), launch);
        let namespace = namespace.clone();
        let mut switch = Self { packages, namespace, switch, _database: database, folder };
        switch.await_start();
        switch.vsctl(&["set", "Open_vSwitch", ".", "other_config:pmd-cpu-mask=0x1"]).ok();
        switch
    }

    /// Adds a bridge of the userspace datapath. It switches by MAC address until
    /// [`ofctl`](Self::ofctl) changes its flows.
    #[track_caller]
    pub fn add_bridge(&mut self, bridge: &str) {
        let kind = "datapath_type=netdev";
        self.change(&["add-br", bridge, "--", "set", "bridge", bridge, kind]);
    }

    /// Adds an interface to a bridge as an AF_XDP port in native mode, and waits until it is up.
    /// `settings` are columns of the table Interface, as in `options:n_rxq=2`.
    #[track_caller]
    pub fn add_port(&mut self, bridge: &str, interface: &str, settings: &[&str]) {
        let words = ["add-port", bridge, interface, "--", "set", "interface", interface];
        let native = ["type=afxdp", "options:xdp-mode=native"];
        self.change(&[&words[..], &native, settings].concat());
        self.await_port(interface);
    }

    /// Waits until a port is up.
    #[track_caller]
    pub fn await_port(&mut self, interface: &str) {
        let Self { packages, folder, switch, .. } = self;
        let show = || {
            let words = ["--columns=error,link_state,status", "list", "interface", interface];
            vsctl(packages, folder.path(), &words)
        };
        let state = || is_up(&show().stdout).then_some(());
        let missing = || format!("the port {interface} is not up:\n{}", show().output());
        switch.await_that(LIMIT, |_| state(), missing);
    }

    /// Runs `ovs-vsctl`, which changes the configuration and waits until the switch has applied it.
    pub fn vsctl(&self, arguments: &[&str]) -> Said {
        vsctl(&self.packages, self.folder.path(), arguments)
    }

    /// Runs `ovs-ofctl`, which reads and changes the flows of a bridge.
    pub fn ofctl(&self, arguments: &[&str]) -> Said {
        let mut command = tool(&self.packages, self.folder.path(), "usr/bin/ovs-ofctl");
        Said::of(command.arg("--timeout=10").args(arguments))
    }

    /// Runs `ovs-appctl`, which asks the running switch.
    pub fn appctl(&self, arguments: &[&str]) -> Said {
        appctl(&self.packages, self.folder.path(), arguments)
    }

    /// Returns the log of the switch and its wrapper.
    pub fn log(&self) -> String {
        self.switch.log()
    }

    /// Returns the process ID of `ovs-vswitchd`, which differs from that of a wrapper with a child.
    #[track_caller]
    pub fn pid(&self) -> i32 {
        let text = std::fs::read_to_string(self.folder.path().join("switch.pid"));
        let pid = text.ok().and_then(|text| text.trim().parse().ok());
        pid.unwrap_or_else(|| panic!("no process ID\n{}", self.switch.end_of_log()))
    }

    /// Asserts that the switch, or its wrapper, has not ended.
    #[track_caller]
    pub fn assert_running(&mut self) {
        assert!(self.switch.is_running(), "it has ended\n{}", self.switch.end_of_log());
    }

    /// Ends the switch with a signal and starts it again, perhaps in another way. It has the
    /// bridges and ports of its database; the ports may not be up yet.
    ///
    /// # Panics
    ///
    /// If the switch does not start within 10 seconds.
    pub fn restart(&mut self, signal: Signal, launch: &Launch) {
        self.switch.end(signal);
        // The new process writes them, and `await_start` must not find those of the old one.
        for name in ["switch.pid", "switch.ctl"] {
            let _ = std::fs::remove_file(self.folder.path().join(name));
        }
        self.switch = start_switch(&self.packages, &self.namespace, self.folder.path(), launch);
        self.await_start();
    }

    /// Waits until the switch answers.
    fn await_start(&mut self) {
        let Self { packages, folder, switch, .. } = self;
        let ask = || appctl(packages, folder.path(), &["version"]);
        let answers = || (ask().code == Some(0)).then_some(());
        switch.await_that(
            LIMIT,
            |_| answers(),
            || format!("the switch does not answer:\n{}", ask().output()),
        );
    }

    #[track_caller]
    fn change(&self, arguments: &[&str]) {
        let said = self.vsctl(arguments);
        // A port that cannot be is only a warning.
        let is_applied = said.code == Some(0) && said.stderr.is_empty();
        let words = arguments.join(" ");
        let end = || format!("{}\n{}", said.output(), self.switch.end_of_log());
        assert!(is_applied, "ovs-vsctl {words}: {}", end());
    }
}

/// Creates a database and starts its daemon.
fn start_database(packages: &Packages, namespace: &Namespace, folder: &Path) -> Service {
    let schema = packages.path("usr/share/openvswitch/vswitch.ovsschema");
    let database = folder.join("conf.db");
    let mut create = tool(packages, folder, "usr/bin/ovsdb-tool");
    Said::of(create.arg("create").args([&database, &schema])).ok();
    let mut command = tool(packages, folder, "usr/sbin/ovsdb-server");
    command.arg(format!("--remote=punix:{}", folder.join("db.sock").display()));
    command.arg(format!("--unixctl={}", folder.join("database.ctl").display())).arg(&database);
    let log = folder.join("database.log");
    let mut service = Service::start("ovsdb-server", namespace, &mut command, log);
    let init = || vsctl(packages, folder, &["--no-wait", "init"]);
    let ready = || (init().code == Some(0)).then_some(());
    service.await_that(LIMIT, |_| ready(), || format!("no database:\n{}", init().output()));
    service
}

/// Starts the daemon of the switch.
fn start_switch(
    packages: &Packages,
    namespace: &Namespace,
    folder: &Path,
    launch: &Launch,
) -> Service {
    let mut command = packages.command("usr/lib/openvswitch-switch/ovs-vswitchd", launch);
    private(&mut command, packages, folder);
    command.arg(format!("unix:{}", folder.join("db.sock").display()));
    command.arg(format!("--unixctl={}", folder.join("switch.ctl").display()));
    command.arg(format!("--pidfile={}", folder.join("switch.pid").display()));
    Service::start("ovs-vswitchd", namespace, &mut command, folder.join("switch.log"))
}

/// Returns a command without a wrapper.
fn tool(packages: &Packages, folder: &Path, program: &str) -> Command {
    let mut command = packages.command(program, &Launch::default());
    private(&mut command, packages, folder);
    command
}

/// Replaces Open vSwitch's directories of the machine by a private one.
fn private(command: &mut Command, packages: &Packages, folder: &Path) {
    for name in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
        command.env(name, folder);
    }
    command.env("OVS_PKGDATADIR", packages.path("usr/share/openvswitch")).stdin(Stdio::null());
}

fn vsctl(packages: &Packages, folder: &Path, arguments: &[&str]) -> Said {
    let mut command = tool(packages, folder, "usr/bin/ovs-vsctl");
    command.arg(format!("--db=unix:{}", folder.join("db.sock").display())).arg("--timeout=10");
    Said::of(command.args(arguments))
}

fn appctl(packages: &Packages, folder: &Path, arguments: &[&str]) -> Said {
    let mut command = tool(packages, folder, "usr/bin/ovs-appctl");
    command.arg("--timeout=10").arg("--target").arg(folder.join("switch.ctl"));
    Said::of(command.args(arguments))
}

/// Returns true if `ovs-vsctl list` shows no error and a link that is up.
fn is_up(shown: &str) -> bool {
    let has = |name: &str, value: &str| {
        let mut lines = shown.lines().filter_map(|line| line.split_once(':'));
        lines.any(|(key, found)| key.trim() == name && found.trim() == value)
    };
    has("error", "[]") && has("link_state", "up")
}

#[cfg(test)]
mod tests {
    use super::is_up;

    #[test]
    fn a_port_is_up_without_an_error() {
        assert!(is_up("error               : []\nlink_state          : up\n"));
        assert!(!is_up("error               : []\nlink_state          : down\n"));
        assert!(!is_up("error               : \"no such device\"\nlink_state          : up\n"));
    }
}
