//! Errors of labs.

use std::path::PathBuf;

use crate::Phase;

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
    #[error("there is no lab `{name}`{}", there_are(.known))]
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
    #[error("`{0}` is no name of a lab: use up to 31 of a-z, 0-9 and -, beginning with a letter")]
    BadName(String),
    /// The path of a daemon's socket would be too long.
    #[error(
        "{} is {} bytes long, and a Unix socket's path has at most {most}: set KAIDO_RUN to a \
         shorter folder",
        path.display(), path.as_os_str().len()
    )]
    PathTooLong {
        /// Path of the socket.
        path: PathBuf,
        /// Maximum length in bytes.
        most: usize,
    },
    /// KAIDO_RUN is set but empty.
    #[error("KAIDO_RUN is empty: set it to a folder, or unset it")]
    EmptyRunFolder,
    /// The labs' folder is not usable.
    #[error("labs cannot be kept in {}: set KAIDO_RUN to another folder", .path.display())]
    RunFolder {
        /// Path of the folder.
        path: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// The path of the labs' folder is not UTF-8, so a configuration cannot contain it.
    #[error("{} is not UTF-8: set KAIDO_RUN to another folder", .0.display())]
    NotUtf8(PathBuf),
    /// Another command holds the lab's lock.
    #[error("another command is working on the lab `{0}`: wait until it has finished")]
    Busy(String),
    /// The daemon to start is already running.
    #[error("{0} is running already")]
    Running(String),
    /// The lab has emulated links, but there is no program to run as the emulator.
    #[error("the lab has emulated links, and is brought up without Kaido's daemons")]
    NoProgram,
    /// The lab has no emulated links.
    #[error("the lab {0} has no emulated link, and no emulator")]
    NoEmulator(String),
    /// The lab has neither emulated links nor events.
    #[error("the lab {0} has no emulated link and no events, and no supervisor")]
    NoSupervisor(String),
    /// The link is a kernel link, but only the emulator supports the change.
    #[error(
        "{link} is a link of the kernel's own, which has a rate and nothing else: put `engine: true` \
         behind it in the lab's file"
    )]
    NotEmulated {
        /// Link name.
        link: String,
    },
    /// The lab runs without Kaido's daemons.
    #[error("the lab {0} has no controller: put `controller: true` into its file")]
    NoController(String),
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
    /// The node does not exist.
    #[error("there is no node `{name}` in this lab{}", there_are(.known))]
    NoNode {
        /// Name that was requested.
        name: String,
        /// Existing names.
        known: Vec<String>,
    },
    /// The node is a virtual router inside the emulator.
    #[error("{0} is a virtual router: no program can run there")]
    Virtual(String),
    /// The node stands for an external network.
    #[error("{node} stands for what is behind {interface}: no program can run there")]
    Outside {
        /// Node name.
        node: String,
        /// Interface of this machine.
        interface: String,
    },
    /// The interface to attach does not exist.
    #[error(
        "{node}: this machine has no interface `{interface}` to attach{}",
        there_are(.known)
    )]
    NotThere {
        /// Node that stands for it.
        node: String,
        /// Interface name.
        interface: String,
        /// Existing interfaces.
        known: Vec<String>,
    },
    /// Another command holds the lock on attaching interfaces, and does not finish.
    #[error(
        "another command{} has attached interfaces of this machine for {seconds} s: wait until it has \
         finished, or end it",
        .process.map_or_else(String::new, |process| format!(" (process {process})"))
    )]
    NoTurn {
        /// Seconds waited.
        seconds: u64,
        /// PID of the other command, if it has recorded it.
        process: Option<u32>,
    },
    /// The interface to attach is down.
    #[error("the interface `{0}` to attach is down: `ip link set {0} up`")]
    AttachedDown(String),
    /// The interface is already attached.
    #[error(
        "the interface `{interface}` is attached to {}: an interface is in one lab",
        .lab.as_ref().map_or("another lab".into(), |lab| format!("the lab {lab}"))
    )]
    InAnotherLab {
        /// Interface name.
        interface: String,
        /// Name of the other lab, if known.
        lab: Option<String>,
    },
    /// Attaching the interface would cut the machine off.
    #[error(
        "the interface `{0}` is this machine's only way out, which the lab would be on: \
         attach another one, or say --yes"
    )]
    OnlyWayOut(String),
    /// The machine does not forward packets that leave the lab.
    #[error("what comes out of the lab is not forwarded: `sysctl -w net.{setting}=1` for {family}")]
    NoForwarding {
        /// Address family.
        family: &'static str,
        /// Name of the sysctl.
        setting: String,
    },
    /// Reverse-path filtering would drop packets that leave the lab.
    #[error(
        "what comes out of the lab would be dropped, since it does not come by the way back to its \
         sender: `sysctl -w net.ipv4.conf.all.rp_filter=0`"
    )]
    StrictReversePath,
    /// A program that installs the rules is missing.
    #[error("`via: nfqueue` needs {program}: install iptables")]
    NoIptables {
        /// Program name.
        program: &'static str,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// The machine has no tun devices.
    #[error("`via: nfqueue` needs /dev/net/tun: load the module tun")]
    NoTun,
    /// All netfilter queues are taken.
    #[error(
        "no netfilter queue is free for `{0}`: take labs down that attach with `via: nfqueue` \
         (`kaido lab ls`), or remove chains that they have left (`iptables -t mangle -S | grep kaido-`)"
    )]
    NoFreeQueue(String),
    /// The lab's record of its queues is lost.
    #[error(
        "cannot tell which of netfilter's rules are the lab's, since {} cannot be read: remove its chains \
         (`iptables -t mangle -S | grep kaido-`, and ip6tables), then this file, and try again",
        .path.display()
    )]
    UnknownRules {
        /// Path of the record.
        path: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// The queue rules were rejected.
    #[error("cannot queue packets: {0}")]
    QueueRules(String),
    /// The node uses the kernel's SRv6.
    #[error(
        "node {node} has no data plane of its own: write `dataplane: xdp` in the lab's file{}",
        there_are(.known)
    )]
    NoDataplane {
        /// Node name.
        node: String,
        /// Nodes that have their own data plane.
        known: Vec<String>,
    },
    /// A rate cannot be set on the link: a node at its end sends by XDP, which bypasses all queues.
    #[error(
        "{link} has no rate in the lab's file, so {node} sends by XDP past every queue: give it \
         one there, such as `{{rate: 1gbit}}`, and it can be changed"
    )]
    NoQueue {
        /// Link name.
        link: String,
        /// Node name.
        node: String,
    },
    /// The kernel has no netem.
    #[error(
        "the link {link} wants netem, which this kernel has not ({source}): it needs \
         CONFIG_NET_SCH_NETEM; write `engine: true`, and the emulator does the same"
    )]
    NoNetem {
        /// Link name.
        link: String,
        /// The kernel's error.
        source: netlink::Error,
    },
    /// The interface does not exist.
    #[error("node {node} has no interface `{name}`{}", there_are(.known))]
    NoInterface {
        /// Node name.
        node: String,
        /// Name that was requested.
        name: String,
        /// Existing names.
        known: Vec<String>,
    },
    /// The link does not exist.
    #[error("there is no link `{name}` in this lab{}", there_are(.known))]
    NoLink {
        /// Name that was requested.
        name: String,
        /// Existing names.
        known: Vec<String>,
    },
    /// The node does not send on the link.
    #[error("`{node}` is not on {link}, which has {}", .ends.join(", "))]
    NotOnLink {
        /// Node name.
        node: String,
        /// Link name.
        link: String,
        /// Nodes that send on it.
        ends: Vec<String>,
    },
    /// The lab's copy of its topology is unreadable.
    #[error("the lab `{name}` has lost its topology: take it down with `kaido lab down {name}`")]
    Damaged {
        /// Lab name.
        name: String,
    },
    /// The user is not root.
    #[error("a lab needs root: run this with sudo")]
    NotRoot,
    /// IPv6 is missing or disabled in the kernel.
    #[error("IPv6 is disabled on this machine ({0}): a lab needs it")]
    NoIpv6(&'static str),
    /// FRR is not installed.
    #[error("FRR is not installed ({0} is missing): run `apt-get install frr`, or `make deps`")]
    NoFrr(PathBuf),
    /// A program that a test needs is missing.
    #[error("{program}, which a test needs, does not run: `apt-get install {package}`")]
    NoTool {
        /// Program name.
        program: &'static str,
        /// Package that provides it.
        package: &'static str,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// Service functions have rules, but nft is missing.
    #[error(
        "nft, which loads the rules of service functions, does not run: `apt-get install nftables`"
    )]
    NoNft(#[source] std::io::Error),
    /// nft rejects the rules of a service function.
    #[error("nft on {node} refuses the rules of {function}: {said}")]
    Rules {
        /// Node name.
        node: String,
        /// Function name.
        function: String,
        /// Output of nft.
        said: String,
    },
    /// nft does not finish loading the rules of a service function.
    #[error(
        "nft on {node} is not done with the rules of {function} after {seconds} s: see whether they include \
         what has no end, such as a pipe"
    )]
    EndlessRules {
        /// Node name.
        node: String,
        /// Function name.
        function: String,
        /// Timeout in seconds.
        seconds: u64,
    },
    /// An FRR daemon did not start, or exited.
    #[error("{daemon} on {node} {what}{}", said(.log))]
    Frr {
        /// Node name.
        node: String,
        /// Daemon name.
        daemon: String,
        /// Description of the failure.
        what: String,
        /// Last lines of its log.
        log: String,
    },
    /// FRR rejects its configuration.
    #[error("FRR on {node} refuses its configuration:\n{said}")]
    FrrConfig {
        /// Node name.
        node: String,
        /// Output of vtysh.
        said: String,
    },
    /// One of Kaido's daemons did not start, or exited.
    #[error("{daemon} {what}{}", said(.log))]
    Daemon {
        /// Daemon name.
        daemon: String,
        /// Description of the failure.
        what: String,
        /// Last lines of its log.
        log: String,
    },
    /// The controller's view of its domain is incomplete.
    #[error("after {seconds} s the controller still waits for {}", .missing.join(", "))]
    Incomplete {
        /// Timeout in seconds.
        seconds: u64,
        /// Missing items.
        missing: Vec<String>,
    },
    /// Routing did not converge.
    #[error("routing has not converged after {seconds} s:{}", lines(.missing))]
    NotConverged {
        /// Timeout in seconds.
        seconds: u64,
        /// Missing routes, with their nodes.
        missing: Vec<String>,
    },
    /// Processes of the lab that do not exit.
    #[error("processes of the lab do not end: {0:?}")]
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
    /// A command cannot be run.
    #[error("cannot run {command}")]
    Command {
        /// Command name.
        command: String,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    /// True if the user's input is at fault, not the machine.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Exists { .. }
                | Self::NoLab { .. }
                | Self::WhichLab { .. }
                | Self::BadName(_)
                | Self::PathTooLong { .. }
                | Self::NotUtf8(_)
                | Self::EmptyRunFolder
                | Self::RunFolder { .. }
                | Self::NotOnLink { .. }
                | Self::Running(_)
                | Self::Inside(_)
                | Self::NoController(_)
                | Self::NoEmulator(_)
                | Self::NoSupervisor(_)
                | Self::NotEmulated { .. }
                | Self::NoNode { .. }
                | Self::Virtual(_)
                | Self::Outside { .. }
                | Self::NotThere { .. }
                | Self::OnlyWayOut(_)
                | Self::NoDataplane { .. }
                | Self::NoQueue { .. }
                | Self::NoInterface { .. }
                | Self::NoLink { .. }
                | Self::FrrConfig { .. }
                | Self::Rules { .. }
        )
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
        return "there is no lab: `kaido lab up FILE` brings one up".into();
    }
    format!("say which lab is meant, with --lab{}", there_are(known))
}

fn there_are(known: &[String]) -> String {
    match known {
        [] => String::new(),
        [one] => format!(": there is {one}"),
        many => format!(": there are {}", many.join(", ")),
    }
}

fn said(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("; its log ends with:\n{log}") }
}

fn lines(missing: &[String]) -> String {
    missing.iter().map(|line| format!("\n  {line}")).collect()
}
