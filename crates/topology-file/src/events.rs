//! The file's `events:`: changes to links while the lab runs, timed from its readiness.

use std::collections::{HashMap, HashSet};

use document::{Place, Step, listed, steps};
use model::topology::{
    Action, Event, Family, Impairments, Interface, LinkChange, Pattern, Segment, SegmentsByName,
    Topology, Traffic,
};

use super::event_text::{Event as EventText, PatternText, TrafficText};
use super::file::File;
use super::option_text::OrNone;
use super::options::{FIXED, OF_LINK, Options};

/// Resolves the events; invalid ones are reported.
pub(crate) fn events(place: &mut Place<'_>, file: &File, topology: &Topology) -> Vec<Event> {
    let segments = topology.segments_by_name();
    let texts = file.events.iter().enumerate();
    let found: Vec<(usize, Event)> = texts
        .filter_map(|(index, text)| Some((index, event(place, index, text, topology, &segments)?)))
        .collect();
    let mut in_order: Vec<&(usize, Event)> = found.iter().collect();
    in_order.sort_by_key(|(_, event)| event.at);
    refuse_overlaps(place, &in_order);
    refuse_contradictions(place, &in_order, topology);
    found.into_iter().map(|(_, event)| event).collect()
}

fn event(
    place: &mut Place<'_>,
    index: usize,
    text: &EventText,
    topology: &Topology,
    segments: &SegmentsByName<'_>,
) -> Option<Event> {
    let Some(segment) = segments.get(&text.link) else {
        let names = topology.segments.iter().map(|segment| segment.name.as_str());
        let near = place.near(&text.link, names);
        let help = near
            .map_or("name a link under `links:`".into(), |near| format!("did you mean `{near}`?"));
        let message = format!("no link is called `{}`", text.link);
        place.value(steps!["events", index, "link"], message, &help);
        return None;
    };
    from(place, index, text, segment, topology)?;
    let action = match (text.down, &text.set, &text.traffic) {
        (Some(down), None, None) => {
            let silent = text.silent.unwrap_or(false);
            if silent && !topology.is_emulated(segment) {
                not_emulated(place, steps!["events", index, "silent"], segment, "cut silently");
                return None;
            }
            if down.0.is_zero() {
                let message = "the link is down for no time at all";
                let help = "write a duration such as 5s";
                place.value(steps!["events", index, "down"], message, help);
            }
            Action::Down { duration: down.0, silent }
        }
        (None, Some(set), None) => {
            Action::Set(changes(place, index, text, set, segment, topology)?)
        }
        (None, None, Some(given)) => {
            Action::Traffic(traffic(place, index, text, given, segment, topology)?)
        }
        _ => {
            let help = "write one of `down:`, `set:` and `traffic:`";
            place.value(steps!["events", index], "an event does one thing", help);
            return None;
        }
    };
    if text.silent.is_some() && text.down.is_none() {
        let message = "`silent` goes with `down`";
        place.key(steps!["events", index, "silent"], message, "remove it");
    }
    Some(Event { at: text.at.0, link: segment.name.clone(), from: text.from.clone(), action })
}

/// Checks that the sender is one of the link's nodes, and that the event affects one direction
/// only.
fn from(
    place: &mut Place<'_>,
    index: usize,
    text: &EventText,
    segment: &Segment,
    topology: &Topology,
) -> Option<()> {
    let Some(from) = &text.from else { return Some(()) };
    let at = steps!["events", index, "from"];
    let names = || segment.ends.iter().map(|end| topology.nodes[end.node].name.as_str());
    if !names().any(|name| name == from) {
        let message = format!("`{from}` is not on `{}`", segment.name);
        let help = format!("name one of {}", listed(names()));
        place.value(at, message, &help);
        return None;
    }
    if text.down.is_some() {
        place.key(at, "a link is cut in both directions", "remove it");
        return None;
    }
    Some(())
}

fn not_emulated(place: &mut Place<'_>, at: &[Step], segment: &Segment, what: &str) {
    let message = format!("`{}` is a link of the kernel, which cannot be {what}", segment.name);
    place.key(at, message, "add `engine: true` to the link");
}

fn changes(
    place: &mut Place<'_>,
    index: usize,
    text: &EventText,
    set: &Options,
    segment: &Segment,
    topology: &Topology,
) -> Option<Vec<LinkChange>> {
    let at = |key: &str| vec!["events".into(), index.into(), "set".into(), key.into()];
    let keys = OF_LINK.into_iter().chain(FIXED);
    let fixed: Vec<&str> = keys
        .filter(|key| place.tree.has(&at(key)))
        .chain(set.jitter_file().map(|_| "jitter"))
        .collect();
    for key in fixed {
        place.key(&at(key), format!("an event cannot give this `{key}`"), "remove it");
    }
    let changes = set.changes();
    if changes.is_empty() {
        let help = "write what the link is to be, such as {delay: 40ms}";
        place.value(steps!["events", index, "set"], "there is nothing to change", help);
        return None;
    }
    if let Some(rate) = set.rate.as_ref().and_then(OrNone::value)
        && rate.bytes_per_second() == 0
    {
        let message = format!("a link's rate is at least 8bit, and {rate} is less");
        place.value(&at("rate"), message, "write a higher rate, or `down:`");
        return None;
    }
    if !topology.is_emulated(segment) {
        if let Some((key, _)) = changes.iter().find(|(key, _)| *key != "rate") {
            not_emulated(place, &at(key), segment, &format!("given `{key}`"));
            return None;
        }
        if text.from.is_some() {
            let what = "changed in one direction alone";
            not_emulated(place, steps!["events", index, "from"], segment, what);
            return None;
        }
        let has_no_queue = segment.ends.iter().any(|end| {
            let node = &topology.nodes[end.node];
            node.runs_xdp() && node.interfaces[end.interface].rate.is_none()
        });
        if has_no_queue {
            let message = format!("`{}` sends with XDP, which bypasses every queue", segment.name);
            place.key(&at("rate"), message, "give the link a `rate:` from the start");
            return None;
        }
    }
    Some(changes.into_iter().map(|(_, change)| change).collect())
}

