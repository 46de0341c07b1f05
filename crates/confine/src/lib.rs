//! Runs a program that needs capabilities in its own network namespace, such as a routing daemon,
//! without the system calls by which these capabilities reach the rest of the machine.

mod denied;

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use nix::sys::prctl::set_no_new_privs;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::setsid;

/// Limit of the files that the program writes, in bytes, such as its log.
const LARGEST_FILE: u64 = 64 << 20;

/// Limit of the threads of a user in a user namespace (RLIMIT_NPROC): those of a router's daemons
/// together. FRR's have about five each.
const THREADS: u64 = 256;

/// Limit of the program's address space, in bytes (RLIMIT_AS), which includes shared mappings. A daemon
/// with a full BGP table needs less than half of it.
const MEMORY: u64 = 4 << 30;

/// Limit of open files. Buffers of sockets are memory of the kernel, which no other limit counts.
const FILES: u64 = 1024;

/// Limit of the queued signals of a user in a user namespace (RLIMIT_SIGPENDING), which include
/// POSIX timers.
const SIGNALS: u64 = 256;

/// Marks all descriptors except the standard ones as close-on-exec: the programs that this process
/// starts do not inherit what its own parent has left open, such as files and locks of root.
pub fn close_inherited_on_exec() -> io::Result<()> {
    // SAFETY: the call takes three integers, and closes nothing now.
    let done = unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    nix::errno::Errno::result(done).map(drop).map_err(io::Error::from)
}

/// Replaces this process by a program that cannot gain privileges (no_new_privs), start processes,
/// enter or create namespaces, mount, or use BPF. Such calls fail with EPERM. The process gets a
/// session of its own, without a terminal, limits of threads, files and memory, and no inherited
/// descriptors except the standard ones. Writing beyond 64 MiB of a file fails with EFBIG. Returns
/// only on failure.
pub fn exec(program: &Path, arguments: &[impl AsRef<OsStr>]) -> io::Error {
    let restricted = || -> io::Result<()> {
        setsid()?;
        setrlimit(Resource::RLIMIT_FSIZE, LARGEST_FILE, LARGEST_FILE)?;
        setrlimit(Resource::RLIMIT_NPROC, THREADS, THREADS)?;
        setrlimit(Resource::RLIMIT_AS, MEMORY, MEMORY)?;
        setrlimit(Resource::RLIMIT_NOFILE, FILES, FILES)?;
        setrlimit(Resource::RLIMIT_SIGPENDING, SIGNALS, SIGNALS)?;
        setrlimit(Resource::RLIMIT_MSGQUEUE, 0, 0)?;
        close_inherited_on_exec()?;
        // It would end the program, which continues without its log instead. Blocked, not ignored:
        // FRR's handler of the signal aborts.
        SigSet::from(Signal::SIGXFSZ).thread_block()?;
        set_no_new_privs()?;
        denied::install()
    };
    match restricted() {
        Ok(()) => Command::new(program).args(arguments).exec(),
        Err(error) => error,
    }
}
