//! The rules of the benchmark, and what they have counted.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

/// What a packet that is forwarded meets.
pub(super) const HOOKS: [&str; 3] = ["prerouting", "forward", "postrouting"];

/// An inner packet is one of IPv4, its outer header one of IPv6.
pub(super) const FAMILIES: [&str; 2] = ["ipv4", "ipv6"];

/// A base chain at each hook, without a rule: for a table of the family `ip` (IPv4) or `inet` (both).
/// In place of those that were there.
pub(super) fn empty_chains(family: &str) -> anyhow::Result<()> {
    let chain = |hook| format!("chain {hook} {{ type filter hook {hook} priority filter; }}\n");
    let chains = HOOKS.map(chain).concat();
    let before = ["ip", "inet"]
        .map(|family| format!("table {family} empty {{ }}\ndelete table {family} empty\n"));
    load(&format!("{}table {family} empty {{\n{chains}}}\n", before.concat()))
}

/// Counts at each hook what comes by while `work` is done: packets of each family.
pub(super) fn count(
    work: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<[[u64; HOOKS.len()]; FAMILIES.len()]> {
    let mut rules = String::from("table inet count {\n");
    for hook in HOOKS {
        let rule = |family| format!("meta nfproto {family} counter name {family}-{hook}\n");
        let counter = |family| format!("counter {family}-{hook} {{ }}\n");
        rules += &FAMILIES.map(counter).concat();
        rules += &format!("chain {hook} {{ type filter hook {hook} priority filter; ");
        rules += &format!("{} }}\n", FAMILIES.map(rule).concat());
    }
    load(&(rules + "}\n"))?;
    work()?;
    let mut counts = [[0; HOOKS.len()]; FAMILIES.len()];
    for (family, counts) in FAMILIES.into_iter().zip(&mut counts) {
        for (hook, count) in HOOKS.into_iter().zip(counts) {
            *count = counted(&format!("{family}-{hook}"))?;
        }
    }
    load("delete table inet count\n")?;
    Ok(counts)
}

/// What a counter has counted, in packets.
fn counted(counter: &str) -> anyhow::Result<u64> {
    let said = nft(&["list", "counter", "inet", "count", counter], "")?;
    let packets = said.split("packets ").nth(1).and_then(|rest| rest.split(' ').next());
    packets.and_then(|packets| packets.parse().ok()).context("nft says nothing of packets")
}

/// Loads a file into the calling thread's namespace.
pub(super) fn load(file: &str) -> anyhow::Result<()> {
    nft(&["-f", "-"], file).map(drop)
}

fn nft(arguments: &[&str], input: &str) -> anyhow::Result<String> {
    let mut nft = Command::new("nft");
    nft.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = nft.spawn().context("cannot start nft (package nftables)")?;
    child.stdin.take().context("nft has no input")?.write_all(input.as_bytes())?;
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "nft refuses the rules: {said}");
    Ok(String::from_utf8(output.stdout)?)
}
