//! Importer of MiniEdit's JSON, which the YAML parser reads.

use std::collections::HashMap;

use document::{Outline, Problems, outline, suggest};

use crate::draft::{Draft, Kind, Lan, Link, Node, Options, Source};
use crate::miniedit::options::{Shaping, shaping};

mod options;

/// Top-level keys without information about the network.
const OF_THE_DRAWING: [&str; 1] = ["version"];
/// Options of hosts and switches that are ignored, because they are irrelevant or repeat the name.
const PASSED_OVER: [&str; 5] = ["hostname", "nodeNum", "nodeType", "sched", "switchType"];

/// A resolved name.
#[derive(Clone, Copy)]
enum Place {
    Node(usize),
    Switch(usize),
}

/// A switch, with the index of the switch that represents its connected component.
struct Switch {
    name: String,
    line: usize,
    first: usize,
}

/// A link from a node to a switch.
struct Port {
    node: usize,
    switch: usize,
    shaping: Shaping,
    line: usize,
}

#[derive(Default)]
struct Reader {
    draft: Draft,
    places: HashMap<String, Place>,
    switches: Vec<Switch>,
    ports: Vec<Port>,
}

pub(crate) fn read(file: &str, text: &str) -> Result<Draft, Problems> {
    let source = Source { file, text };
    let root = outline(file, text)?;
    if root.get("hosts").is_none() && root.get("switches").is_none() {
        let help = "MiniEdit's files are JSON with `hosts`, `switches` and `links`";
        return Err(source.wrong(root.line, "this file has no `hosts` and no `switches`", help));
    }
    let mut reader = Reader::default();
    for (key, value) in root.entries() {
        match key.as_str() {
            "hosts" | "switches" => {
                for node in value.items() {
                    reader.node(&source, key == "hosts", node)?;
                }
            }
            "links" => {}
            "controllers" => {
                for controller in value.items() {
                    let name = controller.get("opts").and_then(|opts| opts.get("hostname"));
                    let name = name.and_then(Outline::word).unwrap_or_default();
                    reader.draft.note(
                        controller.line,
                        format!("the OpenFlow controller {name} is not carried over"),
                    );
                }
            }
            key if OF_THE_DRAWING.contains(&key) => {}
            key => reader.draft.left_out(&format!("`{key}`"), value),
        }
    }
    if reader.draft.nodes.is_empty() {
        let help = "a lab needs at least one host or router";
        return Err(source.wrong(root.line, "the network has no hosts", help));
    }
    for link in root.get("links").map(Outline::items).unwrap_or_default() {
        reader.link(&source, link)?;
    }
    reader.lans();
    Ok(reader.draft)
}

impl Reader {
    fn node(&mut self, source: &Source<'_>, is_host: bool, node: &Outline) -> Result<(), Problems> {
        let line = node.line;
        let options = node.get("opts");
        let Some(name) = options.and_then(|opts| opts.get("hostname")).and_then(Outline::word)
        else {
            let help = "write `\"opts\": {\"hostname\": \"h1\"}`";
            return Err(source.wrong(line, "a node without a hostname", help));
        };
        source.check_name(line, "a hostname", name)?;
        let kind = options.and_then(|opts| opts.get("switchType")).and_then(Outline::word);
        let place = if is_host || kind == Some("legacyRouter") {
            let kind = if is_host { Kind::Host } else { Kind::Linux };
            self.draft.nodes.push(Node { name: name.into(), kind, line });
            Place::Node(self.draft.nodes.len() - 1)
        } else {
            let first = self.switches.len();
            self.switches.push(Switch { name: name.into(), line, first });
            Place::Switch(first)
        };
        if self.places.insert(name.into(), place).is_some() {
            let message = format!("`{name}` is given twice");
            return Err(source.wrong(line, &message, "rename one of the two"));
        }
        for (key, value) in options.map(Outline::entries).unwrap_or_default() {
            let is_empty = value.items().is_empty() && value.word().is_none();
            let is_off = value.word() == Some("0") || value.word() == Some("false");
            if !PASSED_OVER.contains(&key.as_str()) && !is_empty && !is_off {
                self.draft.left_out(&format!("`{key}` of {name}"), value);
            }
        }
        Ok(())
    }

    fn link(&mut self, source: &Source<'_>, link: &Outline) -> Result<(), Problems> {
        let line = link.line;
        let end = |key: &str| {
            let Some(word) = link.get(key).and_then(Outline::word) else {
                let help = "write `\"src\": \"h1\", \"dest\": \"s1\"`";
                return Err(source.wrong(line, &format!("a link without `{key}`"), help));
            };
            self.places.get(word).copied().ok_or_else(|| {
                let help = match suggest(word, self.places.keys().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "name a host or a switch of this file".into(),
                };
                let at = link.get(key).map_or(line, |value| value.line);
                source.wrong(at, &format!("no node `{word}`"), &help)
            })
        };
        let (a, b) = (end("src")?, end("dest")?);
        let shaping = shaping(&mut self.draft, source, link.get("opts"))?;
        match (a, b) {
            (Place::Node(a), Place::Node(b)) => {
                let options = shaping.options();
                self.draft.links.push(Link { ends: [a, b], options, line });
            }
            (Place::Node(node), Place::Switch(switch))
            | (Place::Switch(switch), Place::Node(node)) => {
                self.ports.push(Port { node, switch, shaping, line });
            }
            (Place::Switch(a), Place::Switch(b)) => self.merge(a, b, &shaping, line),
        }
        Ok(())
    }

    /// Merges two connected switches into one LAN.
    fn merge(&mut self, a: usize, b: usize, shaping: &Shaping, line: usize) {
        let (of_a, of_b) = (self.switches[a].first, self.switches[b].first);
        let (stays, goes) = (of_a.min(of_b), of_a.max(of_b));
        for switch in &mut self.switches {
            if switch.first == goes {
                switch.first = stays;
            }
        }
        let (a, b) = (&self.switches[a].name, &self.switches[b].name);
        let mut text = format!("{a} and {b} are connected: they are one LAN");
        if !shaping.is_none() {
            text += &format!(", without {}", shaping.words());
        }
        self.draft.note(line, text);
    }

    fn lans(&mut self) {
        for first in 0..self.switches.len() {
            if self.switches[first].first != first {
                continue;
            }
            let (name, line) = (self.switches[first].name.clone(), self.switches[first].line);
            let ports: Vec<&Port> =
                self.ports.iter().filter(|p| self.switches[p.switch].first == first).collect();
            let members = ports.iter().map(|port| port.node).collect();
            let options = lan_options(&mut self.draft, &name, &ports);
            self.draft.lans.push(Lan { name, members, options, line });
        }
    }
}

/// Options of a LAN. A packet crosses two links and a switch, so it gets the impairments of two
/// links.
fn lan_options(draft: &mut Draft, lan: &str, ports: &[&Port]) -> Options {
    let Some(first) = ports.first() else { return Vec::new() };
    if ports.iter().all(|port| port.shaping == first.shaping) {
        if !first.shaping.is_none() {
            draft.note(first.line, format!("on the LAN {lan} a packet has what two links did"));
        }
        return first.shaping.twice().options();
    }
    for port in ports.iter().filter(|port| !port.shaping.is_none()) {
        let node = &draft.nodes[port.node].name;
        let words = port.shaping.words();
        let text = format!("links of the LAN {lan} differ: {node}'s {words} is not carried over");
        draft.note(port.line, text);
    }
    Vec::new()
}
