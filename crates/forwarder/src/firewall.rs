//! The base chains of this network namespace's netfilter at the hook forward: whether what no rule names
//! passes a service function.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::Value;

/// How long `nft` may take: it waits for others who change rules.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most that is read of its answer.
const MOST: u64 = 16 << 20;

/// Says of which families no chain drops what no rule names; nothing where `nft` says nothing.
pub(crate) fn warning() -> Option<String> {
    let open = open_families(&chains()?);
    if open.is_empty() {
        return None;
    }
    Some(format!(
        "no chain at the hook forward has `policy drop` for {}: what no rule names passes the functions, such \
         as an argument of the sender's choice (docs/functions.md has such a table)",
        open.join(" and ")
    ))
}

/// What `nft` lists.
fn chains() -> Option<Value> {
    let mut nft = Command::new("nft");
    nft.args(["-j", "list", "chains"]).stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = nft.stdout(Stdio::piped()).spawn().ok()?;
    let output = child.stdout.take()?;
    let (sender, answer) = channel();
    // It ends with the child, whose output it reads.
    let reader = std::thread::Builder::new().name("nft".into()).spawn(move || {
        let mut text = String::new();
        let read = output.take(MOST).read_to_string(&mut text);
        let _ = sender.send(read.map(|_| text));
    });
    let text = reader.ok().and_then(|_| answer.recv_timeout(PATIENCE).ok()?.ok());
    // One that has ended already is no error.
    let _ = child.kill();
    let _ = child.wait();
    serde_json::from_str(&text?).ok()
}

/// The families of which no base chain at forward drops by its policy.
fn open_families(listed: &Value) -> Vec<&'static str> {
    let chains = listed["nftables"].as_array().into_iter().flatten().map(|entry| &entry["chain"]);
    let drops = |chain: &&Value| chain["hook"] == "forward" && chain["policy"] == "drop";
    let closed: Vec<&str> =
        chains.filter(drops).filter_map(|chain| chain["family"].as_str()).collect();
    let is_open = |family: &str| !closed.contains(&family) && !closed.contains(&"inet");
    [("ip", "IPv4"), ("ip6", "IPv6")]
        .into_iter()
        .filter_map(|(family, name)| is_open(family).then_some(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn open(chains: &[(&str, &str, &str)]) -> Vec<&'static str> {
        let chain = |(family, hook, policy): &(&str, &str, &str)| json!({ "chain": { "family": family, "hook": hook, "policy": policy } });
        let mut listed: Vec<Value> = chains.iter().map(chain).collect();
        listed.insert(0, json!({ "metainfo": { "version": "1.0.6" } }));
        listed.push(json!({ "chain": { "family": "inet", "name": "not a base chain" } }));
        open_families(&json!({ "nftables": listed }))
    }

    #[test]
    fn a_family_is_closed_by_a_policy_at_forward() {
        assert_eq!(open(&[]), ["IPv4", "IPv6"]);
        assert_eq!(open(&[("inet", "forward", "accept")]), ["IPv4", "IPv6"]);
        assert_eq!(open(&[("inet", "input", "drop")]), ["IPv4", "IPv6"]);
        assert_eq!(open(&[("ip", "forward", "drop")]), ["IPv6"]);
        assert_eq!(open(&[("ip", "forward", "drop"), ("ip6", "forward", "drop")]), [""; 0]);
        assert_eq!(open(&[("inet", "forward", "drop")]), [""; 0]);
        assert_eq!(open_families(&json!([1, 2])), ["IPv4", "IPv6"]);
    }
}
