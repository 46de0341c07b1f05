use nix::errno::Errno;

/// Errors of the emulator daemon.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The interface does not exist in this namespace.
    #[error("no interface `{0}` here")]
    NoInterface(String),
    /// The kernel rejected an operation on an interface.
    #[error("{interface}: cannot {doing}")]
    Interface {
        /// Interface name.
        interface: String,
        /// The rejected operation.
        doing: &'static str,
        /// The cause.
        #[source]
        source: Errno,
    },
    /// The kernel rejected an operation on a netfilter queue.
    #[error("cannot take the packets of netfilter queue {number}{}", queue_help(*source))]
    Queue {
        /// Queue number.
        number: u16,
        /// The cause.
        #[source]
        source: Errno,
    },
    /// A tun device cannot be created.
    #[error("cannot create a tun device")]
    Tun {
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A device of the emulator rejected a packet.
    #[error("the device {name} has failed")]
    Device {
        /// Device name.
        name: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The lab has no queue for the interface.
    #[error("no NFQUEUE assigned to interface `{0}`")]
    NoQueue(String),
    /// The interface is attached to another lab.
    #[error("the interface `{0}` is attached to another lab")]
    Attached(String),
    /// The interface cannot be locked.
    #[error("{interface}: cannot lock it against other labs")]
    Lock {
        /// Interface name.
        interface: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The machine's network namespace, which contains the attached interfaces, is not accessible.
    #[error("cannot find this machine's network namespace")]
    NoMachine(#[source] netlink::Error),
    /// The topology file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// Path of the file.
        path: std::path::PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The topology file has mistakes.
    #[error("{0}")]
    Topology(document::Problems),
    /// A file that a link refers to cannot be used.
    #[error(transparent)]
    Recording(#[from] crate::BadRecording),
    /// The pump's thread did not start.
    #[error("cannot start the emulator's thread")]
    Thread {
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The socket cannot be bound.
    #[error("cannot listen on {}", path.display())]
    Bind {
        /// Path of the socket.
        path: std::path::PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The path of the socket is in use.
    #[error(transparent)]
    Path(#[from] serve::PathError),
    /// The server failed.
    #[error("the server failed")]
    Serve {
        /// The cause.
        #[source]
        source: tonic::transport::Error,
    },
    /// The pump has panicked. This is a bug; the log contains the location.
    #[error("the emulator has panicked: bring the lab down, and report its log as a bug")]
    Panicked,
    /// The kernel rejected another operation.
    #[error("cannot {doing}")]
    Refused {
        /// The rejected operation.
        doing: &'static str,
        /// The cause.
        #[source]
        source: Errno,
    },
}

impl Error {
    /// Returns true if the configuration or a file that it names is wrong.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Unreadable { .. } | Self::Topology(_) | Self::Recording(_))
    }
}

fn queue_help(errno: Errno) -> &'static str {
    match errno {
        Errno::EBUSY | Errno::EPERM => ": another program has it",
        _ => "",
    }
}
