//! Location of Open vSwitch's programs.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Paths of the daemon in a package and after `make install`, relative to the prefix.
const DAEMONS: [&str; 2] = ["lib/openvswitch-switch/ovs-vswitchd", "sbin/ovs-vswitchd"];

/// Path of the daemon with the DPDK datapath in Debian's package, relative to the prefix.
const DPDK_DAEMON: &str = "lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";

/// Program by which an installation is found in the search path.
const TOOL: &str = "ovs-vsctl";

/// Prefixes whose libraries the dynamic linker finds by itself, and which are searched last.
const SYSTEM: [&str; 2] = ["/usr", "/usr/local"];

/// Location of Open vSwitch's programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// Directory with `bin`, `sbin`, `lib` and `share`, such as `/usr`.
    prefix: PathBuf,
    /// Path of ovs-vswitchd, relative to the prefix.
    daemon: &'static str,
}

/// Open vSwitch's programs were not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotInstalled;

impl Installation {
    /// Finds Open vSwitch below a root: `/`, or a directory into which packages were unpacked.
    ///
    /// # Errors
    ///
    /// Fails if the daemon is not there.
    pub fn at(root: impl Into<PathBuf>) -> Result<Self, NotInstalled> {
        Self::with_prefix(root.into().join("usr")).ok_or(NotInstalled)
    }

    /// Finds Open vSwitch with the DPDK datapath below a root, as [`at`](Self::at) does.
    ///
    /// # Errors
    ///
    /// Fails if the daemon is not there.
    pub fn with_dpdk_at(root: impl Into<PathBuf>) -> Result<Self, NotInstalled> {
        let found = Self { daemon: DPDK_DAEMON, ..Self::at(root)? };
        if found.prefix.join(DPDK_DAEMON).is_file() { Ok(found) } else { Err(NotInstalled) }
    }

    /// Finds Open vSwitch by `ovs-vsctl` in the search path, and last in the system's directories.
    /// The search path may contain `usr/bin` of a directory into which packages were unpacked.
    ///
    /// # Errors
    ///
    /// Fails if the programs are not there.
    pub fn find() -> Result<Self, NotInstalled> {
        Self::within(&std::env::var_os("PATH").unwrap_or_default())
    }

    fn within(path: &OsStr) -> Result<Self, NotInstalled> {
        // A relative directory would be another one for a daemon.
        let tools = std::env::split_paths(path).filter(|directory| directory.is_absolute());
        let tools = tools.map(|directory| directory.join(TOOL)).filter(|tool| tool.is_file());
        let prefixes = tools.flat_map(|tool| {
            let directory = tool.parent();
            // /bin may be a link to /usr/bin.
            let real = directory.and_then(|directory| directory.canonicalize().ok());
            let prefix = |directory: &Path| directory.parent().map(Path::to_owned);
            [directory.and_then(prefix), real.as_deref().and_then(prefix)].into_iter().flatten()
        });
        let mut all = prefixes.chain(SYSTEM.map(PathBuf::from));
        all.find_map(Self::with_prefix).ok_or(NotInstalled)
    }

    fn with_prefix(prefix: PathBuf) -> Option<Self> {
        let daemon = DAEMONS.into_iter().find(|daemon| prefix.join(daemon).is_file())?;
        let found = Self { prefix, daemon };
        // The root directory has a link to /usr/lib, but none to /usr/share.
        found.data().is_dir().then_some(found)
    }

    #[cfg(test)]
    pub(crate) fn of_debian(prefix: &str) -> Self {
        Self { prefix: prefix.into(), daemon: DAEMONS[0] }
    }

    /// Path of ovs-vswitchd, relative to the prefix.
    pub(crate) fn daemon(&self) -> &'static str {
        self.daemon
    }

    /// Directory of the database's schema.
    pub(crate) fn data(&self) -> PathBuf {
        self.prefix.join("share/openvswitch")
    }

    /// The environment in which programs find their libraries, and libxdp's BPF programs, below the
    /// prefix.
    pub(crate) fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        if SYSTEM.iter().any(|system| self.prefix == Path::new(system)) {
            return Vec::new();
        }
        let libraries = self.prefix.join(libraries());
        vec![("LIBXDP_OBJECT_PATH", libraries.join("bpf")), ("LD_LIBRARY_PATH", libraries)]
    }

    /// Returns a command that starts a program, through a wrapper unless `wrapper` is empty.
    pub(crate) fn command(&self, program: &str, wrapper: &[OsString]) -> Command {
        let program = OsString::from(self.prefix.join(program));
        let mut words = wrapper.iter().chain([&program]);
        let mut command = Command::new(words.next().expect("the program is the last word"));
        command.args(words).stdin(Stdio::null());
        command
    }
}

/// Directory of Debian's shared libraries for this architecture, relative to the prefix.
fn libraries() -> String {
    format!("lib/{}-linux-gnu", std::env::consts::ARCH)
}

impl std::fmt::Display for NotInstalled {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(
            "Open vSwitch is not installed: run `apt-get install openvswitch-switch`, or add usr/bin of \
             unpacked packages to PATH (docs/xsk.md)",
        )
    }
}

impl std::error::Error for NotInstalled {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_root_has_no_open_vswitch() {
        assert_eq!(Installation::at("/nowhere").unwrap_err(), NotInstalled);
        assert!(NotInstalled.to_string().contains("install openvswitch-switch"));
    }

    #[test]
    fn packages_in_the_search_path_are_found() {
        let root = tempfile::tempdir().unwrap();
        let usr = root.path().join("usr");
        std::fs::create_dir(&usr).unwrap();
        std::os::unix::fs::symlink("usr/bin", root.path().join("bin")).unwrap();
        let path = OsString::from(format!("relative:/nowhere:{}/bin", root.path().display()));
        let found = || Installation::within(&path).ok().filter(|found| found.prefix == usr);
        assert_eq!(found(), None);
        std::fs::create_dir_all(usr.join("share/openvswitch")).unwrap();
        for file in ["bin/ovs-vsctl", DAEMONS[0]] {
            std::fs::create_dir_all(usr.join(file).parent().unwrap()).unwrap();
            std::fs::write(usr.join(file), "").unwrap();
        }
        let found = found().unwrap();
        let command = found.command(DAEMONS[0], &[]);
        assert_eq!(Path::new(command.get_program()), usr.join(DAEMONS[0]));
        assert!(found.environment().contains(&("LD_LIBRARY_PATH", usr.join(libraries()))));
    }
}
