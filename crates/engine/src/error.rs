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
    /// The kernel refused something for a netfilter queue.
    #[error("cannot take the packets of netfilter queue {number}{}", queue_help(*source))]
    Queue {
        /// The queue.
        number: u16,
        /// Why.
        #[source]
        source: Errno,
    },
    /// No tun device can be made.
    #[error("cannot make a tun device")]
    Tun {
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A device of the emulator's own refused a packet.
    #[error("the device {name} has failed")]
    Device {
        /// The device.
        name: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The lab has no queue for the interface.
    #[error("no netfilter queue is set aside for the interface `{0}`")]
    NoQueue(String),
    /// Another lab has the interface.
    #[error("the interface `{0}` is attached to another lab")]
    Attached(String),
    /// The interface cannot be locked.
    #[error("{interface}: cannot keep other labs from attaching it")]
    Lock {
        /// The interface.
        interface: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The machine's network namespace, which attached interfaces are in, was not handed over.
    #[error("cannot find this machine's network namespace")]
    NoMachine(#[source] netlink::Error),
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

fn queue_help(errno: Errno) -> &'static str {
    match errno {
        Errno::EBUSY | Errno::EPERM => ": another program has it",
        _ => "",
    }
}
