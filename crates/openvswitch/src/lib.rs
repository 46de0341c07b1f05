//! Command lines of Open vSwitch's programs, for an instance with a directory of its own beside the
//! machine's.
//!
//! ```text
//! DIRECTORY/conf.db       database
//!           db.sock       the database's socket
//!           database.ctl  control socket of ovsdb-server
//!           switch.ctl    control socket of ovs-vswitchd
//!           switch.pid    process ID of ovs-vswitchd
//! ```
#![forbid(unsafe_code)]

mod installation;

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use installation::{Installation, NotInstalled};

/// Maximum size of the switch's arguments in bytes.
const LARGEST: u64 = 1 << 17;

/// Name of the file of the switch's process ID.
const PID_FILE: &str = "switch.pid";

/// The command lines of an instance.
#[derive(Debug, Clone)]
pub struct Instance {
    installation: Installation,
    directory: PathBuf,
}

impl Instance {
    /// An instance with its files in `directory`, which exists. The path of a Unix socket is
    /// limited to 107 bytes, so keep the directory's path short.
    pub fn new(installation: Installation, directory: impl Into<PathBuf>) -> Self {
        Self { installation, directory: directory.into() }
    }

    /// The environment in which Open vSwitch's programs use this instance.
    pub fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        let directories = ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"];
        let mut all: Vec<_> = directories.map(|name| (name, self.directory.clone())).into();
        all.push(("OVS_PKGDATADIR", self.installation.data()));
        all.extend(self.installation.environment());
        all
    }

    /// Returns the file of the switch's process ID.
    pub fn pid_file(&self) -> PathBuf {
        self.directory.join(PID_FILE)
    }

    /// Returns true if the switch of an instance runs, by the directory of the instance.
    pub fn is_running(directory: &Path) -> bool {
        let file = directory.join(PID_FILE);
        let Ok(pid) = std::fs::read_to_string(&file) else { return false };
        let mut arguments = Vec::new();
        // Another user's process may have the number now, with arguments of any length.
        let line = std::fs::File::open(format!("/proc/{}/cmdline", pid.trim()));
        let read = line.and_then(|line| line.take(LARGEST).read_to_end(&mut arguments));
        if read.is_err() {
            return false;
        }
        let own = pid_option(&file);
        arguments.split(|byte| *byte == 0).any(|one| one == own.as_encoded_bytes())
    }

    /// Returns the argument of the switch that names the file of its process ID.
    pub fn pid_option(&self) -> OsString {
        pid_option(&self.pid_file())
    }

    /// Returns the switch's control socket.
    pub fn control(&self) -> PathBuf {
        self.directory.join("switch.ctl")
    }

    /// The command that creates the database.
    pub fn create_database(&self) -> Command {
        let schema = self.installation.data().join("vswitch.ovsschema");
        let mut command = self.command("bin/ovsdb-tool", &[]);
        command.arg("create").arg(Self::database_file(&self.directory)).arg(schema);
        command
    }

    /// Returns the file of the database of an instance, by the directory of the instance. It is one
    /// of the arguments of the database's server.
    pub fn database_file(directory: &Path) -> PathBuf {
        directory.join("conf.db")
    }

    /// The command that runs the database.
    pub fn database(&self) -> Command {
        let mut command = self.command("sbin/ovsdb-server", &[]);
        command.arg(format!("--remote=p{}", self.database_address()));
        command.arg(option("--unixctl", &self.directory.join("database.ctl")));
        command.arg(Self::database_file(&self.directory));
        command
    }

    /// The command that runs the switch, with the wrapper's words before it.
    pub fn switch(&self, wrapper: &[OsString]) -> Command {
        let mut command = self.command(self.installation.daemon(), wrapper);
        command.arg(self.database_address());
        command.arg(option("--unixctl", &self.control()));
        command.arg(self.pid_option());
        command
    }

    /// `ovs-vsctl`, which changes the configuration and waits until the switch has applied it.
    pub fn vsctl(&self) -> Command {
        let mut command = self.command("bin/ovs-vsctl", &[]);
        command.arg(format!("--db={}", self.database_address())).arg("--timeout=10");
        command
    }

    /// The command that initializes a new database. It fails while the database does not respond.
    pub fn init(&self) -> Command {
        let mut command = self.vsctl();
        command.args(["--no-wait", "init"]);
        command
    }

    /// The arguments of [`vsctl`](Self::vsctl) that add a bridge of the userspace datapath.
    pub fn add_bridge(bridge: &str) -> Vec<String> {
        ["add-br", bridge, "--", "set", "bridge", bridge, "datapath_type=netdev"]
            .map(str::to_owned)
            .into()
    }

    /// The arguments of [`vsctl`](Self::vsctl) that add an interface to a bridge as an AF_XDP port
    /// in native mode. `settings` are columns of the table Interface, as in `options:n_rxq=2`.
    pub fn add_port(bridge: &str, interface: &str, settings: &[&str]) -> Vec<String> {
        let words = ["add-port", bridge, interface, "--", "set", "interface", interface];
        let native = ["type=afxdp", "options:xdp-mode=native"];
        [&words[..], &native, settings].concat().into_iter().map(str::to_owned).collect()
    }

    /// The command that waits until the switch has applied its configuration, for at most a second.
    pub fn applied(&self, bridge: &str) -> Command {
        let mut command = self.vsctl();
        // A transaction, even if it changes nothing, gets a number, which the switch confirms.
        command.args(["--timeout=1", "set", "bridge", bridge, "datapath_type=netdev"]);
        command
    }

    /// The command that shows the state of a port, for [`is_up`]. A switch that has not yet applied
    /// its configuration shows the state at its last end.
    pub fn show_port(&self, interface: &str) -> Command {
        let mut command = self.vsctl();
        command.args(["--columns=error,link_state,status", "list", "interface", interface]);
        command
    }

    /// `ovs-ofctl`, which reads and changes the flows of a bridge.
    pub fn ofctl(&self) -> Command {
        let mut command = self.command("bin/ovs-ofctl", &[]);
        command.arg("--timeout=10");
        command
    }

    /// `ovs-appctl`, which sends a command to the running switch.
    pub fn appctl(&self) -> Command {
        let mut command = self.command("bin/ovs-appctl", &[]);
        command.args(["--timeout=10", "--target"]).arg(self.control());
        command
    }

    fn database_address(&self) -> String {
        format!("unix:{}", self.directory.join("db.sock").display())
    }

    fn command(&self, program: &str, wrapper: &[OsString]) -> Command {
        let mut command = self.installation.command(program, wrapper);
        command.envs(self.environment());
        command
    }
}

