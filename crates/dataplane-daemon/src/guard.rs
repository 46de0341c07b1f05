//! A second look at packets for the kernel, by netfilter.
//!
//! On interfaces to service functions, and on ports, a program at tc ingress sees all packets before the
//! kernel does, and marks those that it leaves to it. tc passes some packets without its programs, though:
//! those that tc in the sender's own namespace has redirected through an ifb (`skb->tc_skip_classify`,
//! which a veth keeps). They lack the mark, and the rules here drop them (decision 61).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use netlink::NetfilterHandle;

use crate::{Error, nft};

/// The table's name, in the family `inet`.
const TABLE: &str = "kaido-guard";
/// Before connection tracking, so that dropped packets create no connection.
const HOOK: &str = "type filter hook prerouting priority -450; policy accept;";
/// MARK_OF_LINK (bpf/include/srv6/proxy.h).
const MARK_OF_LINK: u32 = 0x6b61_6964;
/// MARK_OF_PORT (bpf/include/srv6/port_in.h).
const MARK_OF_PORT: u32 = 0x1000_0000;

/// Guarded interfaces, by index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Guarded {
    /// Interfaces to service functions: only packets of the link itself are the kernel's.
    pub(crate) functions: BTreeSet<u32>,
    /// Ports, and what is stacked on them.
    pub(crate) ports: BTreeSet<u32>,
    /// Names that closed ports, and interfaces to functions, have in the file.
    pub(crate) names: BTreeSet<String>,
    /// Interfaces that have their program. Another one with one of the names, such as a veth that was
    /// created again, passes nothing.
    pub(crate) attached: BTreeSet<u32>,
}

impl Guarded {
    /// Returns true if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty() && self.ports.is_empty() && self.names.is_empty()
    }
}

/// The rules on guarded interfaces. They outlive the daemon, as the programs do.
pub(crate) struct Guard {
    /// A file that exists while there may be a table, for the successor of a killed daemon.
    marker: PathBuf,
    /// The interfaces to guard; `None` if only an earlier daemon knows.
    interfaces: Option<Guarded>,
    /// The table as it was written, without counters; `None` if it has to be written.
    written: Option<String>,
    /// Generation of the namespace's rules when the table was looked at.
    generation: Option<u32>,
    /// True if it could not be written again.
    is_failing: bool,
}

impl Guard {
    /// `state`: directory of the data that a later daemon needs.
    pub(crate) fn new(state: &Path) -> Self {
        let marker = state.join("guard");
        let interfaces = (!marker.exists()).then(Guarded::default);
        Self { marker, interfaces, written: None, generation: None, is_failing: false }
    }

    /// Guards exactly these interfaces, by index.
    ///
    /// # Errors
    ///
    /// Fails if `nft` is missing, or the kernel has no nftables. [`Guard::restore`] tries again.
    pub(crate) fn set(&mut self, interfaces: &Guarded) -> Result<(), Error> {
        let is_done = interfaces.is_empty() || self.written.is_some();
        if self.interfaces.as_ref() == Some(interfaces) && is_done {
            return Ok(());
        }
        let path = self.marker.clone();
        let file = |source| Error::State { path: path.clone(), source };
        private::replace(&self.marker, b"").map_err(file)?;
        self.interfaces = Some(interfaces.clone());
        self.write(interfaces)?;
        if interfaces.is_empty() {
            std::fs::remove_file(&path).map_err(file)?;
        }
        Ok(())
    }

    /// Fails if [`Guard::set`] would fail.
    pub(crate) fn check(&self, interfaces: &Guarded) -> Result<(), Error> {
        // What has been written shows that netfilter works.
        if interfaces.is_empty() || self.written.is_some() {
            return Ok(());
        }
        nft::run(&["-c", "-f", "-"], &rules(interfaces)).map(drop).map_err(Error::Guard)
    }

    /// Writes the rules again if they are gone: `nft flush ruleset` removes them.
    pub(crate) fn restore(&mut self) {
        let Some(interfaces) = self.interfaces.clone().filter(|all| !all.is_empty()) else {
            return;
        };
        let generation = generation();
        if self.written.is_some() && generation.is_some() && generation == self.generation {
            return;
        }
        self.generation = generation;
        if self.written.is_some() && list() == self.written {
            return;
        }
        let restored = self.write(&interfaces);
        if let (Err(error), false) = (&restored, self.is_failing) {
            tracing::warn!("{error}; the next attempts follow each second");
        }
        self.is_failing = restored.is_err();
    }

