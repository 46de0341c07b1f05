//! A second look at packets from service functions, by netfilter.
//!
//! On the interfaces to functions, a tc program takes all packets before the kernel sees them, except
//! those of the link itself, which it marks. tc passes some packets without its programs, though: those
//! that tc in the function's own namespace has redirected through an ifb (`skb->tc_skip_classify`, which
//! a veth keeps). They lack the mark, and the rule here drops them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use netlink::NetfilterHandle;

use crate::Error;

/// The table's name, in the family `inet`.
const TABLE: &str = "kaido-functions";
/// MARK_OF_LINK (bpf/include/srv6/proxy.h).
const MARK_OF_LINK: u32 = 0x6b61_6964;
/// Timeout for `nft`, which waits for other processes that change rules.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The rule on the interfaces to functions. It outlives the daemon, as the programs do.
pub(crate) struct Guard {
    /// A file that exists while there may be a table, for the successor of a killed daemon.
    marker: PathBuf,
    /// The interfaces of the rule; `None` if an earlier daemon has written it.
    interfaces: Option<BTreeSet<u32>>,
    /// Generation of the namespace's rules after the last write.
    generation: Option<u32>,
    /// True if it could not be written again.
    is_failing: bool,
}

impl Guard {
    /// `state`: directory of the data that a later daemon needs.
    pub(crate) fn new(state: &Path) -> Self {
        let marker = state.join("guard");
        let interfaces = (!marker.exists()).then(BTreeSet::new);
        Self { marker, interfaces, generation: None, is_failing: false }
    }

    /// Guards exactly these interfaces, by index.
    ///
    /// # Errors
    ///
    /// Fails if `nft` is missing, or the kernel has no nftables.
    pub(crate) fn set(&mut self, interfaces: &BTreeSet<u32>) -> Result<(), Error> {
        if self.interfaces.as_ref() == Some(interfaces) {
            return Ok(());
        }
        let path = self.marker.clone();
        let file = |source| Error::State { path: path.clone(), source };
        private::replace(&self.marker, b"").map_err(file)?;
        self.interfaces = None;
        self.write(interfaces)?;
        if interfaces.is_empty() {
            std::fs::remove_file(&path).map_err(file)?;
        }
        self.interfaces = Some(interfaces.clone());
        Ok(())
    }

    /// Writes the rule again if rules have changed: `nft flush ruleset` removes it.
    pub(crate) fn restore(&mut self) {
        let Some(interfaces) = self.interfaces.clone().filter(|all| !all.is_empty()) else {
            return;
        };
        if self.generation.is_some() && generation() == self.generation {
            return;
        }
        let restored = self.write(&interfaces);
        if let (Err(error), false) = (&restored, self.is_failing) {
            tracing::warn!("{error}; the next attempts follow each second");
        }
        self.is_failing = restored.is_err();
    }

    fn write(&mut self, interfaces: &BTreeSet<u32>) -> Result<(), Error> {
        nft(&rules(interfaces)).map_err(Error::Guard)?;
        self.generation = generation();
        Ok(())
    }
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

/// Runs `nft` with these commands, and returns what it reports.
fn nft(commands: &str) -> Result<(), String> {
    let mut nft = Command::new("nft");
    nft.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = nft.spawn().map_err(|why| format!("{why} (Debian: package nftables)"))?;
    // It may have exited; its status says why.
    let _ = child.stdin.take().map(|mut input| input.write_all(commands.as_bytes()));
    let started = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|why| why.to_string())? {
            Some(status) => break status,
            None if started.elapsed() > TIMEOUT => {
                // It may have exited meanwhile.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("no end within {} s", TIMEOUT.as_secs()));
            }
            None => std::thread::park_timeout(Duration::from_millis(1)),
        }
    };
    if status.success() {
        return Ok(());
    }
    let mut said = Vec::new();
    // A message is far below the size of a pipe.
    let _ = child.stderr.take().map(|output| output.take(4096).read_to_end(&mut said));
    let said = String::from_utf8_lossy(&said);
    Err(said.lines().next().map_or_else(|| status.to_string(), str::to_owned))
}

#[cfg(test)]
mod tests {
    use netlink::Namespace;

    use super::*;

    fn listed() -> String {
        let output = Command::new("nft").args(["list", "ruleset"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn root_the_rule_is_written_restored_and_removed() {
        let state = tempfile::tempdir().unwrap();
        let namespace = Namespace::unnamed().unwrap();
        let work = || {
            let mut guard = Guard::new(state.path());
            guard.set(&BTreeSet::new()).unwrap();
            assert_eq!(listed(), "");
            guard.set(&BTreeSet::from([1])).unwrap();
            assert!(listed().contains("kaido-functions") && guard.marker.exists());
            assert!(Command::new("nft").args(["flush", "ruleset"]).status().unwrap().success());
            guard.restore();
            assert!(listed().contains("kaido-functions"));
            // The successor of a killed daemon removes it.
            let mut guard = Guard::new(state.path());
            guard.set(&BTreeSet::new()).unwrap();
            assert_eq!((listed().as_str(), guard.marker.exists()), ("", false));
            guard.restore();
            assert_eq!(listed(), "");
        };
        namespace.run(work).unwrap();
    }

    #[test]
    fn a_failure_is_named() {
        let said = nft("table inet").unwrap_err();
        assert!(said.contains("rror"), "{said}");
    }
}
