//! Links and LANs: names, members, options.

use std::collections::{HashMap, HashSet};

use document::{Place, Step, steps};
use model::topology::{Contradiction, Filter, Impairments, LinkChange, Node, Queue, SegmentKind};
use model::{Bandwidth, is_node_name};

use super::file::File;
use super::link_text::Link;
use super::nodes::{NAME_HELP, unknown_node};
use super::option_text::{self, OrNone};
use super::options::{OF_LINK, Options};
use super::switches;

/// A link or LAN with its members, but without addresses yet.
#[derive(Debug)]
pub(crate) struct Plan<'f> {
    pub(crate) name: String,
    pub(crate) kind: SegmentKind,
    /// Node indices of the members.
    pub(crate) members: Vec<usize>,
    /// Device name at each member.
    pub(crate) devices: Vec<String>,
    /// Options of each member's sending direction.
    pub(crate) sides: Vec<Side>,
    pub(crate) body: &'f Options,
    /// Node index of the switch that connects the members.
    pub(crate) switch: Option<usize>,
    /// Path of the link's item and name in the file.
    pub(crate) at: [Step; 3],
}

/// Options of one sending direction of a segment.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    pub(crate) rate: Option<Bandwidth>,
    pub(crate) queue: Queue,
    pub(crate) cost: u16,
    pub(crate) impairments: Impairments,
}

/// Default cost of a link. It is never derived from the rate.
const DEFAULT_COST: u16 = 10;
/// Maximum number of members of a LAN: a Linux bridge has 1,023 ports.
const MAX_MEMBERS: usize = 1000;
/// Maximum number of parallel links between two nodes: a device name has room for three digits.
const MAX_PARALLEL: u32 = 999;

pub(crate) struct Links<'f> {
    names: HashMap<&'f str, usize>,
    lans: HashSet<&'f str>,
    parallel: HashMap<(usize, usize), u32>,
}

/// Resolves the valid links and LANs, in file order.
pub(crate) fn links<'f>(place: &mut Place<'_>, file: &'f File, nodes: &[Node]) -> Vec<Plan<'f>> {
    let names = file.nodes.0.iter().enumerate().map(|(index, (name, _))| (name.as_str(), index));
    let mut links =
        Links { names: names.collect(), lans: HashSet::new(), parallel: HashMap::new() };
    let (mut plans, mut filters) = (Vec::<Plan<'f>>::with_capacity(file.links.len()), 0);
    // Index of each switch's plan, and the members of the switch: a file has up to a million links.
    let mut switches = HashMap::<usize, (usize, HashSet<usize>)>::new();
    for (index, link) in file.links.iter().enumerate() {
        let Some(plan) = links.link(place, index, link, nodes) else { continue };
        filters += link.body.filter.iter().flatten().count() * plan.members.len();
        if filters > MAX_TOTAL_FILTERS {
            let message =
                format!("all members of links have more than {MAX_TOTAL_FILTERS} filters");
            place.value(steps!["links", index], message, "write fewer filters, or smaller LANs");
            break;
        }
        match plan.switch.and_then(|switch| switches.get_mut(&switch)) {
            Some((first, members)) => plans[*first].join(place, plan, members, nodes),
            None => {
                if let Some(switch) = plan.switch {
                    let members = plan.members.iter().copied().collect();
                    switches.insert(switch, (plans.len(), members));
                }
                plans.push(plan);
            }
        }
    }
    plans
}

impl Plan<'_> {
    /// Adds another link of the same switch, which has these members.
    fn join(
        &mut self,
        place: &mut Place<'_>,
        link: Self,
        members: &mut HashSet<usize>,
        nodes: &[Node],
    ) {
        let [member] = link.members[..] else { return };
        if !members.insert(member) {
            let message = format!("`{}` has a link to `{}` already", nodes[member].name, self.name);
            let help = "remove it: a switch has one link to a node";
            place.key(&link.at, message, help);
            return;
        }
        self.members.extend(link.members);
        self.devices.extend(link.devices);
        self.sides.extend(link.sides);
    }
}