    fn write(&mut self, interfaces: &Guarded) -> Result<(), Error> {
        self.written = None;
        nft::run(&["-f", "-"], &rules(interfaces)).map_err(Error::Guard)?;
        self.generation = generation();
        self.written = list();
        Ok(())
    }
}

/// Returns the table without counters, if it exists.
fn list() -> Option<String> {
    nft::run(&["-s", "list", "table", "inet", TABLE], "").ok()
}

fn generation() -> Option<u32> {
    NetfilterHandle::new().and_then(|mut handle| handle.generation()).ok()
}

/// Returns the commands that replace the table in one transaction.
fn rules(interfaces: &Guarded) -> String {
    // The first line lets the second one succeed without a table.
    let mut text = format!("table inet {TABLE}\ndelete table inet {TABLE}\n");
    let mut chain = |name: &str, interfaces: &BTreeSet<u32>, rules: &str| {
        if interfaces.is_empty() {
            return;
        }
        let list = indices(interfaces);
        let _ = write!(
            text,
            "table inet {TABLE} {{\n\
             chain {name} {{\n\
             {HOOK}\n\
             iif != {{ {list} }} accept\n\
             {rules}\n\
             }}\n}}\n"
        );
    };
    let of_link = format!("meta mark != {MARK_OF_LINK:#x} counter drop\nmeta mark set 0");
    chain("functions", &interfaces.functions, &of_link);
    let others = !MARK_OF_PORT;
    let of_port = format!(
        "meta mark and {MARK_OF_PORT:#x} == 0 counter drop\nmeta mark set meta mark and {others:#x}"
    );
    chain("ports", &interfaces.ports, &of_port);
    let names: Vec<String> = interfaces
        .names
        .iter()
        .filter(|name| is_quotable(name))
        .map(|name| format!("\"{name}\""))
        .collect();
    if names.is_empty() {
        return text;
    }
    let attached = match interfaces.attached.is_empty() {
        true => String::new(),
        false => format!("iif {{ {} }} accept\n", indices(&interfaces.attached)),
    };
    let names = names.join(", ");
    let _ = write!(
        text,
        "table inet {TABLE} {{\n\
         chain names {{\n\
         {HOOK}\n\
         iifname != {{ {names} }} accept\n\
         {attached}counter drop\n\
         }}\n}}\n"
    );
    text
}

/// Returns a set of interfaces. nft takes a number for a name first; a name has at most 15 characters.
fn indices(interfaces: &BTreeSet<u32>) -> String {
    let all: Vec<String> = interfaces.iter().map(|index| format!("{index:#018x}")).collect();
    all.join(", ")
}

/// Returns true if a name stands for itself between quotes. An asterisk at its end would match others.
fn is_quotable(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'*' | b'\\'))
}

#[cfg(test)]
mod tests {
    use netlink::Namespace;

    use super::*;

    fn nft(arguments: &[&str]) -> String {
        nft::run(arguments, "").unwrap()
    }

    #[test]
    fn root_the_rules_are_written_restored_and_removed() {
        let state = tempfile::tempdir().unwrap();
        let namespace = Namespace::unnamed().unwrap();
        let work = || {
            let mut guard = Guard::new(state.path());
            guard.set(&Guarded::default()).unwrap();
            let names = ["new", "a*", "b\""].map(String::from).into();
            let all =
                Guarded { functions: [1].into(), ports: [1].into(), names, attached: [1].into() };
            guard.check(&all).unwrap();
            assert_eq!(nft(&["list", "ruleset"]), "");
            guard.set(&all).unwrap();
            assert!(guard.marker.exists());
            for chain in ["functions", "ports", "names"] {
                nft(&["list", "chain", "inet", TABLE, chain]);
            }
            nft(&["flush", "ruleset"]);
            guard.restore();
            assert!(nft(&["list", "ruleset"]).contains(TABLE));
            // Rules of others leave it as it is, with its counter.
            let before = nft(&["list", "table", "inet", TABLE]);
            nft(&["add", "table", "inet", "other"]);
            guard.restore();
            assert_eq!(nft(&["list", "table", "inet", TABLE]), before);
            nft(&["delete", "table", "inet", "other"]);
            // The successor of a killed daemon removes it.
            let mut guard = Guard::new(state.path());
            guard.set(&Guarded::default()).unwrap();
            assert_eq!((nft(&["list", "ruleset"]).as_str(), guard.marker.exists()), ("", false));
            guard.restore();
            assert_eq!(nft(&["list", "ruleset"]), "");
        };
        namespace.run(work).unwrap();
    }
}
