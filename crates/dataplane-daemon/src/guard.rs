//! A second look at packets from service functions, by netfilter.
//!
//! On the interfaces to functions, a tc program takes all packets before the kernel sees them, except
//! those of the link itself, which it marks. tc passes some packets without its programs, though: those
//! that tc in the function's own namespace has redirected through an ifb (`skb->tc_skip_classify`, which
//! a veth keeps). They lack the mark, and the rule here drops them (decision 61).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use netlink::NetfilterHandle;

use crate::{Error, nft};

/// The table's name, in the family `inet`.
const TABLE: &str = "kaido-functions";
/// MARK_OF_LINK (bpf/include/srv6/proxy.h).
const MARK_OF_LINK: u32 = 0x6b61_6964;

/// The rule on the interfaces to functions. It outlives the daemon, as the programs do.
pub(crate) struct Guard {
    /// A file that exists while there may be a table, for the successor of a killed daemon.
    marker: PathBuf,
    /// The interfaces to guard; `None` if only an earlier daemon knows.
    interfaces: Option<BTreeSet<u32>>,
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
        let interfaces = (!marker.exists()).then(BTreeSet::new);
        Self { marker, interfaces, written: None, generation: None, is_failing: false }
    }

    /// Guards exactly these interfaces, by index.
    ///
    /// # Errors
    ///
    /// Fails if `nft` is missing, or the kernel has no nftables. [`Guard::restore`] tries again.
    pub(crate) fn set(&mut self, interfaces: &BTreeSet<u32>) -> Result<(), Error> {
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

    /// Writes the rule again if it is gone: `nft flush ruleset` removes it.
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

    fn write(&mut self, interfaces: &BTreeSet<u32>) -> Result<(), Error> {
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
fn rules(interfaces: &BTreeSet<u32>) -> String {
    // The first line lets the second one succeed without a table.
    let mut text = format!("table inet {TABLE}\ndelete table inet {TABLE}\n");
    if interfaces.is_empty() {
        return text;
    }
    let list: Vec<String> = interfaces.iter().map(u32::to_string).collect();
    let list = list.join(", ");
    // Before connection tracking, so that dropped packets create no connection.
    let _ = write!(
        text,
        "table inet {TABLE} {{\n\
         chain unjudged {{\n\
         type filter hook prerouting priority -450; policy accept;\n\
         iif != {{ {list} }} accept\n\
         meta mark != {MARK_OF_LINK:#x} counter drop\n\
         meta mark set 0\n\
         }}\n}}\n"
    );
    text
}

#[cfg(test)]
mod tests {
    use netlink::Namespace;

    use super::*;

    fn nft(arguments: &[&str]) -> String {
        nft::run(arguments, "").unwrap()
    }

    #[test]
    fn root_the_rule_is_written_restored_and_removed() {
        let state = tempfile::tempdir().unwrap();
        let namespace = Namespace::unnamed().unwrap();
        let work = || {
            let mut guard = Guard::new(state.path());
            guard.set(&BTreeSet::new()).unwrap();
            assert_eq!(nft(&["list", "ruleset"]), "");
            guard.set(&BTreeSet::from([1])).unwrap();
            assert!(nft(&["list", "ruleset"]).contains("kaido-functions") && guard.marker.exists());
            nft(&["flush", "ruleset"]);
            guard.restore();
            assert!(nft(&["list", "ruleset"]).contains("kaido-functions"));
            // Rules of others leave it as it is, with its counter.
            let before = nft(&["list", "table", "inet", TABLE]);
            nft(&["add", "table", "inet", "other"]);
            guard.restore();
            assert_eq!(nft(&["list", "table", "inet", TABLE]), before);
            nft(&["delete", "table", "inet", "other"]);
            // The successor of a killed daemon removes it.
            let mut guard = Guard::new(state.path());
            guard.set(&BTreeSet::new()).unwrap();
            assert_eq!((nft(&["list", "ruleset"]).as_str(), guard.marker.exists()), ("", false));
            guard.restore();
            assert_eq!(nft(&["list", "ruleset"]), "");
        };
        namespace.run(work).unwrap();
    }
}
