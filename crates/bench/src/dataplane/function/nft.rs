//! Netfilter rules of the benchmark and their counters.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

/// Hooks that a forwarded packet traverses.
pub(super) const HOOKS: [&str; 3] = ["prerouting", "forward", "postrouting"];

/// Address families: inner packets are IPv4, outer headers IPv6.
pub(super) const FAMILIES: [&str; 2] = ["ipv4", "ipv6"];

/// Loads a base chain without rules at each hook, in a table of family `ip` (IPv4) or `inet`
/// (both). Replaces the previous chains.
pub(super) fn empty_chains(family: &str) -> anyhow::Result<()> {
    let chain = |hook| format!("chain {hook} {{ type filter hook {hook} priority filter; }}\n");
    let chains = HOOKS.map(chain).concat();
    let before = ["ip", "inet"]
        .map(|family| format!("table {family} empty {{ }}\ndelete table {family} empty\n"));
    load(&format!("{}table {family} empty {{\n{chains}}}\n", before.concat()))
}

/// Counts the packets of each family at each hook while `work` runs.
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

/// Returns the packet count of a counter.
fn counted(counter: &str) -> anyhow::Result<u64> {
    let said = nft(&["list", "counter", "inet", "count", counter], "")?;
    let packets = said.split("packets ").nth(1).and_then(|rest| rest.split(' ').next());
    packets.and_then(|packets| packets.parse().ok()).context("nft says nothing of packets")
}

/// Loads a ruleset into the calling thread's namespace.
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
