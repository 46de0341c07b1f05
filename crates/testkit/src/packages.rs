//! Programs from Debian's packages, unmodified and not installed, which `scripts/packages.sh`
//! unpacks.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A set of unpacked packages.
#[derive(Debug, Clone)]
pub struct Packages {
    directory: PathBuf,
}

/// The way in which a test starts a program: a wrapper, and additional environment variables. The
/// default has neither.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// The first words of the command line, before the program's own. The wrapper must pass its
    /// environment to the program.
    pub wrapper: Vec<OsString>,
    /// Environment variables of the wrapper and the program.
    pub environment: Vec<(OsString, OsString)>,
}

/// Returns the file of the guest's kernel, that of Debian's package.
///
/// # Panics
///
/// If it is not there.
#[track_caller]
pub fn guest_kernel() -> PathBuf {
    let kernel = target().join("guest/kernel/vmlinuz");
    assert!(kernel.exists(), "{}: `scripts/guest/kernel.sh` fetches it", kernel.display());
    kernel
}

impl Packages {
    /// Opens a set by its name in `scripts/packages.sh`.
    ///
    /// # Panics
    ///
    /// If the set is not there.
    #[track_caller]
    pub fn open(set: &str) -> Self {
        let directory = target().join("packages").join(set);
        let missing = "is not there: `scripts/packages.sh` fetches it";
        assert!(directory.is_dir(), "{} {missing}", directory.display());
        Self { directory }
    }

    /// Returns the path of a file from its path in a package, relative to `/`.
    pub fn path(&self, file: &str) -> PathBuf {
        self.directory.join(file)
    }

    /// Returns the directory of the libraries.
    pub fn libraries(&self) -> PathBuf {
        self.path("usr/lib/x86_64-linux-gnu")
    }

    /// Returns a command that starts a program, given by its path in a package. It finds the
    /// libraries and libxdp's BPF programs in the packages.
    pub fn command(&self, program: &str, launch: &Launch) -> Command {
        let mut command = launch.command(&self.path(program));
        command
            .env("LD_LIBRARY_PATH", self.libraries())
            .env("LIBXDP_OBJECT_PATH", self.libraries().join("bpf"));
        command
    }
}

impl Launch {
    /// Starts programs through a wrapper.
    pub fn through(wrapper: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self { wrapper: wrapper.into_iter().map(Into::into).collect(), environment: Vec::new() }
    }

    /// Returns a command that starts a program of this machine.
    pub fn command(&self, program: &Path) -> Command {
        let mut words = self.wrapper.iter().cloned().chain([program.into()]);
        let mut command = Command::new(words.next().expect("there is the program"));
        command.args(words).envs(self.environment.iter().cloned());
        command
    }

    /// Adds an environment variable.
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }
}

/// Cargo's output directory, as `scripts/env.sh` finds it.
fn target() -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    sources.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapper_comes_before_the_program() {
        let packages = Packages { directory: "/packages".into() };
        let words = |launch: &Launch| {
            let command = packages.command("usr/bin/tool", launch);
            let words = [command.get_program()].into_iter().chain(command.get_args());
            words.map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words(&Launch::default()), "/packages/usr/bin/tool");
        assert_eq!(words(&Launch::through(["env", "--"])), "env -- /packages/usr/bin/tool");
        let command = packages.command("usr/bin/tool", &Launch::default().with("LD_PRELOAD", "x"));
        assert!(command.get_envs().any(|(name, value)| name == "LD_PRELOAD" && value.is_some()));
    }
}
