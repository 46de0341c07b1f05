//! Importer of containerlab's YAML.

use std::collections::HashMap;

use document::{Outline, OutlineValue, Problems, outline, suggest};

use crate::draft::{Draft, Kind, Lan, Link, Node, Source};

/// Node kinds that are a layer-2 switch.
const BRIDGES: [&str; 2] = ["bridge", "ovs-bridge"];
/// Endpoints of a link that refer to the host machine instead of a node.
const OUTSIDE: [&str; 3] = ["host", "mgmt-net", "macvlan"];
/// Sections with defaults for nodes.
const SECTIONS: [&str; 3] = ["defaults", "kinds", "groups"];

/// A resolved name.
#[derive(Clone, Copy)]
enum Place {
    Node(usize),
    Lan(usize),
}

pub(crate) fn read(file: &str, text: &str) -> Result<Draft, Problems> {
    let source = Source { file, text };
    let root = outline(file, text)?;
    let mut draft = Draft::default();
    let Some(topology) = root.get("topology") else {
        let near = suggest("topology", root.entries().iter().map(|(key, _)| key.as_str()));
        let help = near.map_or_else(
            || "containerlab's files have `topology:` with `nodes:` and `links:`".to_owned(),
            |near| format!("did you mean `topology` with `{near}`?"),
        );
        return Err(source.wrong(root.line, "this file has no `topology:`", &help));
    };
    draft.name = root.get("name").and_then(Outline::word).map(Into::into);
    for (key, value) in root.entries() {
        if !["name", "topology"].contains(&key.as_str()) {
            draft.left_out(&format!("`{key}`"), value);
        }
    }
    for (key, value) in topology.entries() {
        match key.as_str() {
            "nodes" | "links" => {}
            key if SECTIONS.contains(&key) => section(&mut draft, &source, key, value)?,
            key => draft.left_out(&format!("`{key}`"), value),
        }
    }
    let Some(nodes) = topology.get("nodes").filter(|nodes| !nodes.entries().is_empty()) else {
        let help = "write at least one node below `topology: nodes:`";
        return Err(source.wrong(topology.line, "the topology has no nodes", help));
    };
    let (mut places, sections) = (HashMap::new(), Sections::new(topology));
    for (name, node) in nodes.entries() {
        places.insert(name.as_str(), add(&mut draft, &source, &sections, name, node)?);
    }
    if let Some(links) = topology.get("links") {
        if !matches!(links.value, OutlineValue::List(_)) && !links.is_nothing() {
            let help = "write a list: `- endpoints: [\"a:eth1\", \"b:eth1\"]`";
            return Err(source.wrong(links.line, "`links` is not a list", help));
        }
        for link in links.items() {
            connect(&mut draft, &source, &places, link)?;
        }
    }
    many_links(&mut draft);
    Ok(draft)
}

/// Imports defaults that apply to many nodes: kind and image are used, the other keys are noted
/// once.
fn section(
    draft: &mut Draft,
    source: &Source<'_>,
    name: &str,
    value: &Outline,
) -> Result<(), Problems> {
    if name == "defaults" {
        settings(draft, "`defaults`", value);
        return Ok(());
    }
    for (kind, value) in value.entries() {
        source.check_name(value.line, "the name of a kind or group", kind)?;
        settings(draft, &format!("`{name}: {kind}`"), value);
    }
    Ok(())
}

fn settings(draft: &mut Draft, whose: &str, value: &Outline) {
    for (key, value) in value.entries() {
        if !["kind", "image", "group"].contains(&key.as_str()) {
            draft.left_out(&format!("`{key}` of {whose}"), value);
        }
    }
}

/// Kind and image of a node or a section.
#[derive(Clone, Copy, Default)]
struct Settings<'o> {
    kind: Option<&'o str>,
    image: Option<&'o str>,
}

impl<'o> Settings<'o> {
    fn of(section: &'o Outline) -> Self {
        let word = |key| section.get(key).and_then(Outline::word);
        Self { kind: word("kind"), image: word("image") }
    }
}

