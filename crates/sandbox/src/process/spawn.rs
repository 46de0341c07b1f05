//! Starts processes.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};

/// The program of tenants' processes, which has to call [`run_child`](super::run_child): an open file, so
/// that every process is the same program, whatever becomes of the file's name.
#[derive(Debug, Clone)]
pub struct Launcher {
    file: Arc<File>,
    /// The name that the process sees as its own.
    name: OsString,
    arguments: Vec<OsString>,
}

type Order = (Command, Sender<io::Result<Child>>);

impl Launcher {
    /// The program in a file.
    ///
    /// # Errors
    ///
    /// The file cannot be opened.
    pub fn of<A: Into<OsString>>(
        program: &Path,
        arguments: impl IntoIterator<Item = A>,
    ) -> io::Result<Self> {
        let file = Arc::new(File::open(program)?);
        let arguments = arguments.into_iter().map(Into::into).collect();
        Ok(Self { file, name: program.into(), arguments })
    }

    /// The program of this process, as it was started: an upgrade in place changes nothing.
    ///
    /// # Errors
    ///
    /// Procfs is not there.
    pub fn myself<A: Into<OsString>>(arguments: impl IntoIterator<Item = A>) -> io::Result<Self> {
        Self::of(Path::new("/proc/self/exe"), arguments)
    }

    /// Starts a process with these files as its input and output, nothing else, and no environment.
    ///
    /// All processes are started by one thread that never ends: they are killed when the thread ends that
    /// has started them (`PR_SET_PDEATHSIG`).
    pub(super) fn start(&self, control: OwnedFd, bell: OwnedFd) -> io::Result<Child> {
        static STARTER: OnceLock<Sender<Order>> = OnceLock::new();
        let starter = STARTER.get_or_init(|| {
            let (give, orders) = channel::<Order>();
            std::thread::spawn(move || {
                for (mut command, done) in orders {
                    // Who asked may be gone.
                    if let Err(gone) = done.send(command.spawn())
                        && let Ok(mut child) = gone.0
                    {
                        let _ = child.kill();
                        let _ = child.wait();
                    }
                }
            });
            give
        });
        // By the descriptor (fexecve(3)), which the child has until it executes.
        let mut command = Command::new(format!("/proc/self/fd/{}", self.file.as_raw_fd()));
        command
            .arg0(&self.name)
            .args(&self.arguments)
            .env_clear()
            .stdin(Stdio::from(control))
            .stdout(Stdio::from(bell))
            .stderr(Stdio::null());
        let (done, child) = channel();
        let gone = || io::Error::other("the thread that starts processes is gone");
        starter.send((command, done)).map_err(|_| gone())?;
        child.recv().map_err(|_| gone())?
    }
}
