//! Single changes to a file that is already applied. The result is JSON, which is also valid YAML.
//! Comments and their order exist only in the operator's file, not in this copy.

use document::{self, Problems};
use ipnet::Ipv6Net;
use serde_json::{Map, Value};

use super::KIND;
use super::scalars::SidPrefix;

/// Returns `text` with a SID added or replaced. `behavior` contains its arguments.
pub fn with_sid(text: &str, sid: Ipv6Net, behavior: Value) -> Result<String, Problems> {
    change(text, |sids| {
        sids.retain(|key, _| !is(key, sid));
        sids.insert(sid.to_string(), behavior);
    })
}

/// Returns `text` without a SID.
pub fn without_sid(text: &str, sid: Ipv6Net) -> Result<String, Problems> {
    change(text, |sids| sids.retain(|key, _| !is(key, sid)))
}

fn is(key: &str, sid: Ipv6Net) -> bool {
    key.parse::<SidPrefix>().is_ok_and(|prefix| prefix.0 == sid)
}

fn change(text: &str, edit: impl FnOnce(&mut Map<String, Value>)) -> Result<String, Problems> {
    let (_, mut file, _) = document::read::<Map<String, Value>>(text, &KIND)
        .map_err(|report| report.finish("the file that is applied"))?;
    let sids = file.entry("sids").or_insert(Value::Null);
    if sids.is_null() {
        *sids = Value::Object(Map::new());
    }
    // A file with another type here would not have been applied.
    if let Value::Object(sids) = sids {
        edit(sids);
    }
    Ok(format!("{:#}\n", Value::Object(file)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::parse;
    use model::dataplane::Behavior;

    const FILE: &str = "\
# kept by the operator
source: \"fd00:1::\"
locators: [\"fd00:1::/48\"]
ports: { eth0: {mode: native}, eth1: {tenant: red} }
tenants:
  red: { table: 7, vlans: {} }
sids:
  fd00:1::1: End
  fd00:1:0:0:f::/80: { behavior: End.DT46, tenant: red }
";

    fn sid(text: &str) -> Ipv6Net {
        text.parse().unwrap()
    }

    #[test]
    fn a_sid_comes_and_goes_and_the_rest_stays() {
        let file = FILE.replace(", vlans: {}", "");
        let before = parse("before", &file).unwrap();
        let function = sid("fd00:1:0:0:1::/112");
        let text = with_sid(&file, function, json!("End.AN.NF")).unwrap();
        let with = parse("with", &text).unwrap();
        assert_eq!(with.sids.len(), before.sids.len() + 1);
        assert!(with.sids.iter().any(|(sid, endpoint)| {
            *sid == function && endpoint.behavior == Behavior::EndAnNf { answers: None }
        }));
        // The same SID in another notation.
        let again = with_sid(&text, function, json!({"behavior": "End"})).unwrap();
        assert_eq!(parse("again", &again).unwrap().sids.len(), with.sids.len());
        let without = without_sid(&text, function).unwrap();
        let without = parse("without", &without).unwrap();
        assert_eq!(without.sids.len(), before.sids.len());
        assert_eq!(without.locators, before.locators);
        assert_eq!(
            without.ports.keys().collect::<Vec<_>>(),
            before.ports.keys().collect::<Vec<_>>()
        );
        let one = without_sid(&file, sid("fd00:1::1/128")).unwrap();
        assert_eq!(parse("one", &one).unwrap().sids.len(), 1);
    }

    #[test]
    fn a_file_without_sids_gets_the_first() {
        for file in [
            "locators: [\"fd00:1::/48\"]\nports: {l: {}}\n",
            "locators: [\"fd00:1::/48\"]\nports: {l: {}}\nsids:\n",
        ] {
            let text = with_sid(file, sid("fd00:1::1/128"), json!("End")).unwrap();
            assert_eq!(parse("first", &text).unwrap().sids.len(), 1);
        }
    }
}