/// Sections from which nodes inherit values, by name. Each is searched once: it may have as many keys as
/// there are nodes.
struct Sections<'o> {
    groups: HashMap<&'o str, Settings<'o>>,
    kinds: HashMap<&'o str, Settings<'o>>,
    defaults: Settings<'o>,
}

impl<'o> Sections<'o> {
    fn new(topology: &'o Outline) -> Self {
        let by_name = |section: &str| {
            let entries = topology.get(section).into_iter().flat_map(Outline::entries);
            // Of two with the same name, the first one counts.
            entries.rev().map(|(name, value)| (name.as_str(), Settings::of(value))).collect()
        };
        Self {
            groups: by_name("groups"),
            kinds: by_name("kinds"),
            defaults: topology.get("defaults").map(Settings::of).unwrap_or_default(),
        }
    }

    /// A node's own settings, or those that it inherits from its group, its kind or the defaults.
    fn inherited(&self, node: &'o Outline) -> Settings<'o> {
        let own = Settings::of(node);
        let group = node.get("group").and_then(Outline::word);
        let group = group.and_then(|name| self.groups.get(name)).copied().unwrap_or_default();
        let kind = own.kind.or(group.kind).or(self.defaults.kind);
        let of_kind = kind.and_then(|name| self.kinds.get(name)).copied().unwrap_or_default();
        let image = own.image.or(group.image).or(of_kind.image).or(self.defaults.image);
        Settings { kind, image }
    }
}

fn add<'o>(
    draft: &mut Draft,
    source: &Source<'_>,
    sections: &Sections<'o>,
    name: &str,
    node: &'o Outline,
) -> Result<Place, Problems> {
    let found = sections.inherited(node);
    let (kind, image) = (found.kind.unwrap_or("linux"), found.image.unwrap_or_default());
    let line = node.line;
    for (what, text) in [("a node's name", name), ("its kind", kind), ("its image", image)] {
        source.check_name(line, what, text)?;
    }
    settings(draft, name, node);
    if BRIDGES.contains(&kind) {
        let lan = Lan { name: name.into(), members: Vec::new(), options: Vec::new(), line };
        draft.lans.push(lan);
        return Ok(Place::Lan(draft.lans.len() - 1));
    }
    let is_frr = image.to_ascii_lowercase().contains("frr");
    let becomes = match kind {
        "linux" if !is_frr => Kind::Host,
        _ => Kind::Frr,
    };
    if kind != "linux" {
        draft.note(line, format!("{name} is an FRR router; it was of the kind {kind}"));
    } else if !is_frr && !image.is_empty() {
        draft.note(line, format!("{name} is a host with this machine's programs, not {image}"));
    }
    draft.nodes.push(Node { name: name.into(), kind: becomes, line });
    Ok(Place::Node(draft.nodes.len() - 1))
}

fn connect(
    draft: &mut Draft,
    source: &Source<'_>,
    places: &HashMap<&str, Place>,
    link: &Outline,
) -> Result<(), Problems> {
    let line = link.line;
    let kind = link.get("type").and_then(Outline::word).unwrap_or("veth");
    if kind != "veth" {
        draft.note(line, format!("a link of the type {kind} is not carried over"));
        return Ok(());
    }
    for (key, value) in link.entries() {
        if !["type", "endpoints"].contains(&key.as_str()) {
            draft.left_out(&format!("`{key}` of a link"), value);
        }
    }
    let ends = link.get("endpoints").map(Outline::items).unwrap_or_default();
    let [a, b] = ends else {
        let help = "write `endpoints: [\"a:eth1\", \"b:eth1\"]`";
        return Err(source.wrong(line, "a link has two endpoints", help));
    };
    let (Some(a), Some(b)) = (place(draft, source, places, a)?, place(draft, source, places, b)?)
    else {
        return Ok(());
    };
    match (a, b) {
        (Place::Node(a), Place::Node(b)) => {
            draft.links.push(Link { ends: [a, b], options: Vec::new(), line });
        }
        (Place::Node(node), Place::Lan(lan)) | (Place::Lan(lan), Place::Node(node)) => {
            draft.lans[lan].members.push(node);
        }
        (Place::Lan(a), Place::Lan(b)) => {
            let (a, b) = (&draft.lans[a].name, &draft.lans[b].name);
            let text = format!("the link between the bridges {a} and {b} is not carried over");
            draft.note(line, text);
        }
    }
    Ok(())
}