fn pid_option(file: &Path) -> OsString {
    option("--pidfile", file)
}

fn option(name: &str, value: &Path) -> OsString {
    let mut option = OsString::from(format!("{name}="));
    option.push(value);
    option
}

/// Returns true if `ovs-vsctl --columns=error,link_state list interface` shows no error and a link
/// that is up.
pub fn is_up(shown: &str) -> bool {
    let has = |name: &str, value: &str| {
        let mut lines = shown.lines().filter_map(|line| line.split_once(':'));
        lines.any(|(key, found)| key.trim() == name && found.trim() == value)
    };
    has("error", "[]") && has("link_state", "up")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &Command) -> Vec<&str> {
        let words = [command.get_program()].into_iter().chain(command.get_args());
        words.map(|word| word.to_str().unwrap()).collect()
    }

    #[test]
    fn a_wrapper_comes_before_the_switch() {
        let installation = Installation::of_debian("/packages/usr");
        let instance = Instance::new(installation, "/run/kd");
        let command = instance.switch(&["kaido".into(), "--".into()]);
        let expected = [
            "kaido",
            "--",
            "/packages/usr/lib/openvswitch-switch/ovs-vswitchd",
            "unix:/run/kd/db.sock",
            "--unixctl=/run/kd/switch.ctl",
            "--pidfile=/run/kd/switch.pid",
        ];
        assert_eq!(words(&command), expected);
        let variable = |name: &str| command.get_envs().any(|(key, _)| key == name);
        assert!(variable("LD_LIBRARY_PATH") && variable("OVS_RUNDIR"));
    }

    #[test]
    fn a_port_is_up_without_an_error() {
        assert!(is_up("error               : []\nlink_state          : up\n"));
        assert!(!is_up("error               : []\nlink_state          : down\n"));
        assert!(!is_up("error               : \"no such device\"\nlink_state          : up\n"));
    }
}
