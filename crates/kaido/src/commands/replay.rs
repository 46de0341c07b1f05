//! `kaido lab replay`: replays the packets of a captured link.

use std::path::Path;
use std::process::ExitCode;

use ::capture::Captured;
use anyhow::{Context, anyhow};
use emulator::{Deed, Difference, Effect, Event, Nanos, Outcome, Packet, Position, Report};
use output::links::Effects;
use output::replay::{ReplayDifference, ReplayedLink};

use super::capture::{CHANGED, CROSS, IN, MISSED, Origin, REFUSED};
use super::topology_file::{TopologyFile, read_recorded};
use crate::failure::{Done, Failure};
use crate::output::Output;

/// Maximum size of a capture, in bytes: it is held in memory together with its packets.
const LARGEST_CAPTURE: u64 = 1 << 30;

/// Maximum number of packets of a capture: each one, however short, takes 2 KiB and more.
const MOST_PACKETS: usize = 1_000_000;

/// Maximum time between the first packet and the last one: a link with a schedule takes a step of
/// the replay for each entry that has passed.
const LONGEST: Nanos = 24 * 3600 * 1_000_000_000;

pub(super) fn run(file: &Path, capture: &Path, output: &Output) -> Done {
    let TopologyFile { topology, recordings, .. } = read_recorded(file, output)?;
    let name = capture.display().to_string();
    let wrong = |why: &str| Failure::usage(anyhow!("{name}: {why}"));
    let bytes = crate::input::read_bytes(capture, "capture", LARGEST_CAPTURE)?;
    let contents = ::capture::read(&bytes).with_context(|| name.clone()).map_err(Failure::usage)?;
    drop(bytes);
    if contents.packets.len() > MOST_PACKETS {
        return Err(wrong(&format!("more than {MOST_PACKETS} packets")));
    }
    let first = contents.interfaces.first().map(|interface| interface.comment.as_str());
    let origin: Origin = serde_json::from_str(first.unwrap_or_default()).map_err(|_| {
        wrong("it does not say where its link was: capture with `kaido lab capture --link`, and packets")
    })?;
    let (events, cut) = events(contents.packets, &origin).map_err(|why| wrong(&why))?;
    let plan = emulator_daemon::Plan::without_routes(&topology, &recordings);
    let is_meant =
        |one: &&emulator_daemon::Direction| one.link == origin.link && one.from == origin.from;
    let Some(direction) = plan.directions.iter().find(is_meant) else {
        let what =
            format!("has no emulated link `{}` on which `{}` sends", origin.link, origin.from);
        return Err(Failure::usage(anyhow!("{} {what}", file.display())));
    };
    let report = plan.network.replay(direction.id, position(&origin)).run(&events);
    let does = direction.does();
    let start = events.first().map_or(0, |event| event.at);
    let effect = |name: &str| {
        let named = Effect::ALL.into_iter().find(|effect| effect.name() == name);
        named.map_or(0, |effect| report.counts.effect(effect))
    };
    let said = ReplayedLink {
        link: origin.link.clone(),
        from: origin.from.clone(),
        first: origin.number,
        entered: report.came,
        left: report.left,
        dropped: report.counts.all_dropped(),
        effects: Effects::new(effect),
        inside: report.inside,
        identical: report.difference.is_none() && cut.is_none(),
        difference: report.difference.map(|one| difference_output(one, start)),
        ends_early: cut,
        did: origin.does.clone(),
        does: does.clone(),
    };
    output.print(&said, |_| as_text(&report, &origin, &does, cut, start))?;
    let is_same = report.difference.is_none() && cut.is_none();
    Ok(if is_same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the events up to the first gap, after which they no longer follow from earlier ones, and
/// the reason of the gap.
fn events(
    packets: Vec<Captured>,
    origin: &Origin,
) -> Result<(Vec<Event>, Option<&'static str>), String> {
    let mut events = Vec::with_capacity(packets.len());
    let offset = i128::from(origin.clock_offset_s) * 1_000_000_000;
    for (number, packet) in (1..).zip(packets) {
        let is = |word: &str| packet.comment.split(", ").any(|said| said == word);
        if let Some(gap) = [CHANGED, MISSED].into_iter().find(|gap| is(gap)) {
            return Ok((events, Some(gap)));
        }
        if packet.bytes.len() != packet.length as usize {
            return Err(format!(
                "packet {number} is truncated: only whole packets can be replayed"
            ));
        }
        let at = Nanos::try_from(i128::from(packet.at_ns) - offset)
            .map_err(|_| format!("packet {number} is earlier than its clock"))?;
        if events.first().is_some_and(|first: &Event| at.saturating_sub(first.at) > LONGEST) {
            return Err(format!(
                "packet {number} is more than 24 hours after the first one: split the capture"
            ));
        }
        let deed = match packet.interface {
            number if number != IN as usize => Deed::Left,
            _ if is(REFUSED) => Deed::Refused,
            _ => Deed::Came,
        };
        let is_cross = is(CROSS);
        let packet = Packet::new(&packet.bytes)
            .map_err(|_| format!("packet {number} is shorter than an Ethernet header"))?;
        events.push(Event { at, deed, packet, is_cross });
    }
    Ok((events, None))
}

fn position(origin: &Origin) -> Position {
    Position {
        number: origin.number,
        cross_number: origin.cross_number,
        is_bad: origin.is_bad,
        cross_is_bad: origin.cross_is_bad,
        origin: origin.origin_ns,
        last: origin.last_ns,
        opportunity: origin.opportunity,
        opportunity_used: origin.opportunity_used,
    }
}

fn as_text(
    report: &Report,
    origin: &Origin,
    does: &str,
    cut: Option<&str>,
    start: Nanos,
) -> String {
    let Report { came, left, counts, inside, difference } = report;
    let effects =
        Effect::ALL.map(|one| format!("{} {}", counts.effect(one), one.name())).join(", ");
    let dropped = counts.all_dropped();
    let Origin { link, from, number, does: did, .. } = origin;
    let mut lines = vec![format!(
        "{link} from {from}, from packet {number} on: {came} entered, {left} left; {dropped} \
         dropped, {effects}, {inside} inside at the end"
    )];
    if did != does {
        lines.push(format!("it did `{did}` then, and does `{does}` in the file"));
    }
    lines.push(match difference {
        None => "identical".into(),
        Some(difference) => format!("different: {}", describe(*difference, start)),
    });
    lines.extend(cut.map(|why| format!("the capture can be replayed that far: {why}")));
    lines.join("\n")
}

fn seconds(at: Nanos, start: Nanos) -> f64 {
    (i128::from(at) - i128::from(start)) as f64 / 1e9
}

/// Formats an outcome: `packet 3, which entered at 0.003000000 s, leaves at 0.023000000 s`.
fn leaves(outcome: Outcome, start: Nanos) -> String {
    let Outcome { at, number, came, is_wrong } = outcome;
    let (came, at) = (seconds(came, start), seconds(at, start));
    let wrong = if is_wrong { " with a wrong bit" } else { "" };
    format!("packet {number}, which entered at {came:.9} s, leaves at {at:.9} s{wrong}")
}

fn describe(difference: Difference, start: Nanos) -> String {
    let at = |at| format!("{:.9} s", seconds(at, start));
    match difference {
        Difference::Missing(replayed) => {
            format!("{}; in the capture nothing more leaves", leaves(replayed, start))
        }
        Difference::OtherTime { replayed, captured } => {
            format!("{}; in the capture at {}", leaves(replayed, start), at(captured))
        }
        Difference::OtherPacket { replayed, captured } => {
            let other = "; in the capture the next to leave has other bytes, at";
            format!("{}{other} {}", leaves(replayed, start), at(captured))
        }
        Difference::More { captured } => {
            format!("in the capture one more leaves, at {}", at(captured))
        }
    }
}

fn difference_output(difference: Difference, start: Nanos) -> ReplayDifference {
    let (replayed, captured) = match difference {
        Difference::Missing(replayed) => (Some(replayed), None),
        Difference::OtherTime { replayed, captured }
        | Difference::OtherPacket { replayed, captured } => (Some(replayed), Some(captured)),
        Difference::More { captured } => (None, Some(captured)),
    };
    ReplayDifference {
        says: describe(difference, start),
        packet: replayed.map(|one| one.number),
        entered_ns: replayed.map(|one| one.came),
        leaves_ns: replayed.map(|one| one.at),
        corrupted: replayed.map(|one| one.is_wrong),
        captured_leaves_ns: captured,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_between_packets_is_limited() {
        let origin: Origin = serde_json::from_value(serde_json::json!({
            "link": "a-b", "from": "a", "does": "", "clock_offset_s": 0, "number": 0,
            "cross_number": 0, "is_bad": false, "cross_is_bad": false, "origin_ns": 0,
            "last_ns": 0, "opportunity": 0, "opportunity_used": 0,
        }))
        .unwrap();
        let packet = |at_ns| Captured {
            interface: IN as usize,
            at_ns,
            bytes: vec![0; 60],
            length: 60,
            comment: String::new(),
        };
        let all =
            |last| events(vec![packet(1000), packet(last)], &origin).map(|(all, _)| all.len());
        assert_eq!(all(1000 + LONGEST), Ok(2));
        let why = all(1001 + LONGEST).unwrap_err();
        assert!(why.contains("packet 2 is more than 24 hours after"), "{why}");
    }
}
