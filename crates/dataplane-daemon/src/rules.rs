//! Rules of nftables that do not do for service functions what they look like: packets of functions
//! arrive on `kaido-in` and leave on `kaido-out`, without their outer packet, and with the SID's argument
//! as their mark.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use crate::nft;

/// Maximum number of warnings.
const MAX: usize = 8;
/// Hooks that packets of functions pass.
const HOOKS: [&str; 3] = ["prerouting", "forward", "postrouting"];

/// Returns warnings about rules of this network namespace; `ports` are the data plane's.
pub(crate) fn warnings(ports: &BTreeSet<&str>) -> Vec<String> {
    let listed = nft::run(&["-j", "list", "ruleset"], "").ok();
    let listed = listed.and_then(|text| serde_json::from_str(&text).ok());
    listed.map(|listed| Rules::new(&listed).warnings(ports)).unwrap_or_default()
}

/// A chain: family, table and name.
type Chain<'r> = [&'r str; 3];

struct Rules<'r> {
    chains: Vec<&'r Value>,
    rules: Vec<&'r Value>,
    /// Elements of sets and maps, which are named as chains are.
    elements: HashMap<Chain<'r>, &'r Value>,
}

impl<'r> Rules<'r> {
    /// `listed`: output of `nft -j list ruleset` (libnftables-json(5)).
    fn new(listed: &'r Value) -> Self {
        let entries = listed["nftables"].as_array().map(Vec::as_slice).unwrap_or_default();
        let all = |kind| entries.iter().filter_map(move |entry| entry.get(kind));
        let sets = all("set").chain(all("map"));
        Self {
            chains: all("chain").collect(),
            rules: all("rule").collect(),
            elements: sets.map(|set| (chain_of(set, "name"), &set["elem"])).collect(),
        }
    }

    fn warnings(&self, ports: &BTreeSet<&str>) -> Vec<String> {
        let (mut found, reached) = (BTreeSet::new(), self.reached());
        for rule in &self.rules {
            let chain = chain_of(rule, "chain");
            let Some(terms) = rule["expr"].as_array() else { continue };
            let name = chain.join(" ");
            if chain[0] == "netdev" {
                found.insert(format!(
                    "the chain {name} does not see inner packets of functions, and no packets that XDP \
                     forwards"
                ));
                continue;
            }
            if !reached.contains(&chain) {
                continue;
            }
            for port in terms.iter().filter_map(|term| self.port(term, chain, ports)) {
                found.insert(format!(
                    "a rule of {name} matches the port `{port}`: packets of functions arrive on kaido-in and \
                     leave on kaido-out"
                ));
            }
            if terms.iter().any(|term| term["mangle"]["key"]["meta"]["key"] == "mark") {
                found.insert(format!(
                    "a rule of {name} sets the mark: later rules do not see the argument of the function's SID"
                ));
            }
        }
        let more = found.len().saturating_sub(MAX);
        let mut found: Vec<String> = found.into_iter().take(MAX).collect();
        if more > 0 {
            found.push(format!("{more} more warnings about rules of nftables"));
        }
        found
    }

    /// Chains at the hooks of forwarded packets, and those that they jump to.
    fn reached(&self) -> BTreeSet<Chain<'r>> {
        let at_hooks = self.chains.iter().filter(|chain| {
            let is_of_ip = chain["family"].as_str().is_some_and(|family| family != "netdev");
            is_of_ip && HOOKS.iter().any(|hook| chain["hook"] == *hook)
        });
        let mut reached: BTreeSet<Chain<'_>> =
            at_hooks.map(|chain| chain_of(chain, "name")).collect();
        loop {
            let before = reached.len();
            for rule in &self.rules {
                let [family, table, name] = chain_of(rule, "chain");
                if reached.contains(&[family, table, name]) {
                    let (mut targets, mut texts) = (Vec::new(), Vec::new());
                    collect(&rule["expr"], &mut targets, &mut texts);
                    let elements = |text| self.elements(text, [family, table, name]);
                    for elements in texts.into_iter().filter_map(elements) {
                        collect(elements, &mut targets, &mut Vec::new());
                    }
                    reached.extend(targets.into_iter().map(|target| [family, table, target]));
                }
            }
            if reached.len() == before {
                return reached;
            }
        }
    }

    /// The elements of the set or map that a text such as `@name` refers to.
    fn elements(&self, text: &'r str, [family, table, _]: Chain<'r>) -> Option<&'r Value> {
        self.elements.get(&[family, table, text.strip_prefix('@')?]).copied()
    }

    /// Returns the port that an expression matches by its name.
    fn port<'p>(
        &self,
        term: &'r Value,
        chain: Chain<'r>,
        ports: &BTreeSet<&'p str>,
    ) -> Option<&'p str> {
        const KEYS: [&str; 4] = ["iif", "iifname", "oif", "oifname"];
        let sides = [(&term["match"], "left", "right"), (&term["vmap"], "key", "data")];
        let (_, values) = sides
            .into_iter()
            .map(|(of, key, values)| (&of[key], &of[values]))
            .find(|(key, _)| has_string(key, &|text| KEYS.contains(&text)))?;
        let is_named = |port: &str, text: &str| match text.strip_suffix('*') {
            Some(start) => port.starts_with(start),
            None => port == text,
        };
        ports.iter().copied().find(|port| {
            has_string(values, &|text| {
                let named = self.elements(text, chain);
                is_named(port, text)
                    || named.is_some_and(|all| has_string(all, &|text| is_named(port, text)))
            })
        })
    }
}