fn traffic(
    place: &mut Place<'_>,
    index: usize,
    text: &EventText,
    given: &TrafficText,
    segment: &Segment,
    topology: &Topology,
) -> Option<Traffic> {
    let at = |key: &str| vec!["events".into(), index.into(), "traffic".into(), key.into()];
    if !topology.is_emulated(segment) {
        let what = "given cross traffic";
        not_emulated(place, steps!["events", index, "traffic"], segment, what);
        return None;
    }
    let Some(from) = &text.from else {
        let message = "cross traffic goes in one direction";
        place.key(steps!["events", index, "traffic"], message, "add `from:` with a node");
        return None;
    };
    let pattern = match (given.pattern.unwrap_or(PatternText::Constant), given.on, given.off) {
        (PatternText::OnOff, Some(on), Some(off)) => Pattern::OnOff { on: on.0, off: off.0 },
        (PatternText::OnOff, ..) => {
            let message = "`on-off` needs to know how long";
            place.value(&at("pattern"), message, "add `on:` and `off:`, such as 100ms");
            return None;
        }
        (_, Some(_), _) | (_, _, Some(_)) => {
            let key = if given.on.is_some() { "on" } else { "off" };
            let help = "add `pattern: on-off`, or remove it";
            place.key(&at(key), format!("`{key}` goes with `pattern: on-off`"), help);
            return None;
        }
        (PatternText::Constant, ..) => Pattern::Constant,
        (PatternText::Poisson, ..) => Pattern::Poisson,
    };
    let traffic = Traffic {
        rate: given.rate,
        duration: given.r#for.0,
        pattern,
        size: given.size.map_or(Traffic::SIZE, |size| size.0),
        family: given.family.unwrap_or(Family::Ipv4),
    };
    let sender = interfaces(segment, topology).find(|(name, _)| *name == from);
    let mtu = sender.map_or(topology.mtu, |(_, interface)| interface.mtu);
    if let Some((key, message, help)) = traffic.fault(mtu) {
        place.value(&at(key), message, &help);
        return None;
    }
    Some(traffic)
}

/// Rejects events that set a link down which is down already. `events`: in the order of time.
fn refuse_overlaps(place: &mut Place<'_>, events: &[&(usize, Event)]) {
    // By link, the last time at which it was set down, and the end.
    let mut down = HashMap::new();
    for (index, event) in events {
        let Action::Down { duration, .. } = event.action else { continue };
        let (at, end) = (event.at, event.at.saturating_add(duration));
        match down.get_mut(event.link.as_str()) {
            Some((from, until)) if at < *until => {
                let message = format!(
                    "`{}` is down at {at:?} already: from {from:?} to {until:?}",
                    event.link
                );
                let help = "make one of them shorter, or begin it later";
                place.value(steps!["events", *index, "at"], message, help);
                *until = end.max(*until);
            }
            _ => {
                down.insert(event.link.as_str(), (at, end));
            }
        }
    }
}

/// Checks that the options are consistent after each change, starting from those in the file.
fn refuse_contradictions(place: &mut Place<'_>, events: &[&(usize, Event)], topology: &Topology) {
    let mut by_link: HashMap<&str, Vec<&(usize, Event)>> = HashMap::new();
    for event in events {
        by_link.entry(event.1.link.as_str()).or_default().push(event);
    }
    // A LAN has an error of the same event for each of its members.
    let mut reported = HashSet::new();
    for segment in &topology.segments {
        let Some(events) = by_link.get(segment.name.as_str()) else { continue };
        for (name, interface) in interfaces(segment, topology) {
            let mut now: Impairments = interface.impairments.clone();
            let mut was_wrong = false;
            let mut has_rate = interface.rate.is_some();
            for (index, event) in events {
                let is_meant = event.from.as_ref().is_none_or(|from| from == name);
                let (true, Action::Set(changes)) = (is_meant, &event.action) else { continue };
                let mut gives_queue = false;
                for change in changes {
                    match change {
                        LinkChange::Rate(rate) => has_rate = rate.is_some(),
                        LinkChange::Queue(..) => gives_queue = *change != LinkChange::NO_QUEUE,
                        _ => {}
                    }
                    change.apply(&mut now);
                }
                let said = if now.has_opportunities() && has_rate {
                    Some("a rate and a trace contradict each other".to_owned())
                } else if gives_queue && !has_rate && now.trace.is_none() {
                    Some("a queue without a rate never fills".to_owned())
                } else {
                    now.contradiction().map(|contradiction| contradiction.to_string())
                };
                if let (Some(said), false) = (&said, was_wrong)
                    && reported.insert(*index)
                {
                    let message = format!("from {name}, then: {said}");
                    let help = "change both, or look at the events before it";
                    place.value(steps!["events", *index, "set"], message, help);
                }
                was_wrong = said.is_some();
            }
        }
    }
}

/// The nodes of a link, with their interfaces.
fn interfaces<'t>(
    segment: &'t Segment,
    topology: &'t Topology,
) -> impl Iterator<Item = (&'t String, &'t Interface)> {
    segment.ends.iter().map(|end| {
        let node = &topology.nodes[end.node];
        (&node.name, &node.interfaces[end.interface])
    })
}
