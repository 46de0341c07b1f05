//! Spawns processes.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};

use super::hosted::Host;
use super::machine::{self, Kernel};

/// Name of the executable of sandbox processes.
const PROGRAM: &str = "kaido-sandbox";

/// Executable of sandbox processes, which has to call [`run_child`](super::run_child), or a process
/// that hosts programs. An executable is kept open, so that every process runs the same file even
/// if its path is replaced.
#[derive(Debug, Clone)]
pub struct Launcher(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Executable(Executable),
    Host(Arc<dyn Host>),
}

#[derive(Debug, Clone)]
struct Executable {
    file: Arc<File>,
    /// Value of `argv[0]`.
    name: OsString,
    arguments: Vec<OsString>,
    /// Kernel of the virtual machine that the process becomes.
    kernel: Option<Kernel>,
}

/// Process that has been started, or that hosts the program.
#[derive(Debug)]
pub(super) enum Started {
    Child(Child),
    Host(Arc<dyn Host>),
}

type Order = (Command, Sender<io::Result<Child>>);

impl Launcher {
    /// Uses the executable in a file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be opened.
    pub fn of<A: Into<OsString>>(
        program: &Path,
        arguments: impl IntoIterator<Item = A>,
    ) -> io::Result<Self> {
        let file = Arc::new(File::open(program)?);
        let arguments = arguments.into_iter().map(Into::into).collect();
        Ok(Self(Kind::Executable(Executable {
            file,
            name: program.into(),
            arguments,
            kernel: None,
        })))
    }

    /// Uses `kaido-sandbox` of this process's installation: in the directory of its executable, or
    /// in `../libexec/kaido` from there.
    ///
    /// # Errors
    ///
    /// Fails if it is in neither directory.
    pub fn installed() -> io::Result<Self> {
        let (program, file) = private::open_installed(PROGRAM, "../libexec/kaido")?;
        let (file, name) = (Arc::new(file), program.into());
        let arguments = vec![OsString::new()];
        Ok(Self(Kind::Executable(Executable { file, name, arguments, kernel: None })))
    }

    /// Uses virtual machines (QEMU). A launcher of a host has none, and stays as it is.
    #[must_use]
    pub fn in_vm(self, kernel: &Kernel) -> Self {
        match self.0 {
            Kind::Executable(executable) => {
                Self(Kind::Executable(Executable { kernel: Some(kernel.clone()), ..executable }))
            }
            host @ Kind::Host(_) => Self(host),
        }
    }

    /// Returns true if programs run in virtual machines.
    pub(super) fn is_vm(&self) -> bool {
        matches!(&self.0, Kind::Executable(one) if one.kernel.is_some())
    }

    /// Uses a process that hosts programs.
    pub fn hosted(host: Arc<dyn Host>) -> Self {
        Self(Kind::Host(host))
    }

    /// Starts the program's process with its ends of the control socket and the doorbell.
    pub(super) fn start(&self, control: OwnedFd, bell: OwnedFd) -> io::Result<Started> {
        match &self.0 {
            Kind::Executable(executable) => executable.start(control, bell).map(Started::Child),
            Kind::Host(host) => {
                host.start(control, bell)?;
                Ok(Started::Host(Arc::clone(host)))
            }
        }
    }
}

impl Executable {
    /// Starts a process with these descriptors as standard input and output, and without an
    /// environment. The kernel of a virtual machine is its standard error.
    ///
    /// All processes are spawned by one thread that never exits, because `PR_SET_PDEATHSIG` kills a
    /// process when its parent thread exits.
    fn start(&self, control: OwnedFd, bell: OwnedFd) -> io::Result<Child> {
        static STARTER: OnceLock<Sender<Order>> = OnceLock::new();
        let starter = STARTER.get_or_init(|| {
            let (give, orders) = channel::<Order>();
            std::thread::spawn(move || {
                for (mut command, done) in orders {
                    // The requester may be gone.
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
        // Execute through the descriptor (fexecve(3)), which the child has until exec.
        let mut command = Command::new(format!("/proc/self/fd/{}", self.file.as_raw_fd()));
        command
            .arg0(&self.name)
            .args(&self.arguments)
            .env_clear()
            // Another user may own the current directory.
            .current_dir("/")
            // Ctrl-C is for the command, which ends the process after its packets.
            .process_group(0)
            .stdin(Stdio::from(control))
            .stdout(Stdio::from(bell))
            .stderr(Stdio::null());
        if let Some(kernel) = &self.kernel {
            command.arg(machine::START).stderr(Stdio::from(kernel.0.try_clone()?));
        }
        let (done, child) = channel();
        let gone = || io::Error::other("the thread that starts processes is gone");
        starter.send((command, done)).map_err(|_| gone())?;
        child.recv().map_err(|_| gone())?
    }
}
