//! The file's `tests:`: each is a ping, a throughput or a route.

use std::time::Duration;

use super::applications::node;
use super::file::{File, TestText};
use super::types::{Test, TestDuration, Topology};
use super::units::{Range, Time};
use crate::document::{Place, steps};

/// How soon a test must hold when the file does not say.
const WITHIN: Duration = Duration::from_secs(30);

/// The tests; those that make no sense are reported.
pub(super) fn tests(place: &mut Place<'_>, file: &File, topology: &Topology) -> Vec<Test> {
    let texts = file.tests.iter().enumerate();
    texts.filter_map(|(index, text)| test(place, index, text, topology)).collect()
}

fn test(place: &mut Place<'_>, index: usize, text: &TestText, topology: &Topology) -> Option<Test> {
    let allowed: &[&str] = match (&text.ping, text.throughput, text.route) {
        (Some(_), None, None) => &["from", "ping", "rtt"],
        (None, Some(_), None) => &["from", "to", "throughput"],
        (None, None, Some(_)) => &["on", "route", "present"],
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
        ("to", text.to.is_some()),
        ("throughput", text.throughput.is_some()),
        ("on", text.on.is_some()),
        ("route", text.route.is_some()),
        ("present", text.present.is_some()),
    ];
    for (key, _) in given.into_iter().filter(|(key, given)| *given && !allowed.contains(key)) {
        let message = format!("`{key}` does not go with this test");
        let help = format!("allowed here: {}, within", allowed.join(", "));
        place.key(steps!["tests", index, key], message, &help);
    }
    let mut named = |key: &str, name: &Option<String>| match name {
        Some(name) => {
            node(place, steps!["tests", index, key], name, topology, false);
            Some(name.clone())
        }
        None => {
            let message = format!("`{key}` is missing");
            place.value(steps!["tests", index], message, &format!("add `{key}:` with a node"));
            None
        }
    };
    let duration = |time: Time| TestDuration(time.0);
    let within = TestDuration(text.within.map_or(WITHIN, |within| within.0));
    if text.ping.is_some() {
        let (from, to) = (named("from", &text.from), named("ping", &text.ping));
        let rtt = text.rtt.map(|rtt| Range { from: duration(rtt.0.from), to: duration(rtt.0.to) });
        return Some(Test::Ping { from: from?, to: to?, rtt, within });
    }
    if let Some(throughput) = text.throughput {
        let (from, to) = (named("from", &text.from), named("to", &text.to));
        return Some(Test::Throughput { from: from?, to: to?, throughput: throughput.0, within });
    }
    let on = named("on", &text.on)?;
    let present = text.present.unwrap_or(true);
    Some(Test::Route { on, route: text.route?.0, present, within })
}
