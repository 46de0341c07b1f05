//! Importer of Kathará's `lab.conf`: lines of `device[key]=value`. A numeric key is an interface,
//! and its value is the collision domain.

use std::collections::{BTreeMap, HashMap};

use document::Problems;

use crate::Beside;
use crate::draft::{Draft, Kind, Lan, Link, Node, Source};

/// Maximum file size: larger files do not describe labs.
const LARGEST: usize = 4 << 20;
/// Maximum number of commands listed per startup file; the rest is only counted.
const MAX_COMMANDS: usize = 20;

/// An assignment: `device[key]="value"`.
pub(crate) struct Assignment<'t> {
    device: &'t str,
    key: &'t str,
    value: &'t str,
}

/// Parses `pc1[0]="A"`.
pub(crate) fn assignment(line: &str) -> Option<Assignment<'_>> {
    let (device, rest) = line.trim().split_once('[')?;
    let (key, rest) = rest.split_once(']')?;
    let value = rest.trim_start().strip_prefix('=')?.trim();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
    let value = match quote {
        Some(quote) => value[1..].split_once(quote)?.0,
        None => value.split('#').next().unwrap_or_default().trim(),
    };
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_right = !device.is_empty() && device.chars().all(is_name) && !key.is_empty();
    is_right.then_some(Assignment { device, key, value })
}

/// A collision domain with its members and the line of its first use.
struct Domain<'t> {
    name: &'t str,
    line: usize,
    members: Vec<usize>,
}

#[derive(Default)]
struct Reader<'t> {
    draft: Draft,
    devices: HashMap<&'t str, usize>,
    images: Vec<Option<&'t str>>,
    interfaces: Vec<BTreeMap<u32, usize>>,
    domains: Vec<Domain<'t>>,
    domain_of: HashMap<&'t str, usize>,
}

pub(crate) fn read(file: &str, text: &str, beside: &[Beside]) -> Result<Draft, Problems> {
    let source = Source { file, text };
    if text.len() > LARGEST {
        let message = "the file is larger than 4 MiB";
        return Err(source.wrong(1, message, "import a smaller lab"));
    }
    let mut reader = Reader::default();
    for (at, line) in text.lines().enumerate() {
        let content = line.trim();
        if !content.is_empty() && !content.starts_with('#') {
            reader.line(&source, at + 1, content)?;
        }
    }
    if reader.devices.is_empty() {
        let help = "write a line such as pc1[0]=\"A\" for each interface";
        return Err(source.wrong(1, "the lab has no devices", help));
    }
    reader.connect();
    reader.kinds();
    let mut draft = reader.draft;
    beside.iter().for_each(|startup| commands(&mut draft, startup));
    Ok(draft)
}

impl<'t> Reader<'t> {
    fn line(&mut self, source: &Source<'_>, at: usize, line: &'t str) -> Result<(), Problems> {
        let Some(Assignment { device, key, value }) = assignment(line) else {
            let Some((key, value)) = line.split_once('=').filter(|(key, _)| is_meta(key)) else {
                let help = "write device[interface]=\"collision domain\", such as pc1[0]=\"A\"";
                return Err(source.wrong(at, "this is not a line of a lab.conf", help));
            };
            let value = value.trim().trim_matches('"');
            if key.trim() == "LAB_NAME" {
                self.draft.name = Some(value.into());
            } else {
                self.draft.note(at, format!("{} is not carried over ({value})", key.trim()));
            }
            return Ok(());
        };
        let node = self.device(device, at);
        if let Ok(number) = key.parse::<u32>() {
            return self.interface(source, at, node, number, value);
        }
        match key {
            "image" => {
                self.images[node] = Some(value);
                let text = format!("{device} has this machine's programs, not those of {value}");
                self.draft.note(at, text);
            }
            _ => self.draft.note(at, format!("`{key}` of {device} is not carried over ({value})")),
        }
        Ok(())
    }

    fn device(&mut self, name: &'t str, line: usize) -> usize {
        *self.devices.entry(name).or_insert_with(|| {
            self.draft.nodes.push(Node { name: name.into(), kind: Kind::Host, line });
            self.images.push(None);
            self.interfaces.push(BTreeMap::new());
            self.draft.nodes.len() - 1
        })
    }

    fn interface(
        &mut self,
        source: &Source<'_>,
        at: usize,
        node: usize,
        number: u32,
        value: &'t str,
    ) -> Result<(), Problems> {
        // A MAC address may follow: "A/00:00:00:00:00:01".
        let (name, mac) = value.split_once('/').map_or((value, None), |(a, b)| (a, Some(b)));
        if name.is_empty() {
            let help = "name one, such as \"A\"";
            return Err(source.wrong(at, "an interface without a collision domain", help));
        }
        if let Some(mac) = mac {
            self.draft.note(at, format!("a MAC address is not carried over ({mac})"));
        }
        let domain = *self.domain_of.entry(name).or_insert_with(|| {
            self.domains.push(Domain { name, line: at, members: Vec::new() });
            self.domains.len() - 1
        });
        if self.interfaces[node].insert(number, domain).is_some() {
            let message = format!("interface {number} is given twice");
            return Err(source.wrong(at, &message, "give it another number"));
        }
        self.domains[domain].members.push(node);
        Ok(())
    }

    /// Converts collision domains to links if they have two devices, otherwise to LANs.
    fn connect(&mut self) {
        for Domain { name, line, members } in std::mem::take(&mut self.domains) {
            match members[..] {
                [a, b] => {
                    self.draft.links.push(Link { ends: [a, b], options: Vec::new(), line });
                }
                _ => {
                    let name = name.into();
                    self.draft.lans.push(Lan { name, members, options: Vec::new(), line });
                }
            }
        }
    }

    /// Sets the devices' kinds. Any device may forward: those with several interfaces become
    /// routers.
    fn kinds(&mut self) {
        for at in 0..self.draft.nodes.len() {
            let image = self.images[at].unwrap_or_default().to_ascii_lowercase();
            let node = &mut self.draft.nodes[at];
            if image.contains("frr") || image.contains("quagga") {
                node.kind = Kind::Frr;
            } else if self.interfaces[at].len() > 1 {
                node.kind = Kind::Linux;
                let text = format!("{} has several interfaces: it is a router", node.name);
                let line = node.line;
                self.draft.note(line, text);
            }
        }
    }
}

/// True for `LAB_DESCRIPTION`, `LAB_VERSION`, …
fn is_meta(key: &str) -> bool {
    let key = key.trim();
    key.starts_with("LAB_") && key.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
}

/// Notes the commands of a startup file, including those that set addresses.
fn commands(draft: &mut Draft, startup: &Beside) {
    let lines = startup.text.lines().map(str::trim);
    let all: Vec<&str> = lines.filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
    let name = &startup.name;
    for command in all.iter().take(MAX_COMMANDS) {
        let command: String = command.chars().take(200).collect();
        draft.note(None, format!("{name}: not carried over: {command}"));
    }
    if all.len() > MAX_COMMANDS {
        let more = all.len() - MAX_COMMANDS;
        draft.note(None, format!("{name}: {more} more commands are not carried over"));
    }
}
