//! `kaido lab links`: shows the settings of emulated links, and the outcome of every packet.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use api::v1;
use lab::{Lab, LookupError};
use output::links::{CrossTraffic, Effects, EmulatedDirection, EmulatedNode, Entry, Exit};

use crate::failure::{Done, Failure};
use crate::output::{Output, table};
use crate::runtime::block_on;

/// Queries the links of the emulator that listens on a socket.
pub(super) fn get(socket: &Path) -> Result<v1::GetEmulatedLinksResponse, Failure> {
    block_on(async {
        let mut client = api::connect_emulator(socket).await?;
        let asked = v1::GetEmulatedLinksRequest {};
        Ok::<_, Failure>(
            client.get_emulated_links(asked).await.map_err(Failure::of_emulator)?.into_inner(),
        )
    })?
}

/// Prints the settings and counters of the emulated links.
pub(super) fn list(lab: &Lab, output: &Output) -> Done {
    let answer = match lab.emulator_socket() {
        Ok(socket) => get(&socket)?,
        Err(lab::Error::Lookup(LookupError::NoEmulator(_))) => Default::default(),
        Err(why) => return Err(why.into()),
    };
    output.print(&directions(&answer), |_| match answer.directions.is_empty() {
        true => "no emulated links: `kaido lab top` shows kernel links".to_owned(),
        false => text(&answer),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the edge with this number, if the direction has one.
pub(super) fn edge(
    answer: &v1::GetEmulatedLinksResponse,
    number: Option<u32>,
) -> Option<&v1::EmulatedEdge> {
    answer.edges.get(number? as usize)
}

/// Returns the losses of a direction outside of the link itself: those before it, and those after
/// it.
pub(super) fn lost_at_ends(
    answer: &v1::GetEmulatedLinksResponse,
    one: &v1::EmulatedDirection,
) -> [(&'static str, u64); 5] {
    let entry = edge(answer, one.entry);
    let exit = edge(answer, one.exit);
    [
        ("overflowed", entry.map_or(0, |edge| edge.overflowed)),
        ("misunderstood", entry.map_or(0, |edge| edge.misunderstood)),
        ("filtered", one.filtered),
        ("overdue", one.cross_overdue),
        ("refused", exit.map_or(0, |edge| edge.refused)),
    ]
}

fn text(answer: &v1::GetEmulatedLinksResponse) -> String {
    let row = |one: &v1::EmulatedDirection| {
        let on_link = one.dropped.iter().map(|drops| (drops.cause.as_str(), drops.packets));
        let dropped: Vec<_> = on_link
            .chain(lost_at_ends(answer, one))
            .filter(|(_, packets)| *packets > 0)
            .map(|(cause, packets)| format!("{cause} {packets}"))
            .collect();
        vec![
            one.link.clone(),
            one.from.clone(),
            one.received.to_string(),
            one.arrived.to_string(),
            one.inside.to_string(),
            if dropped.is_empty() { "none".into() } else { dropped.join(", ") },
            one.does.clone(),
        ]
    };
    let header = ["LINK", "FROM", "IN", "OUT", "IN-FLIGHT", "DROPPED", "SETTINGS"];
    let mut text = table(&header, answer.directions.iter().map(row));
    let rows: Vec<_> = answer.nodes.iter().filter_map(stops).collect();
    if !rows.is_empty() {
        let header = ["NODE", "IN", "ORIGINATED", "OUT", "DROPPED"];
        text.push_str(&format!("\n\n{}", table(&header, rows)));
    }
    text
}

/// Formats a virtual router or switch that stopped packets which were not addressed to it.
fn stops(node: &v1::EmulatedNode) -> Option<Vec<String>> {
    let others = node.stopped.iter().filter(|one| one.packets > 0 && one.cause != "taken");
    let stopped: Vec<_> = others.map(|one| format!("{} {}", one.cause, one.packets)).collect();
    let numbers = [node.received, node.made, node.sent].map(|number| number.to_string());
    let row = std::iter::once(node.name.clone()).chain(numbers);
    (!stopped.is_empty()).then(|| row.chain([stopped.join(", ")]).collect())
}

fn node(node: &v1::EmulatedNode) -> EmulatedNode {
    EmulatedNode {
        received: node.received,
        made: node.made,
        sent: node.sent,
        waiting: node.waiting,
        stopped: by_cause(&node.stopped),
    }
}

fn by_cause(drops: &[v1::EmulatedDrops]) -> BTreeMap<String, u64> {
    drops.iter().map(|one| (one.cause.clone(), one.packets)).collect()
}

fn effects(one: &v1::EmulatedDirection) -> Effects {
    Effects::new(|name| {
        let found = one.effects.iter().find(|effect| effect.effect == name);
        found.map_or(0, |effect| effect.packets)
    })
}

fn directions(answer: &v1::GetEmulatedLinksResponse) -> Vec<EmulatedDirection> {
    let entry = |edge: &v1::EmulatedEdge| Entry {
        received: edge.received,
        misunderstood: edge.misunderstood,
        overflowed: edge.overflowed,
    };
    let exit = |edge: &v1::EmulatedEdge| Exit { sent: edge.sent, refused: edge.refused };
    let find = |name: &str, switch: bool| {
        answer.nodes.iter().find(|node| node.name == name && node.switch == switch)
    };
    let direction = |one: &v1::EmulatedDirection| EmulatedDirection {
        link: one.link.clone(),
        from: one.from.clone(),
        to: one.to.clone(),
        does: one.does.clone(),
        received: one.received,
        arrived: one.arrived,
        arrived_bytes: one.arrived_bytes,
        inside: one.inside,
        waiting: one.waiting,
        waiting_bytes: one.waiting_bytes,
        filtered: one.filtered,
        marked: one.marked,
        cross: CrossTraffic {
            sent: one.cross_sent,
            sent_bytes: one.cross_sent_bytes,
            arrived: one.cross_arrived,
            arrived_bytes: one.cross_arrived_bytes,
            overdue: one.cross_overdue,
        },
        dropped: by_cause(&one.dropped),
        effects: effects(one),
        entry: edge(answer, one.entry).map(entry),
        exit: edge(answer, one.exit).map(exit),
        router: find(&one.from, false).map(node),
        switch: find(&one.link, true).map(node),
    };
    answer.directions.iter().map(direction).collect()
}

#[cfg(test)]
mod tests {
    use emulator::Effect;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_effect_is_a_member() {
        let effects = Effect::ALL.iter().zip(1..);
        let effects = effects
            .map(|(effect, packets)| v1::EmulatedEffect { effect: effect.name().into(), packets });
        let one = v1::EmulatedDirection { effects: effects.collect(), ..Default::default() };
        let found = json!(super::effects(&one));
        assert_eq!(found.as_object().map(|all| all.len()), Some(Effect::ALL.len()));
        for (effect, packets) in Effect::ALL.iter().zip(1..) {
            assert_eq!(found[effect.name()], json!(packets), "{found}");
        }
    }

    #[test]
    fn losses_before_and_after_a_link_are_separate_from_its_own() {
        let one = v1::EmulatedDirection {
            link: "a-b".into(),
            from: "a".into(),
            received: 7,
            filtered: 3,
            dropped: vec![v1::EmulatedDrops { cause: "loss".into(), packets: 2 }],
            entry: Some(0),
            exit: Some(1),
            ..Default::default()
        };
        let virtual_router =
            v1::EmulatedDirection { link: "b-x".into(), from: "b".into(), ..Default::default() };
        let answer = v1::GetEmulatedLinksResponse {
            directions: vec![one, virtual_router],
            edges: vec![
                v1::EmulatedEdge { received: 10, overflowed: 4, refused: 9, ..Default::default() },
                v1::EmulatedEdge { sent: 5, refused: 1, misunderstood: 8, ..Default::default() },
            ],
            nodes: vec![v1::EmulatedNode {
                name: "b".into(),
                received: 4,
                stopped: vec![
                    v1::EmulatedDrops { cause: "taken".into(), packets: 1 },
                    v1::EmulatedDrops { cause: "no-route".into(), packets: 3 },
                ],
                ..Default::default()
            }],
            at_ns: 0,
        };
        let text = text(&answer);
        assert!(text.contains("loss 2, overflowed 4, filtered 3, refused 1"), "{text}");
        assert!(
            text.contains("none") && text.lines().last().unwrap().ends_with("no-route 3"),
            "{text}"
        );
        let found = json!(directions(&answer));
        assert_eq!(
            found[0]["entry"],
            json!({ "received": 10, "overflowed": 4, "misunderstood": 0 })
        );
        assert_eq!(found[0]["exit"], json!({ "sent": 5, "refused": 1 }));
        assert_eq!(found[0]["dropped"], json!({ "loss": 2 }));
        assert_eq!((&found[1]["entry"], &found[1]["exit"]), (&Value::Null, &Value::Null));
        assert_eq!(found[1]["router"]["stopped"], json!({ "taken": 1, "no-route": 3 }));
        assert_eq!((&found[0]["router"], &found[1]["switch"]), (&Value::Null, &Value::Null));
    }
}
