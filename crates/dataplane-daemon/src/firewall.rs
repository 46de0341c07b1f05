//! The base chains at the forward hook in this network namespace: detects whether packets that
//! match no rule pass a service function.

use serde_json::Value;

use crate::nft;

/// Returns a warning that names the address families without a base chain with `policy drop`;
/// `None` if there are none, or if `nft` gives no answer.
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

/// Returns the chains that `nft` lists.
fn chains() -> Option<Value> {
    serde_json::from_str(&nft::run(&["-j", "list", "chains"], "").ok()?).ok()
}

/// Returns the address families without a base chain at the forward hook with `policy drop`.
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
