//! Errors of loading, attaching and using programs.

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel rejects the program.
    #[error("the kernel does not load the program `{program}`: it needs BPF with BTF (Linux 6.1)")]
    Load {
        /// Name of the program.
        program: &'static str,
        /// Cause.
        #[source]
        source: libbpf_rs::Error,
    },
    /// The kernel lacks a feature that the program needs.
    #[error("the kernel does not load the program `{program}`: {lacks}")]
    Lacks {
        /// Name of the program.
        program: &'static str,
        /// The missing feature, and the kernel version that has it.
        lacks: &'static str,
        /// Cause.
        #[source]
        source: libbpf_rs::Error,
    },
    /// The program cannot be attached to an interface.
    #[error(
        "cannot attach the program `{program}` to interface {interface}: it needs the clsact \
         queueing discipline (NET_SCH_INGRESS, NET_CLS_BPF)"
    )]
    Attach {
        /// Name of the program.
        program: &'static str,
        /// Index of the interface.
        interface: i32,
        /// Cause.
        #[source]
        source: libbpf_rs::Error,
    },
    /// A map cannot be read or written.
    #[error("cannot {doing} the map `{map}`")]
    Map {
        /// Name of the map.
        map: &'static str,
        /// The failed operation: read or write.
        doing: &'static str,
        /// Cause.
        #[source]
        source: libbpf_rs::Error,
    },
    /// The interface already has another XDP program.
    #[error(
        "interface {interface} has an XDP program already: detach it first \
         (`ip link set dev NAME xdp off`), or leave the port out"
    )]
    Occupied {
        /// Index of the interface.
        interface: u32,
    },
    /// The driver does not support native XDP.
    #[error(
        "the driver of interface {interface} has no native XDP, or not at present: use `mode: generic` if all of its senders are \
         trusted"
    )]
    NotNative {
        /// Index of the interface.
        interface: u32,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// An XDP program cannot be attached to an interface.
    #[error("cannot attach XDP to interface {interface}")]
    AttachXdp {
        /// Index of the interface.
        interface: u32,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// An interface cannot be closed to packets other than those of AF_XDP sockets.
    #[error("cannot close interface {interface} to other packets (tcx or clsact)")]
    Close {
        /// Index of the interface.
        interface: u32,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// The ingress filter of a port cannot be attached or detached.
    #[error("cannot attach the ingress filter to port {interface} (tcx or clsact)")]
    Filter {
        /// Index of the interface.
        interface: u32,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// The egress filter of an interface cannot be attached or detached.
    #[error(
        "cannot attach the egress filter for local replies to interface {interface} (tcx or clsact)"
    )]
    Guard {
        /// Index of the interface.
        interface: u32,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// The program for packets that return from a service function cannot be attached or detached.
    #[error(
        "cannot attach the program for packets that return from service functions to interface {interface} \
         (tcx or clsact)"
    )]
    Back {
        /// Index of the interface.
        interface: u32,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// A pin cannot be created, opened or removed.
    #[error("cannot pin the program at {}", path.display())]
    Pin {
        /// The pin, or the directory for pins.
        path: std::path::PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// A program cannot be run on a packet.
    #[error("the kernel does not run the program on a packet (BPF_PROG_TEST_RUN)")]
    Run {
        /// Cause.
        #[source]
        source: libbpf_rs::Error,
    },
    /// A benchmark program was aborted.
    #[error("the program `{program}` aborted: unexpected packet")]
    Aborted {
        /// Name of the program.
        program: &'static str,
    },
    /// Too many keys with the same hash; not expected.
    #[error("the {index} index is full: increase the table's size")]
    IndexFull {
        /// Name of the index.
        index: &'static str,
    },
    /// A table is full.
    #[error("table full: at most {room} {table}")]
    TableFull {
        /// Contents of the table.
        table: &'static str,
        /// Capacity.
        room: usize,
    },
    /// The number of flows or applications exceeds the limit.
    #[error("a node counts at most {0} {1}")]
    Full(usize, &'static str),
}
impl Error {
    /// Returns the error for a rejected `program`, after probing for missing features.
    pub(crate) fn load(program: &'static str, source: libbpf_rs::Error) -> Self {
        match crate::needs::lacks() {
            Some(lacks) => Self::Lacks { program, lacks, source },
            None => Self::Load { program, source },
        }
    }
}
