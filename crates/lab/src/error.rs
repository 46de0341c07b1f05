//! Why a lab does not do what it should.

use std::path::PathBuf;

use crate::Phase;

/// What failed, with what it failed on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is already a lab of this name.
    #[error("the lab `{name}` is {phase}: {}, or use --name", exists(.name, .phase))]
    Exists {
        /// The lab.
        name: String,
        /// What it is doing.
        phase: &'static str,
    },
    /// There is no lab of this name.
    #[error("there is no lab `{name}`{}", there_are(.known))]
    NoLab {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// No lab was named, and there is none or more than one.
    #[error("{}", which_lab(.known))]
    WhichLab {
        /// The names that there are.
        known: Vec<String>,
    },
    /// A lab's name is not one.
    #[error("`{0}` is no name of a lab: use up to 31 of a-z, 0-9 and -, beginning with a letter")]
    BadName(String),
    /// The socket of one of the lab's daemons would have a path that no socket can have.
    #[error(
        "{} is {} bytes long, and a Unix socket's path has at most {most}: set KAIDO_RUN to a \
         shorter folder",
        path.display(), path.as_os_str().len()
    )]
    PathTooLong {
        /// The socket.
        path: PathBuf,
        /// How long it may be.
        most: usize,
    },
    /// The environment names an empty folder.
    #[error("KAIDO_RUN is empty: set it to a folder, or unset it")]
    EmptyRunFolder,
    /// The labs' folder cannot hold any.
    #[error("labs cannot be kept in {}: set KAIDO_RUN to another folder", .path.display())]
    RunFolder {
        /// The folder.
        path: PathBuf,
        /// Why it cannot.
        #[source]
        source: std::io::Error,
    },
    /// The labs' folder has a name that a configuration cannot hold.
    #[error("{} is not UTF-8: set KAIDO_RUN to another folder", .0.display())]
    NotUtf8(PathBuf),
    /// Another command works on the lab.
    #[error("another command is working on the lab `{0}`: wait until it has finished")]
    Busy(String),
    /// A daemon that is to be started runs already.
    #[error("{0} is running already")]
    Running(String),
    /// Emulated links, and no program to run the emulator.
    #[error("the lab has emulated links, and is brought up without Kaido's daemons")]
    NoProgram,
    /// A lab without emulated links.
    #[error("the lab {0} has no emulated link, and no emulator")]
    NoEmulator(String),
    /// A lab without emulated links and without events.
    #[error("the lab {0} has no emulated link and no events, and no supervisor")]
    NoSupervisor(String),
    /// A link that is the kernel's own, and a change that only the emulator makes.
    #[error(
        "{link} is a link of the kernel's own, which has a rate and nothing else: put `engine: true` \
         behind it in the lab's file"
    )]
    NotEmulated {
        /// The link.
        link: String,
    },
    /// A lab without Kaido's daemons.
    #[error("the lab {0} has no controller: put `controller: true` into its file")]
    NoController(String),
    /// The command runs on a node of the lab that it would take away.
    #[error("this shell is on a node of the lab `{0}`: leave it first")]
    Inside(String),
    /// The lab is not up.
    #[error("the lab `{name}` is {phase}: {}", not_ready(.name, .phase))]
    NotReady {
        /// The lab.
        name: String,
        /// What it is doing.
        phase: &'static str,
    },
    /// There is no such node.
    #[error("there is no node `{name}` in this lab{}", there_are(.known))]
    NoNode {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The node is a router of the emulator's.
    #[error("{0} is a virtual router: no program can run there")]
    Virtual(String),
    /// The node stands for what is outside.
    #[error("{node} stands for what is behind {interface}: no program can run there")]
    Outside {
        /// The node.
        node: String,
        /// The interface of this machine.
        interface: String,
    },
    /// There is no such interface to attach.
    #[error(
        "{node}: this machine has no interface `{interface}` to attach{}",
        there_are(.known)
    )]
    NotThere {
        /// The node that stands for it.
        node: String,
        /// The interface.
        interface: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// Another command attaches interfaces of this machine, and does not come to an end.
    #[error(
        "another command{} has attached interfaces of this machine for {seconds} s: wait until it has \
         finished, or end it",
        .process.map_or_else(String::new, |process| format!(" (process {process})"))
    )]
    NoTurn {
        /// The time that was waited.
        seconds: u64,
        /// The command's process, if it has written it down.
        process: Option<u32>,
    },
    /// The interface to attach is down.
    #[error("the interface `{0}` to attach is down: `ip link set {0} up`")]
    AttachedDown(String),
    /// The interface is attached already.
    #[error(
        "the interface `{interface}` is attached to {}: an interface is in one lab",
        .lab.as_ref().map_or("another lab".into(), |lab| format!("the lab {lab}"))
    )]
    InAnotherLab {
        /// The interface.
        interface: String,
        /// That lab's name, if it is known.
        lab: Option<String>,
    },
    /// The machine would be cut off.
    #[error(
        "the interface `{0}` is this machine's only way out, which the lab would be on: \
         attach another one, or say --yes"
    )]
    OnlyWayOut(String),
    /// The machine does not forward what comes out of the network.
    #[error("what comes out of the lab is not forwarded: `sysctl -w net.{setting}=1` for {family}")]
    NoForwarding {
        /// The address family.
        family: &'static str,
        /// The setting.
        setting: String,
    },
    /// The machine drops what comes out of the network.
    #[error(
        "what comes out of the lab would be dropped, since it does not come by the way back to its \
         sender: `sysctl -w net.ipv4.conf.all.rp_filter=0`"
    )]
    StrictReversePath,
    /// A program that makes the rules is missing.
    #[error("`via: nfqueue` needs {program}: install iptables")]
    NoIptables {
        /// The program.
        program: &'static str,
        /// Why it does not run.
        #[source]
        source: std::io::Error,
    },
    /// There are no tun devices.
    #[error("`via: nfqueue` needs /dev/net/tun: load the module tun")]
    NoTun,
    /// Every queue has somebody who may use it.
    #[error(
        "no netfilter queue is free for `{0}`: take labs down that attach with `via: nfqueue` \
         (`kaido lab ls`), or remove chains that they have left (`iptables -t mangle -S | grep kaido-`)"
    )]
    NoFreeQueue(String),
    /// What a lab has written down about its queues is lost.
    #[error(
        "cannot tell which of netfilter's rules are the lab's, since {} cannot be read: remove its chains \
         (`iptables -t mangle -S | grep kaido-`, and ip6tables), then this file, and try again",
        .path.display()
    )]
    UnknownRules {
        /// The file.
        path: PathBuf,
        /// Why it cannot.
        #[source]
        source: std::io::Error,
    },
    /// The rules for queues were refused.
    #[error("cannot queue packets: {0}")]
    QueueRules(String),
    /// The node's SRv6 is the kernel's.
    #[error(
        "node {node} has no data plane of its own: write `dataplane: xdp` in the lab's file{}",
        there_are(.known)
    )]
    NoDataplane {
        /// The node.
        node: String,
        /// The nodes that have one.
        known: Vec<String>,
    },
    /// A link was to get a rate, and a node at its end sends by XDP past every queue.
    #[error(
        "{link} has no rate in the lab's file, so {node} sends by XDP past every queue: give it \
         one there, such as `{{rate: 1gbit}}`, and it can be changed"
    )]
    NoQueue {
        /// The link.
        link: String,
        /// The node.
        node: String,
    },
    /// The kernel has no netem.
    #[error(
        "the link {link} wants netem, which this kernel has not ({source}): it needs \
         CONFIG_NET_SCH_NETEM; write `engine: true`, and the emulator does the same"
    )]
    NoNetem {
        /// The link.
        link: String,
        /// What the kernel said.
        source: netlink::Error,
    },
    /// There is no such interface.
    #[error("node {node} has no interface `{name}`{}", there_are(.known))]
    NoInterface {
        /// The node.
        node: String,
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// There is no such link.
    #[error("there is no link `{name}` in this lab{}", there_are(.known))]
    NoLink {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// A node that does not send on a link.
    #[error("`{node}` is not on {link}, which has {}", .ends.join(", "))]
    NotOnLink {
        /// The node.
        node: String,
        /// The link.
        link: String,
        /// The nodes that are.
        ends: Vec<String>,
    },
    /// The lab's own copy of its topology cannot be read any more.
    #[error("the lab `{name}` has lost its topology: take it down with `kaido lab down {name}`")]
    Damaged {
        /// The lab.
        name: String,
    },
    /// Not root.
    #[error("a lab needs root: run this with sudo")]
    NotRoot,
    /// The kernel has no IPv6, or it is switched off.
    #[error("IPv6 is disabled on this machine ({0}): a lab needs it")]
    NoIpv6(&'static str),
    /// FRR is not installed.
    #[error("FRR is not installed ({0} is missing): run `apt-get install frr`, or `make deps`")]
    NoFrr(PathBuf),
    /// A test needs a program that is not there.
    #[error("{program}, which a test needs, does not run: `apt-get install {package}`")]
    NoTool {
        /// The program.
        program: &'static str,
        /// The package that has it.
        package: &'static str,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// Service functions have rules, and nothing loads them.
    #[error(
        "nft, which loads the rules of service functions, does not run: `apt-get install nftables`"
    )]
    NoNft(#[source] std::io::Error),
    /// nft refuses the rules of a service function.
    #[error("nft on {node} refuses the rules of {function}: {said}")]
    Rules {
        /// The node.
        node: String,
        /// The function.
        function: String,
        /// What nft says.
        said: String,
    },
    /// nft does not come to the end of the rules of a service function.
    #[error(
        "nft on {node} is not done with the rules of {function} after {seconds} s: see whether they include \
         what has no end, such as a pipe"
    )]
    EndlessRules {
        /// The node.
        node: String,
        /// The function.
        function: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// An FRR daemon did not start, or ended.
    #[error("{daemon} on {node} {what}{}", said(.log))]
    Frr {
        /// The node.
        node: String,
        /// The daemon.
        daemon: String,
        /// What it did.
        what: String,
        /// The last lines of its log.
        log: String,
    },
    /// FRR refuses its configuration.
    #[error("FRR on {node} refuses its configuration:\n{said}")]
    FrrConfig {
        /// The node.
        node: String,
        /// What vtysh said.
        said: String,
    },
    /// A daemon of Kaido's did not start, or ended.
    #[error("{daemon} {what}{}", said(.log))]
    Daemon {
        /// Which one.
        daemon: String,
        /// What it did.
        what: String,
        /// The last lines of its log.
        log: String,
    },
    /// The controller does not know all of its domain.
    #[error("after {seconds} s the controller still waits for {}", .missing.join(", "))]
    Incomplete {
        /// How long it was waited for.
        seconds: u64,
        /// What it lacks.
        missing: Vec<String>,
    },
    /// Routing did not converge.
    #[error("routing has not converged after {seconds} s:{}", lines(.missing))]
    NotConverged {
        /// How long it was waited for.
        seconds: u64,
        /// What is missing where.
        missing: Vec<String>,
    },
    /// Processes that do not end.
    #[error("processes of the lab do not end: {0:?}")]
    Stubborn(Vec<i32>),
    /// Stopped by the user.
    #[error("stopped")]
    Cancelled,
    /// Netlink.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// What XDP needs of the kernel.
    #[error(transparent)]
    Bpf(#[from] bpf::Error),
    /// Files.
    #[error("cannot {doing} {path}")]
    File {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// A command.
    #[error("cannot run {command}")]
    Command {
        /// The command.
        command: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    /// Whether the fault is in what the user wrote, not on the machine.
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
