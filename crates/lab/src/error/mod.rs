//! Errors of labs.

mod attach;
mod lookup;
mod machine;
mod start;
mod text;

use std::path::PathBuf;

use crate::Phase;

pub use attach::AttachError;
pub use lookup::LookupError;
pub use machine::MachineError;
pub use start::StartError;
use text::known_names;

/// An operation that failed, with its object.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A lab of this name exists already.
    #[error("the lab `{name}` is {phase}: {}, or use --name", exists(.name, .phase))]
    Exists {
        /// Lab name.
        name: String,
        /// State of the lab.
        phase: &'static str,
    },
    /// The lab does not exist.
    #[error("no lab `{name}`{}", known_names(.known))]
    NoLab {
        /// Name that was requested.
        name: String,
        /// Existing names.
        known: Vec<String>,
    },
    /// No lab was named, and there are none or several.
    #[error("{}", which_lab(.known))]
    WhichLab {
        /// Existing names.
        known: Vec<String>,
    },
    /// Invalid lab name.
    #[error(
        "`{0}` is not a valid lab name: use up to 31 of a-z, 0-9 and -, beginning with a letter"
    )]
    BadName(String),
    /// The path of a daemon's socket would be too long.
    #[error(
        "{} is {} bytes long, and a Unix socket's path has at most {most}: set KAIDO_RUN to a \
         shorter directory",
        path.display(), path.as_os_str().len()
    )]
    PathTooLong {
        /// Path of the socket.
        path: PathBuf,
        /// Maximum length in bytes.
        most: usize,
    },
    /// KAIDO_RUN is set but empty.
    #[error("KAIDO_RUN is empty: set it to a directory, or unset it")]
    EmptyRunDirectory,
    /// The labs' directory is not usable.
    #[error("cannot use {} for labs: set KAIDO_RUN to another directory", .path.display())]
    RunDirectory {
        /// Path of the directory.
        path: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// The path of the labs' directory is not UTF-8, so a configuration cannot contain it.
    #[error("{} is not UTF-8: set KAIDO_RUN to another directory", .0.display())]
    NotUtf8(PathBuf),
    /// Another command holds the lab's lock.
    #[error("another command is working on the lab `{0}`: wait until it has finished")]
    Busy(String),
    /// The daemon to start is already running.
    #[error("{0} is running already")]
    Running(String),
    /// The lab needs Kaido's daemons, but there is no program to run as these.
    #[error(
        "the lab has emulated links, switches or tenants' programs, and is brought up without Kaido's daemons"
    )]
    NoProgram,
    /// The command runs on a node of the lab that it would remove.
    #[error("this shell is on a node of the lab `{0}`: leave it first")]
    Inside(String),
    /// The lab is not up.
    #[error("the lab `{name}` is {phase}: {}", not_ready(.name, .phase))]
    NotReady {
        /// Lab name.
        name: String,
        /// State of the lab.
        phase: &'static str,
    },
    /// The lab's copy of its topology is unreadable.
    #[error("the lab `{name}` has lost its topology: take it down with `kaido lab down {name}`")]
    Damaged {
        /// Lab name.
        name: String,
    },
    /// Processes of the lab that do not exit.
    #[error("processes {0:?} of the lab did not exit")]
    Stubborn(Vec<i32>),
    /// Cancelled by the user.
    #[error("stopped")]
    Cancelled,
    /// Netlink error.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// Error of a BPF operation for XDP.
    #[error(transparent)]
    Bpf(#[from] bpf::Error),
    /// File operation failed.
    #[error("cannot {doing} {path}")]
    File {
        /// Operation, as a verb.
        doing: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// A network namespace cannot be locked.
    #[error(transparent)]
    Lock(private::TakeError),
    /// A command cannot be run.
    #[error("cannot run {command}")]
    Command {
        /// Command name.
        command: String,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// A node, link or daemon that the lab does not have.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// An interface of this machine cannot be attached.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The machine lacks something that the lab needs.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// A daemon or its configuration failed.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl Error {
    /// True if the user's input is at fault, not the machine.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Lookup(_) => true,
            Self::Attach(error) => error.is_usage(),
            Self::Start(error) => error.is_usage(),
            _ => matches!(
                self,
                Self::Exists { .. }
                    | Self::NoLab { .. }
                    | Self::WhichLab { .. }
                    | Self::BadName(_)
                    | Self::PathTooLong { .. }
                    | Self::NotUtf8(_)
                    | Self::EmptyRunDirectory
                    | Self::RunDirectory { .. }
                    | Self::Running(_)
                    | Self::Inside(_)
            ),
        }
    }

    pub(crate) fn file(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { doing, path, source }
    }
}

fn exists(name: &str, phase: &str) -> String {
    if phase == Phase::Starting.word() {
        return "another command is bringing it up; wait until it has finished".into();
    }
    if phase == Phase::Stopping.word() {
        return "another command is taking it down; wait until it has finished".into();
    }
    format!("take it down with `kaido lab down {name}`")
}

fn not_ready(name: &str, phase: &str) -> String {
    if phase == Phase::Broken.word() {
        return format!(
            "the command that it belonged to was killed; remove it with `kaido lab down {name}`, or with \
             `kaido lab gc` what else is left"
        );
    }
    "it must be ready first".into()
}

fn which_lab(known: &[String]) -> String {
    if known.is_empty() {
        return "no lab: `kaido lab up FILE` brings one up".into();
    }
    format!("say which lab is meant, with --lab{}", known_names(known))
}