impl<'f> Links<'f> {
    fn link(
        &mut self,
        place: &mut Place<'_>,
        index: usize,
        link: &'f Link,
        nodes: &[Node],
    ) -> Option<Plan<'f>> {
        let body = &link.body;
        let name = link.name.as_str();
        let at = |key: &str| steps!["links", index, name, key].clone();
        let (forward, reverse) = self.options(place, body, &|key| at(key).to_vec());
        let (kind, members, name, devices) = match (&body.nodes, name.split_once('-')) {
            (_, Some((one, other))) if self.switch([one, other], nodes).is_some() => {
                let (switch, member) = self.port(place, &at, [one, other], nodes)?;
                let name = nodes[switch].name.clone();
                return Some(Plan {
                    devices: vec![name.clone()],
                    name,
                    kind: SegmentKind::Lan,
                    members: vec![member],
                    sides: vec![forward],
                    body,
                    switch: Some(switch),
                    at: steps!["links", index, link.name.as_str()].clone(),
                });
            }
            (Some(members), None) => {
                let members = self.lan(place, index, link, members, nodes)?;
                let devices = vec![name.to_owned(); members.len()];
                (SegmentKind::Lan, members, name.to_owned(), devices)
            }
            (None, Some((one, other))) => {
                let (members, name, devices) = self.pair(place, &at(""), [one, other], nodes)?;
                (SegmentKind::PointToPoint, members, name, devices)
            }
            (Some(_), Some((one, other))) => {
                let message = format!("`{name}` is the name of a link, and it lists nodes");
                let help = format!("write `lan0: [{one}, {other}, …]` for a LAN");
                place.key(&at(""), message, &help);
                return None;
            }
            (None, None) => {
                let message = format!("`{name}` is not a link");
                let help = format!("write `r1-r2` for a link, or `{name}: [r1, r2, …]` for a LAN");
                place.key(&at(""), message, &help);
                return None;
            }
        };
        let sides = match (kind, reverse) {
            (SegmentKind::PointToPoint, reverse) => {
                let reverse = reverse.unwrap_or_else(|| forward.clone());
                vec![forward, reverse]
            }
            (SegmentKind::Lan, None) => vec![forward; members.len()],
            (SegmentKind::Lan, Some(_)) => {
                let message = "a LAN has no reverse direction";
                place.key(&at("reverse"), message, "remove it: the options hold for every member");
                return None;
            }
        };
        let [links, index, name_step, _] = at("");
        let at = [links, index, name_step];
        Some(Plan { name, kind, members, devices, sides, body, switch: None, at })
    }

    fn member(&self, place: &mut Place<'_>, at: &[Step], name: &str) -> Option<usize> {
        let found = self.names.get(name).copied();
        if found.is_none() {
            unknown_node(place, at, name, self.names.keys().copied());
        }
        found
    }

    /// Index of the first of two nodes that is a switch.
    fn switch(&self, names: [&str; 2], nodes: &[Node]) -> Option<usize> {
        let mut found = names.into_iter().filter_map(|name| self.names.get(name).copied());
        found.find(|&node| nodes[node].is_switch())
    }

    /// Resolves a link of a switch to the indices of the switch and of the other node.
    fn port(
        &self,
        place: &mut Place<'_>,
        at: &dyn Fn(&str) -> [Step; 4],
        names: [&str; 2],
        nodes: &[Node],
    ) -> Option<(usize, usize)> {
        let ends = names.map(|name| self.member(place, &at(""), name));
        let [Some(one), Some(other)] = ends else { return None };
        let (switch, member) = if nodes[one].is_switch() { (one, other) } else { (other, one) };
        let is_possible = switches::check_link(place, at, &nodes[switch], &nodes[member]);
        is_possible.then_some((switch, member))
    }

    fn pair(
        &mut self,
        place: &mut Place<'_>,
        at: &[Step],
        names: [&str; 2],
        nodes: &[Node],
    ) -> Option<(Vec<usize>, String, Vec<String>)> {
        let ends = names.map(|name| self.member(place, at, name));
        let [Some(one), Some(other)] = ends else { return None };
        if one == other {
            let message = format!("`{}` is linked to itself", names[0]);
            place.key(at, message, "name two different nodes");
            return None;
        }
        let number = self.parallel.entry((one.min(other), one.max(other))).or_default();
        *number += 1;
        let number = *number;
        if number > MAX_PARALLEL {
            let message = format!("more than {MAX_PARALLEL} parallel links");
            place.key(at, message, "remove some of them");
            return None;
        }
        let numbered = |name: &str| match number {
            1 => name.to_owned(),
            _ => format!("{name}_{number}"),
        };
        let [one_name, other_name] = [one, other].map(|node| nodes[node].name.as_str());
        let name = numbered(&format!("{one_name}-{other_name}"));
        Some((vec![one, other], name, vec![numbered(other_name), numbered(one_name)]))
    }

    fn lan(
        &mut self,
        place: &mut Place<'_>,
        index: usize,
        link: &'f Link,
        members: &[String],
        nodes: &[Node],
    ) -> Option<Vec<usize>> {
        let name = link.name.as_str();
        let at = steps!["links", index, name];
        if !is_node_name(name) {
            place.key(at, format!("`{name}` cannot name a LAN"), NAME_HELP);
            return None;
        }
        if self.names.contains_key(name) {
            let help = "give the LAN a name that no node has: both name interfaces";
            place.key(at, format!("`{name}` is a node and a LAN"), help);
        }
        if !self.lans.insert(name) {
            place.key(at, format!("`{name}` names two LANs"), "rename one of them");
        }
        if members.len() < 2 || members.len() > MAX_MEMBERS {
            let message = format!("the LAN `{name}` has {} members", members.len());
            place.key(at, message, &format!("list two to {MAX_MEMBERS} nodes"));
            return None;
        }
        let mut found = Vec::with_capacity(members.len());
        let mut seen = HashSet::new();
        for (position, member) in members.iter().enumerate() {
            // In `lan: {nodes: […]}` the list is nested one level deeper than in `lan: […]`.
            let long = [at.as_slice(), steps!["nodes", position]].concat();
            let short = [at.as_slice(), steps![position]].concat();
            let at = if place.tree.has(&long) { long } else { short };
            let Some(node) = self.member(place, &at, member) else { continue };
            if nodes[node].is_switch() {
                let message = format!("`{member}` is a switch, and not a member of LANs");
                let help = format!("write links such as `h1-{member}`");
                place.value(&at, message, &help);
            } else if seen.insert(node) {
                found.push(node);
            } else {
                place.value(&at, format!("`{member}` is on this LAN twice"), "name it once");
            }
        }
        Some(found)
    }

    /// The two directions of a link; the second one only if the file contains it.
    fn options(
        &self,
        place: &mut Place<'_>,
        body: &Options,
        at: &dyn Fn(&str) -> Vec<Step>,
    ) -> (Side, Option<Side>) {
        let (rate, queue, impairments) = (None, Queue::Auto, Impairments::default());
        let same = Side { rate, queue, cost: DEFAULT_COST, impairments };
        let first = direction(place, body, &same, at);
        let second = body.reverse.as_ref().map(|reverse| {
            let at = |key: &str| [at("reverse"), vec![key.into()]].concat();
            for key in
                OF_LINK.into_iter().filter(|key| place.tree.has(&at(key))).collect::<Vec<_>>()
            {
                let message = format!("`{key}` is an option of the link, not of a direction");
                place.key(&at(key), message, "move it out of `reverse:`");
            }
            direction(place, reverse, &first, &at)
        });
        (first, second)
    }
}

