//! Starts processes.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

/// The program file of tenants' processes, which has to call [`run_child`](super::run_child).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// The file.
    pub program: PathBuf,
    /// What it is given.
    pub arguments: Vec<OsString>,
}

type Order = (Command, Sender<io::Result<Child>>);

impl Launcher {
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
        let mut command = Command::new(&self.program);
        command
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
