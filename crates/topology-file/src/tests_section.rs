//! The file's `tests:`: each is a ping, a throughput or a route.

use std::time::Duration;

use document::{Place, Time, listed, steps};
use model::topology::{DurationText, Family, Ping, Range, Test, Topology};

use super::applications::{known_node, linked_node};
use super::file::{File, TestText};

/// Default deadline of a test.
const WITHIN: Duration = Duration::from_secs(30);

/// Resolves the tests; invalid ones are reported.
pub(crate) fn tests(place: &mut Place<'_>, file: &File, topology: &Topology) -> Vec<Test> {
    let texts = file.tests.iter().enumerate();
    texts.filter_map(|(index, text)| test(place, index, text, topology)).collect()
}

fn test(place: &mut Place<'_>, index: usize, text: &TestText, topology: &Topology) -> Option<Test> {
    let allowed: &[&str] = match (&text.ping, text.throughput, text.route) {
        (Some(_), None, None) => &["from", "ping", "rtt", "loss", "unreachable", "count", "family"],
        (None, Some(_), None) => &["from", "to", "throughput", "family"],
        (None, None, Some(_)) => &["on", "route", "present", "via"],
        _ => {
            let message = "a test checks one thing";
            let help = "write one of `ping:`, `throughput:` and `route:`";
            place.value(steps!["tests", index], message, help);
            return None;
        }
    };
    let given = [
        ("from", text.from.is_some()),
        ("ping", text.ping.is_some()),
        ("rtt", text.rtt.is_some()),
        ("loss", text.loss.is_some()),
        ("unreachable", text.unreachable.is_some()),
        ("count", text.count.is_some()),
        ("family", text.family.is_some()),
        ("to", text.to.is_some()),
        ("throughput", text.throughput.is_some()),
        ("on", text.on.is_some()),
        ("route", text.route.is_some()),
        ("present", text.present.is_some()),
        ("via", text.via.is_some()),
    ];
    for (key, _) in given.into_iter().filter(|(key, given)| *given && !allowed.contains(key)) {
        let message = format!("`{key}` does not go with this test");
        let help = format!("allowed here: {}, within", allowed.join(", "));
        place.key(steps!["tests", index, key], message, &help);
    }
    let within = DurationText(text.within.map_or(WITHIN, |within| within.0));
    let mut named = |key: &str, name: &Option<String>| match name {
        Some(name) => {
            let check = if key == "on" || key == "via" { known_node } else { linked_node };
            check(place, steps!["tests", index, key], name, topology);
            let works = key != "ping" && key != "via";
            if works && topology.node(name).is_some_and(|node| !node.has_namespace()) {
                let message = format!("no program can run on `{name}`");
                let help = "name a node that is not virtual, and not attached";
                place.value(steps!["tests", index, key], message, help);
            }
            Some(name.clone())
        }
        None => {
            let message = format!("`{key}` is missing");
            place.value(steps!["tests", index], message, &format!("add `{key}:` with a node"));
            None
        }
    };
    if text.ping.is_some() {
        let (from, to) = (named("from", &text.from), named("ping", &text.ping));
        let (from, to) = (from?, to?);
        if from == to {
            let help = "name two different nodes";
            place.value(steps!["tests", index, "ping"], format!("`{to}` pings itself"), help);
        }
        return ping(place, index, text, [from, to], within);
    }
    if let Some(throughput) = text.throughput {
        let (from, to) = (named("from", &text.from)?, named("to", &text.to)?);
        if from == to {
            let help = "name two different nodes";
            place.value(steps!["tests", index, "to"], format!("`{to}` sends to itself"), help);
        }
        let (family, throughput) = (text.family.unwrap_or(Family::Ipv4), throughput.0);
        return Some(Test::Throughput { from, to, family, throughput, within });
    }
    let on = named("on", &text.on)?;
    let via = text.via.as_ref().and_then(|_| named("via", &text.via));
    if let (Some(via), Some(at)) = (&via, topology.node_index(&on))
        && topology.node(via).is_some()
        && !topology.neighbors(at).any(|node| node.name == *via)
    {
        let message = format!("`{via}` is not a neighbor of `{on}`");
        let names = topology.neighbors(at).map(|node| node.name.as_str());
        let help = format!("name one of {}", listed(names));
        place.value(steps!["tests", index, "via"], message, &help);
    }
    let present = text.present.unwrap_or(true);
    if !present && via.is_some() {
        let message = "an absent route has no next hop";
        place.key(steps!["tests", index, "via"], message, "remove `via`, or `present: false`");
    }
    Some(Test::Route { on, route: text.route?.0, present, via, within })
}

fn ping(
    place: &mut Place<'_>,
    index: usize,
    text: &TestText,
    [from, to]: [String; 2],
    within: DurationText,
) -> Option<Test> {
    let unreachable = text.unreachable.unwrap_or(false);
    for (key, given) in [("rtt", text.rtt.is_some()), ("loss", text.loss.is_some())] {
        if given && unreachable {
            let message = format!("`{key}` is about answers, and none is to come");
            place.key(steps!["tests", index, key], message, "remove it, or `unreachable: true`");
        }
    }
    let count = text.count.unwrap_or(match (text.loss, text.rtt, unreachable) {
        (Some(_), _, _) => 100,
        (None, Some(_), _) => 5,
        (None, None, true) => 3,
        (None, None, false) => 1,
    });
    if !(1..=10_000).contains(&count) {
        let message = format!("{count} pings are not possible");
        place.value(steps!["tests", index, "count"], message, "write 1 to 10000");
    }
    let duration = |time: Time| DurationText(time.0);
    Some(Test::Ping(Ping {
        from,
        to,
        family: text.family,
        unreachable,
        rtt: text.rtt.map(|rtt| Range { from: duration(rtt.0.from), to: duration(rtt.0.to) }),
        loss: text.loss.map(|loss| Range { from: loss.0.from.0, to: loss.0.to.0 }),
        count,
        within,
    }))
}
