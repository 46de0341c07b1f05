use nix::errno::Errno;

/// Why the engine does not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such interface in this namespace.
    #[error("there is no interface `{0}` here")]
    NoInterface(String),
    /// The kernel refused something for an interface.
    #[error("{interface}: cannot {doing}")]
    Interface {
        /// The interface.
        interface: String,
        /// What was refused.
        doing: &'static str,
        /// Why.
        #[source]
        source: Errno,
    },
    /// The engine's thread did not start.
    #[error("cannot start the engine's thread")]
    Thread {
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The socket cannot be bound.
    #[error("cannot listen on {}", path.display())]
    Bind {
        /// The socket.
        path: std::path::PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Another emulator answers on the socket.
    #[error("another emulator answers on {}", .0.display())]
    InUse(std::path::PathBuf),
    /// The server failed.
    #[error("the server failed")]
    Serve {
        /// Why.
        #[source]
        source: tonic::transport::Error,
    },
    /// A defect: the engine has panicked, and the log says where.
    #[error("the emulator has panicked: bring the lab down, and report what its log says")]
    Panicked,
    /// The kernel refused something else.
    #[error("cannot {doing}")]
    Refused {
        /// What was refused.
        doing: &'static str,
        /// Why.
        #[source]
        source: Errno,
    },
}
