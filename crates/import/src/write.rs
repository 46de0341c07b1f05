//! Converts a draft to a topology file.

use std::fmt::Write;

use document::Problems;

use crate::draft::{Draft, Kind, Options};
use crate::names::{Names, lab_name};
use crate::{Imported, Note};

pub(crate) fn write(file: &str, lab: &str, mut draft: Draft) -> Result<Imported, Problems> {
    let lab = name_lab(lab, &mut draft);
    let (nodes, lans) = rename(&mut draft);
    drop_impossible(&mut draft);
    if draft.nodes.iter().any(|node| node.kind == Kind::Frr) {
        same_routing(&mut draft);
        draft.note(
            None,
            "what the FRR routers are configured with is not known: they speak OSPF (`routing:`)",
        );
    }
    let mut notes = draft.take_notes();
    notes.iter_mut().for_each(|note| note.text = plain(&note.text));
    let mut topology = String::new();
    // Writing to a string cannot fail.
    let _ = header(&mut topology, file, &notes);
    let _ = body(&mut topology, &lab, &draft, &nodes, &lans);
    // Validate the result, so that limits such as the number of nodes are reported here.
    topology_file::parse(&format!("{file}, as a topology"), &topology)?;
    Ok(Imported { lab, topology, notes })
}

/// The lab's own name, or `given` if it has none.
fn name_lab(given: &str, draft: &mut Draft) -> String {
    let Some(wanted) = draft.name.take() else { return lab_name(given) };
    let name = lab_name(&wanted);
    if name != wanted {
        draft.note(None, format!("the lab `{wanted}` is called {name}"));
    }
    name
}

/// Assigns names to nodes and LANs. Names that are valid as they are take precedence.
fn rename(draft: &mut Draft) -> (Vec<String>, Vec<String>) {
    let mut names = Names::default();
    let wanted: Vec<(String, usize)> = draft
        .nodes
        .iter()
        .map(|node| (node.name.clone(), node.line))
        .chain(draft.lans.iter().map(|lan| (lan.name.clone(), lan.line)))
        .collect();
    let mut given = vec![None; wanted.len()];
    for (given, (name, _)) in given.iter_mut().zip(&wanted) {
        if names.is_free(name) {
            *given = Some(names.give(name));
        }
    }
    let mut all = Vec::with_capacity(wanted.len());
    for (at, (given, (wanted, line))) in given.into_iter().zip(wanted).enumerate() {
        all.push(given.unwrap_or_else(|| {
            let name = names.give(&wanted);
            let what = if at < draft.nodes.len() { "node" } else { "LAN" };
            draft.note(line, format!("the {what} `{wanted}` is called {name}"));
            name
        }));
    }
    let lans = all.split_off(draft.nodes.len());
    (all, lans)
}

/// Adjacent routers have to use the same protocol: if there are FRR routers, all routers become FRR
/// routers.
fn same_routing(draft: &mut Draft) {
    let mut notes = Vec::new();
    for node in draft.nodes.iter_mut().filter(|node| node.kind == Kind::Linux) {
        node.kind = Kind::Frr;
        let text = format!("{} is an FRR router, since there are others", node.name);
        notes.push((node.line, text));
    }
    notes.into_iter().for_each(|(line, text)| draft.note(line, text));
}

/// Drops self-loops, duplicate ports of a node on a LAN, and LANs with a single node.
fn drop_impossible(draft: &mut Draft) {
    let mut notes = Vec::new();
    draft.links.retain(|link| {
        let stays = link.ends[0] != link.ends[1];
        if !stays {
            let name = &draft.nodes[link.ends[0]].name;
            let text = format!("a link of {name} to itself is not carried over");
            notes.push((link.line, text));
        }
        stays
    });
    for lan in &mut draft.lans {
        let mut known = std::collections::HashSet::new();
        let before = lan.members.len();
        lan.members.retain(|member| known.insert(*member));
        if lan.members.len() < before {
            let text = format!("on the LAN {} nodes have one interface, not more", lan.name);
            notes.push((lan.line, text));
        }
        if lan.members.len() < 2 {
            let text = format!("the LAN {} has fewer than two nodes and is left out", lan.name);
            notes.push((lan.line, text));
        }
    }
    notes.into_iter().for_each(|(line, text)| draft.note(line, text));
}

fn header(out: &mut String, file: &str, notes: &[Note]) -> std::fmt::Result {
    writeln!(out, "# Imported from {}.", plain(file))?;
    if !notes.is_empty() {
        writeln!(out, "# Not carried over, or assumed:")?;
    }
    for note in notes {
        match note.line {
            Some(line) => writeln!(out, "#   line {line}: {}", note.text)?,
            None => writeln!(out, "#   {}", note.text)?,
        }
    }
    Ok(())
}

fn body(
    out: &mut String,
    lab: &str,
    draft: &Draft,
    nodes: &[String],
    lans: &[String],
) -> std::fmt::Result {
    writeln!(out, "name: {}", quoted(lab))?;
    if draft.nodes.iter().any(|node| node.kind == Kind::Frr) {
        writeln!(out, "routing: [ospf, ospf6]")?;
    }
    writeln!(out, "nodes:")?;
    for (node, name) in draft.nodes.iter().zip(nodes) {
        let what = match node.kind {
            Kind::Host => "{}",
            Kind::Frr => "{router: frr}",
            Kind::Linux => "{router: linux}",
        };
        writeln!(out, "  {name}: {what}")?;
    }
    let lans: Vec<_> =
        draft.lans.iter().zip(lans).filter(|(lan, _)| lan.members.len() > 1).collect();
    if draft.links.is_empty() && lans.is_empty() {
        return Ok(());
    }
    writeln!(out, "links:")?;
    for link in &draft.links {
        let [a, b] = link.ends.map(|end| &nodes[end]);
        match options(&link.options) {
            text if text.is_empty() => writeln!(out, "  - {a}-{b}")?,
            text => writeln!(out, "  - {a}-{b}: {{{text}}}")?,
        }
    }
    for (lan, name) in lans {
        let members: Vec<String> = lan.members.iter().map(|&at| quoted(&nodes[at])).collect();
        let members = members.join(", ");
        match options(&lan.options) {
            text if text.is_empty() => writeln!(out, "  - {name}: [{members}]")?,
            text => writeln!(out, "  - {name}: {{nodes: [{members}], {text}}}")?,
        }
    }
    Ok(())
}

fn options(options: &Options) -> String {
    let texts: Vec<String> = options.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    texts.join(", ")
}

/// Quotes names that YAML would parse as another type.
fn quoted(name: &str) -> String {
    const WORDS: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let is_word = WORDS.iter().any(|word| word.eq_ignore_ascii_case(name));
    if is_word { format!("'{name}'") } else { name.to_owned() }
}

/// Replaces characters that would end a comment or affect a terminal.
fn plain(text: &str) -> String {
    // Line ends of Unicode, directions of text, invisible characters, and the byte order mark.
    let is_odd = |c: char| {
        c.is_control()
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    text.chars().map(|c| if is_odd(c) { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_have_no_odd_characters() {
        assert_eq!(
            plain("a\u{202e}b\u{2066}c\u{2028}d\re\u{85}f\u{feff}g\u{200b}"),
            "a b c d e f g "
        );
        assert_eq!(plain("Zürich – 東京"), "Zürich – 東京");
    }
}
