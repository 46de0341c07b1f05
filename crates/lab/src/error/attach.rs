//! Interfaces of this machine that cannot be attached.

use std::path::PathBuf;

use super::text::known_names;

/// Interfaces of this machine that cannot be attached.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The interface to attach does not exist.
    #[error(
        "{node}: this machine has no interface `{interface}` to attach{}",
        known_names(.known)
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
        "the interface `{0}` has this machine's only default route: attach another one, or use --yes"
    )]
    OnlyWayOut(String),
    /// The machine does not forward packets that leave the lab.
    #[error(
        "the machine does not forward packets from the lab: `sysctl -w net.{setting}=1` for {family}"
    )]
    NoForwarding {
        /// Address family.
        family: &'static str,
        /// Name of the sysctl.
        setting: String,
    },
    /// Reverse-path filtering would drop packets that leave the lab.
    #[error(
        "reverse-path filtering would drop packets from the lab: `sysctl -w net.ipv4.conf.all.rp_filter=0`"
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
    /// The attached interfaces are in another network namespace, which is not visible here.
    #[error(
        "the lab's attached interfaces are in another network namespace, which is mounted in another mount \
         namespace: run this command where `kaido lab up` ran"
    )]
    Elsewhere,
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
}

impl AttachError {
    /// True if the user's input is at fault, not the machine.
    pub(super) fn is_usage(&self) -> bool {
        matches!(self, Self::NotThere { .. } | Self::OnlyWayOut(_))
    }
}