/// Resolves an endpoint of a link: `node:interface`, or a map with `node`. Returns none if it is
/// outside the lab.
fn place(
    draft: &mut Draft,
    source: &Source<'_>,
    places: &HashMap<&str, Place>,
    end: &Outline,
) -> Result<Option<Place>, Problems> {
    let name = match end.word() {
        Some(word) => word.split_once(':').map_or(word, |(node, _)| node),
        None => end.get("node").and_then(Outline::word).unwrap_or_default(),
    };
    if let Some(place) = places.get(name) {
        return Ok(Some(*place));
    }
    if OUTSIDE.contains(&name) {
        draft.note(end.line, format!("a link to this machine ({name}) is not carried over"));
        return Ok(None);
    }
    let help = match suggest(name, places.keys().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "write it below `nodes:`, or remove the link".into(),
    };
    Err(source.wrong(end.line, &format!("no node `{name}`"), &help))
}

/// Notes hosts with several links: hosts do not forward, but containers may.
fn many_links(draft: &mut Draft) {
    let mut links = vec![0_usize; draft.nodes.len()];
    let ends = draft.links.iter().flat_map(|link| link.ends);
    ends.chain(draft.lans.iter().flat_map(|lan| lan.members.iter().copied()))
        .for_each(|node| links[node] += 1);
    for (at, count) in links.into_iter().enumerate() {
        let node = &draft.nodes[at];
        if node.kind == Kind::Host && count > 1 {
            let text = format!(
                "{} has {count} links and is a host; if it forwards, write `router: linux`",
                node.name
            );
            draft.note(node.line, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn nodes_inherit_kind_and_image() {
        let text = "
            defaults: {x: 1, image: default, kind: linux, group: none}
            kinds: {linux: {image: of-linux}, ceos: {image: of-ceos}, bare: {}}
            groups: {a: {kind: ceos}, b: {image: of-b}, c: {kind: bare}}";
        let topology = outline("a", text).unwrap();
        let sections = Sections::new(&topology);
        for (node, expected) in [
            ("{}", ("linux", "of-linux")),
            ("{kind: ceos, image: own}", ("ceos", "own")),
            ("{kind: ceos}", ("ceos", "of-ceos")),
            ("{kind: bare}", ("bare", "default")),
            ("{group: a}", ("ceos", "of-ceos")),
            ("{group: b}", ("linux", "of-b")),
            ("{group: b, kind: ceos}", ("ceos", "of-b")),
            ("{group: c}", ("bare", "default")),
            ("{group: unknown}", ("linux", "of-linux")),
        ] {
            let node = outline("node", node).unwrap();
            let Settings { kind, image } = sections.inherited(&node);
            assert_eq!((kind, image), (Some(expected.0), Some(expected.1)), "{node:?}");
        }
    }

    /// The time does not grow with the product of nodes and default settings.
    #[test]
    fn many_defaults_are_searched_once() {
        let keys: String = (0..8000).map(|at| format!("k{at}: 1, ")).collect();
        let nodes: String = (0..8000).map(|at| format!("n{at}: {{}}, ")).collect();
        let time = |section: &str| {
            let text = format!("topology: {{{section}, nodes: {{{nodes}}}}}");
            let started = Instant::now();
            assert_eq!(read("a", &text).unwrap().nodes.len(), 8000);
            started.elapsed()
        };
        let unused = time(&format!("kinds: {{x: {{{keys}}}}}"));
        let used = time(&format!("defaults: {{{keys}}}"));
        assert!(used < unused * 3 + Duration::from_millis(500), "{used:?}, {unused:?}");
    }
}