/// Collects the targets of jumps, and all strings.
fn collect<'r>(part: &'r Value, targets: &mut Vec<&'r str>, texts: &mut Vec<&'r str>) {
    match part {
        Value::Object(fields) => {
            targets.extend(fields.get("target").and_then(Value::as_str));
            fields.values().for_each(|value| collect(value, targets, texts));
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, targets, texts)),
        Value::String(text) => texts.push(text),
        _ => {}
    }
}

/// The chain of a rule or of itself, whose name is the field `name`.
fn chain_of<'r>(of: &'r Value, name: &str) -> Chain<'r> {
    ["family", "table", name].map(|field| of[field].as_str().unwrap_or_default())
}

/// Returns true if a string in a value, at any depth, fulfills a condition.
fn has_string<'r>(value: &'r Value, is: &dyn Fn(&'r str) -> bool) -> bool {
    match value {
        Value::String(text) => is(text),
        Value::Array(all) => all.iter().any(|one| has_string(one, is)),
        Value::Object(fields) => fields.values().any(|one| has_string(one, is)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use netlink::Namespace;

    use super::*;

    /// Returns the warnings about a ruleset, as the installed `nft` lists it.
    fn warned(ruleset: &str) -> Vec<String> {
        let work = || {
            nft::run(&["-f", "-"], ruleset).unwrap_or_else(|why| panic!("{why}: {ruleset}"));
            warnings(&BTreeSet::from(["eth0", "eth1"]))
        };
        Namespace::unnamed().unwrap().run(work).unwrap()
    }

    const FORWARD: &str = "type filter hook forward priority filter; policy drop;\n";

    #[test]
    fn root_the_documented_rules_are_as_they_look() {
        let text = format!(
            "table inet fw {{\n chain client {{\n udp dport 53 accept\n }}\n chain forward {{\n {FORWARD} \
             iifname != \"kaido-in\" accept\n meta mark vmap {{ 0x1111 : goto client }}\n }}\n }}\n"
        );
        assert_eq!(warned(&text), [""; 0]);
        assert_eq!(warned(""), [""; 0]);
    }

    #[test]
    fn root_rules_by_the_names_of_ports_are_found_in_all_their_forms() {
        for rule in [
            "iifname \"eth0\" drop",
            "oifname { \"eth7\", \"eth0\" } drop",
            "iifname \"eth*\" drop",
            "iifname != \"eth0\" drop",
            "oifname vmap { \"eth0\" : drop }",
            "iifname . oifname { \"lo\" . \"eth0\" } drop",
            "iifname @ports drop",
            "jump later",
            "meta mark vmap { 1 : jump later }",
            "meta mark vmap @chains",
        ] {
            let text = format!(
                "table inet fw {{\n set ports {{\n type ifname\n elements = {{ \"eth0\" }}\n }}\n chain later {{\n \
                 iifname \"eth0\" drop\n }}\n map chains {{\n type mark : verdict\n elements = {{ 1 : goto later \
                 }}\n }}\n chain forward {{\n {FORWARD} {rule}\n }}\n }}\n"
            );
            let found = warned(&text);
            assert!(
                found.len() == 1 && found[0].contains("matches the port `eth0`"),
                "{rule}: {found:?}"
            );
        }
        // A chain that forwarded packets do not pass.
        let text = "table inet fw {\n chain input {\n type filter hook input priority filter\n iifname \"eth0\" \
                    meta mark set 1 drop\n }\n }\n";
        assert_eq!(warned(text), [""; 0]);
    }

    #[test]
    fn root_marks_that_are_set_and_hooks_of_devices_are_found() {
        let text = "table inet fw {\n chain pre {\n type filter hook prerouting priority raw\n meta mark set 7\n \
                    ct mark set 7\n }\n }\ntable netdev dev {\n chain in {\n type filter hook ingress device lo \
                    priority 0\n drop\n }\n }\n";
        let found = warned(text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("inet fw pre sets the mark"), "{found:?}");
        assert!(found[1].contains("netdev dev in does not see inner packets"), "{found:?}");
        let many: String = (0..20).map(|n| text.replace("fw", &format!("fw{n}"))).collect();
        assert_eq!(warned(&many).len(), MAX + 1);
    }
}
