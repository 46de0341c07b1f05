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

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Directory of Debian's shared libraries on x86-64.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// Paths of the daemon in a package and after `make install`, relative to the root.
const DAEMONS: [&str; 2] = ["usr/lib/openvswitch-switch/ovs-vswitchd", "usr/sbin/ovs-vswitchd"];

/// Location of Open vSwitch's programs.
#[derive(Debug, Clone)]
pub struct Installation {
    root: PathBuf,
    /// Path of ovs-vswitchd, relative to the root.
    daemon: &'static str,
}

/// Open vSwitch's programs were not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotInstalled;

/// The command lines of an instance.
#[derive(Debug, Clone)]
pub struct Instance {
    installation: Installation,
    directory: PathBuf,
}

impl Installation {
    /// Finds Open vSwitch below a root: `/`, or a directory into which packages were unpacked.
    ///
    /// # Errors
    ///
    /// Fails if the daemon is not there.
    pub fn at(root: impl Into<PathBuf>) -> Result<Self, NotInstalled> {
        let root = root.into();
        let daemon = DAEMONS.into_iter().find(|daemon| root.join(daemon).is_file());
        daemon.map(|daemon| Self { root, daemon }).ok_or(NotInstalled)
    }

    /// Returns a command that starts a program, through a wrapper unless `wrapper` is empty. The
    /// program finds its libraries, and libxdp's BPF programs, below the root.
    fn command(&self, program: &str, wrapper: &[OsString]) -> Command {
        let program = OsString::from(self.root.join(program));
        let mut words = wrapper.iter().chain([&program]);
        let mut command = Command::new(words.next().expect("the program is the last word"));
        command.args(words).stdin(Stdio::null());
        if self.root != Path::new("/") {
            let libraries = self.root.join(LIBRARIES);
            command.env("LIBXDP_OBJECT_PATH", libraries.join("bpf"));
            command.env("LD_LIBRARY_PATH", libraries);
        }
        command
    }
}

impl std::fmt::Display for NotInstalled {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Open vSwitch is not installed: install openvswitch-switch")
    }
}

impl std::error::Error for NotInstalled {}

impl Instance {
    /// An instance with its files in `directory`, which exists. The path of a Unix socket is limited
    /// to 107 bytes, so keep the directory's path short.
    pub fn new(installation: Installation, directory: impl Into<PathBuf>) -> Self {
        Self { installation, directory: directory.into() }
    }

    /// Returns the file of the switch's process ID.
    pub fn pid_file(&self) -> PathBuf {
        self.directory.join("switch.pid")
    }

    /// Returns the switch's control socket.
    pub fn control(&self) -> PathBuf {
        self.directory.join("switch.ctl")
    }

    /// The command that creates the database.
    pub fn create_database(&self) -> Command {
        let schema = self.installation.root.join("usr/share/openvswitch/vswitch.ovsschema");
        let mut command = self.command("usr/bin/ovsdb-tool", &[]);
        command.arg("create").arg(self.directory.join("conf.db")).arg(schema);
        command
    }

    /// The command that runs the database.
    pub fn database(&self) -> Command {
        let mut command = self.command("usr/sbin/ovsdb-server", &[]);
        command.arg(format!("--remote=p{}", self.database_address()));
        command.arg(option("--unixctl", &self.directory.join("database.ctl")));
        command.arg(self.directory.join("conf.db"));
        command
    }

    /// The command that runs the switch, with the wrapper's words before it.
    pub fn switch(&self, wrapper: &[OsString]) -> Command {
        let mut command = self.command(self.installation.daemon, wrapper);
        command.arg(self.database_address());
        command.arg(option("--unixctl", &self.control()));
        command.arg(option("--pidfile", &self.pid_file()));
        command
    }

    /// `ovs-vsctl`, which changes the configuration and waits until the switch has applied it.
    pub fn vsctl(&self) -> Command {
        let mut command = self.command("usr/bin/ovs-vsctl", &[]);
        command.arg(format!("--db={}", self.database_address())).arg("--timeout=10");
        command
    }

    /// `ovs-ofctl`, which reads and changes the flows of a bridge.
    pub fn ofctl(&self) -> Command {
        let mut command = self.command("usr/bin/ovs-ofctl", &[]);
        command.arg("--timeout=10");
        command
    }

    /// `ovs-appctl`, which sends a command to the running switch.
    pub fn appctl(&self) -> Command {
        let mut command = self.command("usr/bin/ovs-appctl", &[]);
        command.args(["--timeout=10", "--target"]).arg(self.control());
        command
    }

    fn database_address(&self) -> String {
        format!("unix:{}", self.directory.join("db.sock").display())
    }

    fn command(&self, program: &str, wrapper: &[OsString]) -> Command {
        let mut command = self.installation.command(program, wrapper);
        for name in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
            command.env(name, &self.directory);
        }
        command.env("OVS_PKGDATADIR", self.installation.root.join("usr/share/openvswitch"));
        command
    }
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
        let installation = Installation { root: "/packages".into(), daemon: DAEMONS[0] };
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
    fn an_empty_root_has_no_open_vswitch() {
        assert_eq!(Installation::at("/nowhere").unwrap_err(), NotInstalled);
        assert!(NotInstalled.to_string().contains("install openvswitch-switch"));
    }

    #[test]
    fn a_port_is_up_without_an_error() {
        assert!(is_up("error               : []\nlink_state          : up\n"));
        assert!(!is_up("error               : []\nlink_state          : down\n"));
        assert!(!is_up("error               : \"no such device\"\nlink_state          : up\n"));
    }
}
