//! Runs a program that needs capabilities in its own network namespace, such as a routing daemon,
//! without the system calls by which these capabilities reach the rest of the machine.

mod denied;

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use nix::sys::prctl::set_no_new_privs;
use nix::unistd::setsid;

/// Replaces this process by a program that cannot gain privileges (no_new_privs), start processes,
/// enter or create namespaces, mount, or use BPF. Such calls fail with EPERM. The process gets a
/// session of its own, without a terminal. Returns only on failure.
pub fn exec(program: &Path, arguments: &[impl AsRef<OsStr>]) -> io::Error {
    let restricted = || -> io::Result<()> {
        setsid()?;
        set_no_new_privs()?;
        denied::install()
    };
    match restricted() {
        Ok(()) => Command::new(program).args(arguments).exec(),
        Err(error) => error,
    }
}