/// Resolves the options of one direction; absent ones are copied from `same`.
fn direction(
    place: &mut Place<'_>,
    options: &Options,
    same: &Side,
    at: &dyn Fn(&str) -> Vec<Step>,
) -> Side {
    let mut side = Side { cost: options.cost.unwrap_or(same.cost), ..same.clone() };
    for (_, change) in options.changes() {
        match change {
            LinkChange::Rate(rate) => side.rate = rate,
            LinkChange::Queue(queue, ..) => side.queue = queue,
            _ => {}
        }
        change.apply(&mut side.impairments);
    }
    let given = options.rate.as_ref().and_then(OrNone::value);
    if let Some(rate) = given.filter(|rate| rate.bytes_per_second() == 0) {
        let message = format!("a link's rate is at least 8bit, and {rate} is less");
        place.value(&at("rate"), message, "write a rate such as 10mbit");
    }
    let has_trace = options.trace.is_some() || same.impairments.trace.is_some();
    let has_queue = options.queue.as_ref().and_then(OrNone::value).is_some();
    if has_queue && side.rate.is_none() && !has_trace {
        let message = "`queue` has no effect on a link without a rate";
        place.key(&at("queue"), message, "add `rate:`, or remove it");
    }
    if options.cost == Some(0) {
        place.value(&at("cost"), "a cost is at least 1", "write a cost from 1 to 65535");
    }
    files_and_filters(place, options, &mut side.impairments, at);
    if side.rate.is_some() && side.impairments.has_opportunities() {
        let (key, other) =
            if options.trace.is_some() { ("trace", "rate") } else { ("rate", "trace") };
        let message = "a rate and a trace contradict each other";
        place.key(&at(key), message, &format!("remove it, or `{other}`"));
    }
    side
}

/// Maximum number of filters of a link. Each member of a LAN has them.
const MAX_FILTERS: usize = 64;
/// Maximum number of filters of all members of links.
const MAX_TOTAL_FILTERS: usize = 1 << 18;

