//! Why a program is not at work.

/// What failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refuses the program.
    #[error("the kernel does not load the program `{program}`: it needs BPF with BTF (Linux 6.1)")]
    Load {
        /// The program.
        program: &'static str,
        /// Why.
        #[source]
        source: libbpf_rs::Error,
    },
    /// The kernel lacks what the program needs.
    #[error("the kernel does not load the program `{program}`: {lacks}")]
    Lacks {
        /// The program.
        program: &'static str,
        /// What it lacks, and what has it.
        lacks: &'static str,
        /// Why.
        #[source]
        source: libbpf_rs::Error,
    },
    /// The program does not attach to an interface.
    #[error(
        "cannot attach the program `{program}` to interface {interface}: it needs the clsact \
         queueing discipline (NET_SCH_INGRESS, NET_CLS_BPF)"
    )]
    Attach {
        /// The program.
        program: &'static str,
        /// The interface's index.
        interface: i32,
        /// Why.
        #[source]
        source: libbpf_rs::Error,
    },
    /// A map cannot be read or written.
    #[error("cannot {doing} the map `{map}`")]
    Map {
        /// The map.
        map: &'static str,
        /// Read or write.
        doing: &'static str,
        /// Why.
        #[source]
        source: libbpf_rs::Error,
    },
    /// Another XDP program is at work on the interface.
    #[error(
        "interface {interface} has an XDP program already: take it off first \
         (`ip link set dev NAME xdp off`), or leave the port out"
    )]
    Occupied {
        /// The interface's index.
        interface: u32,
    },
    /// The driver runs no XDP programs.
    #[error("the driver of interface {interface} has no native XDP: use `mode: generic` or `auto`")]
    NotNative {
        /// The interface's index.
        interface: u32,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A program does not attach to an interface.
    #[error("cannot attach XDP to interface {interface}")]
    AttachXdp {
        /// The interface's index.
        interface: u32,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The guard of an interface cannot be put there or taken off.
    #[error("cannot guard interface {interface} against answers of this node (tcx or clsact)")]
    Guard {
        /// The interface's index.
        interface: u32,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// What comes back from a service function by an interface cannot be taken, or left.
    #[error("cannot take what service functions send by interface {interface} (tcx or clsact)")]
    Back {
        /// The interface's index.
        interface: u32,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A pin cannot be made, opened or removed.
    #[error("cannot use {} to keep programs at work", path.display())]
    Pin {
        /// The pin, or the folder for pins.
        path: std::path::PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A program cannot be run on a packet.
    #[error("the kernel does not run the program on a packet (BPF_PROG_TEST_RUN)")]
    Run {
        /// Why.
        #[source]
        source: libbpf_rs::Error,
    },
    /// A program that measures did not come to its end.
    #[error("the program `{program}` gave up: the packet is not the template's")]
    Aborted {
        /// The program.
        program: &'static str,
    },
    /// Too many keys with the same hash; not to be expected.
    #[error("the index of {index} has no room for one more: give the table a larger size")]
    IndexFull {
        /// The index.
        index: &'static str,
    },
    /// A table has no room for one more.
    #[error("there is room for at most {room} {table}")]
    TableFull {
        /// What it holds.
        table: &'static str,
        /// The most.
        room: usize,
    },
    /// More flows or applications than there is room for.
    #[error("a node counts at most {0} {1}")]
    Full(usize, &'static str),
}
impl Error {
    /// The kernel refused to load `program`: looks for what it lacks.
    pub(crate) fn load(program: &'static str, source: libbpf_rs::Error) -> Self {
        match crate::needs::lacks() {
            Some(lacks) => Self::Lacks { program, lacks, source },
            None => Self::Load { program, source },
        }
    }
}
