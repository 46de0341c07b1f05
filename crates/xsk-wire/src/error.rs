//! Errors of this crate.

use nix::errno::Errno;

use crate::limits::{MAX_MTU, MAX_QUEUES};

/// Failure to stand between an interface and its users.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The interface does not exist.
    #[error("no interface `{0}` in this network namespace: `ip link` lists them")]
    NoInterface(String),
    /// The interface is named by an alternative name, which no tenant has.
    #[error(
        "`{name}` is an alternative name of `{interface}`, and packets would pass without a program: write \
         `{interface}`"
    )]
    AlternativeName {
        /// The alternative name.
        name: String,
        /// Name of the interface.
        interface: String,
    },
    /// The interface is not an Ethernet device.
    #[error("`{0}` is not an Ethernet interface: programs judge Ethernet frames")]
    NotEthernet(String),
    /// The interface is a bond.
    #[error(
        "`{0}` is a bond, whose XDP program would run on the interfaces in it: attach programs to these, and make \
         a bond of their peers"
    )]
    Bond(String),
    /// The interface has an XDP program.
    #[error(
        "`{interface}` has an XDP program already, {program}: end the process that attached it; only if \
         no process has its BPF link (`bpftool link`), `ip link set dev {interface} xdp off` removes it"
    )]
    Occupied {
        /// Interface.
        interface: String,
        /// The program, for the operator.
        program: String,
    },
    /// A queue of the interface has an AF_XDP socket.
    #[error(
        "queue {queue} of `{interface}` has an AF_XDP socket of another process: end that process"
    )]
    Taken {
        /// Interface.
        interface: String,
        /// Number of the queue.
        queue: u32,
    },
    /// Packets of the interface may be too large.
    #[error(
        "`{interface}` has an MTU of {mtu}, and at most {MAX_MTU} fits: \
         `ip link set dev {interface} mtu {MAX_MTU}`"
    )]
    Mtu {
        /// Interface.
        interface: String,
        /// MTU.
        mtu: u32,
    },
    /// The interface has too many queues.
    #[error(
        "`{interface}` has more than {MAX_QUEUES} queues: `ethtool -L {interface} combined {MAX_QUEUES}`"
    )]
    Queues {
        /// Interface.
        interface: String,
    },
    /// Generic XDP does not see all packets of the interface.
    #[error(
        "`{interface}` is a {kind} interface, without native XDP: some of its packets would pass without \
         a program; use a veth, or attach programs to the interfaces below"
    )]
    Generic {
        /// Interface.
        interface: String,
        /// Kind of its driver.
        kind: String,
    },
    /// An interface with the peer's name exists.
    #[error("there is an interface `{peer}` already: another `--peer` names the new one")]
    PeerExists {
        /// Name of the peer.
        peer: String,
    },
    /// The two interfaces of a port have different numbers of queues.
    #[error(
        "`{interface}` and `{other}` have different numbers of queues: `ethtool -L {other} combined \
         {count}`"
    )]
    OtherQueues {
        /// Interface.
        interface: String,
        /// Interface of its users.
        other: String,
        /// Number of queues of the interface.
        count: u32,
    },
    /// An interface that is to be connected with another one belongs to a bridge.
    #[error("`{interface}` is a port of {bridge}: `ip link set dev {interface} nomaster`")]
    InBridge {
        /// Interface.
        interface: String,
        /// Its bridge.
        bridge: String,
    },
    /// Two interfaces that are to be connected are the ends of one veth pair.
    #[error("`{interface}` and `{other}` are the two ends of one veth pair")]
    Loop {
        /// Interface.
        interface: String,
        /// Interface of its users.
        other: String,
    },
    /// An interface was deleted, or moved to another network namespace.
    #[error("the interface `{0}` has been deleted, or moved to another network namespace")]
    Deleted(String),
    /// The daemon attaches no program to a socket.
    #[error("{0}")]
    Refused(String),
    /// A socket cannot be opened.
    #[error("cannot open an AF_XDP socket on `{interface}`")]
    Socket {
        /// Interface.
        interface: String,
        /// Cause.
        #[source]
        source: xsk::Error,
    },
    /// A program cannot be loaded or attached.
    #[error("cannot attach the program to `{interface}`")]
    Program {
        /// Interface.
        interface: String,
        /// Cause.
        #[source]
        source: bpf::Error,
    },
    /// A request to the kernel fails.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// A system call fails.
    #[error("the process between the interfaces cannot run")]
    System(#[source] Errno),
    /// A thread cannot be started.
    #[error("the process between the interfaces cannot start a thread")]
    Thread(#[source] std::io::Error),
}

impl Error {
    /// Returns the error of a socket that cannot be opened on a queue of an interface.
    pub(crate) fn socket(interface: &str, queue: u32, source: xsk::Error) -> Self {
        let interface = interface.to_owned();
        if source.is_taken() {
            return Self::Taken { interface, queue };
        }
        Self::Socket { interface, source }
    }

    /// Returns a function that makes an error of a failure with the programs of an interface.
    pub(crate) fn program(interface: &str) -> impl Fn(bpf::Error) -> Self + use<> {
        let interface = interface.to_owned();
        move |source| Self::Program { interface: interface.clone(), source }
    }

    /// Returns true if the operator's input or machine is the cause, not the kernel.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::NoInterface(_)
                | Self::AlternativeName { .. }
                | Self::NotEthernet(_)
                | Self::Bond(_)
                | Self::Occupied { .. }
                | Self::Taken { .. }
                | Self::Mtu { .. }
                | Self::Queues { .. }
                | Self::Generic { .. }
                | Self::PeerExists { .. }
                | Self::OtherQueues { .. }
                | Self::InBridge { .. }
                | Self::Loop { .. }
        )
    }
}