/// Rejects filters that match no packet or every packet, and too many.
fn check_filters(place: &mut Place<'_>, options: &Options, at: &dyn Fn(&str) -> Vec<Step>) {
    let count = options.filter.iter().flatten().count();
    if count > MAX_FILTERS {
        let help = format!("write at most {MAX_FILTERS}");
        place.value(&at("filter"), format!("a link has {count} filters"), &help);
        return;
    }
    for (index, filter) in options.filter.iter().flatten().enumerate() {
        let has_addresses = filter.from.is_some() || filter.to.is_some();
        if !has_addresses && filter.protocol.is_none() && filter.ports.is_none() {
            let message = "a filter that says nothing would stop every packet";
            let help = "say `from`, `to`, `protocol` or `ports`; `loss: 100%` stops every packet";
            place.value(&[at("filter"), vec![index.into()]].concat(), message, help);
        }
        let at = |key: &str| [at("filter"), vec![index.into(), key.into()]].concat();
        if let (Some(protocol), Some(_)) = (filter.protocol, filter.ports)
            && !protocol.has_ports()
        {
            let message = format!("{protocol} has no ports, so that no packet is filtered");
            place.key(&at("ports"), message, "remove it, or filter tcp, udp or sctp");
        }
        if let (Some(from), Some(to)) = (filter.from, filter.to)
            && from.0.addr().is_ipv4() != to.0.addr().is_ipv4()
        {
            let message = format!(
                "no packet can match: {} and {} are of different address families",
                from.0, to.0
            );
            place.value(&at("to"), message, "write a filter for each family");
        }
    }
}

/// Resolves the impairments that refer to files, and the filters; then checks all impairments.
fn files_and_filters(
    place: &mut Place<'_>,
    options: &Options,
    impairments: &mut Impairments,
    at: &dyn Fn(&str) -> Vec<Step>,
) {
    check_filters(place, options, at);
    if let Some(file) = options.jitter_file() {
        impairments.jitter = None;
        impairments.samples = Some(file.into());
    }
    if let Some(file) = &options.trace {
        impairments.trace = Some(file.as_str().into());
    }
    if let Some(filters) = &options.filter {
        let filter = |filter: &option_text::Filter| Filter {
            from: filter.from.map(|prefix| prefix.0),
            to: filter.to.map(|prefix| prefix.0),
            protocol: filter.protocol,
            ports: filter.ports,
        };
        impairments.filters = filters.iter().map(filter).collect();
    }
    let Some(contradiction) = impairments.contradiction() else { return };
    let message = contradiction.to_string();
    match contradiction {
        Contradiction::Jitter(..) => {
            let key = if options.jitter.is_some() { "jitter" } else { "delay" };
            place.value(&at(key), message, "write a longer delay, or less jitter");
        }
        Contradiction::Reorder => {
            place.key(&at("reorder"), message, "add `delay:`, or remove it");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use super::*;

    /// The time does not grow with the square of the number of links.
    #[test]
    fn many_links_are_not_searched_for_a_switch() {
        let hosts: String = (0..=40).map(|at| format!("h{at}: {{}}, ")).collect();
        let time = |count: usize| {
            let plain = (0..count).map(|at| format!("h{}-h{}", at % 40, at % 40 + 1));
            let of_switch = (0..count / 2).map(|_| "h1-s".to_owned());
            let text = plain.chain(of_switch).collect::<Vec<_>>().join(", ");
            let text = format!(
                "name: a\nnodes: {{{hosts} s: {{switch: openvswitch}}}}\nlinks: [{text}]\n"
            );
            let Ok((tree, file, report)) = document::read::<File>(&text, &crate::KIND) else {
                panic!("it is not valid")
            };
            let mut place = Place { tree: &tree, report };
            let nodes = crate::nodes::nodes(&mut place, &file);
            let started = Instant::now();
            assert_eq!(links(&mut place, &file, &nodes).len(), count + 1);
            started.elapsed()
        };
        let (few, many) = (time(4000), time(16_000));
        assert!(many < few * 7 + Duration::from_millis(50), "{few:?}, {many:?}");
    }

    /// A name of 4 KB on a LAN of 1,000 members takes 4 KB.
    #[test]
    fn members_of_a_lan_share_names_of_files() {
        let text = "name: a\nnodes: {h1: {}, h2: {}, h3: {}}\n\
                    links: [lan: {nodes: [h1, h2, h3], trace: far.csv, jitter: {file: far.txt}}]\n";
        let Ok((tree, file, report)) = document::read::<File>(text, &crate::KIND) else {
            panic!("it is not valid")
        };
        let mut place = Place { tree: &tree, report };
        let nodes = crate::nodes::nodes(&mut place, &file);
        let plans = links(&mut place, &file, &nodes);
        let [first, .., last] = &plans[0].sides[..] else { panic!("{:?}", plans[0].sides) };
        let names = |side: &Side| {
            let Impairments { trace, samples, .. } = &side.impairments;
            [trace, samples].map(|name| Arc::clone(name.as_ref().unwrap()))
        };
        for (first, last) in names(first).iter().zip(&names(last)) {
            assert!(Arc::ptr_eq(first, last), "{first} {last}");
        }
    }
}
