//! `kaido lab link`: cutting, mending and changing a link of a running lab.

use std::path::Path;
use std::process::ExitCode;

use anyhow::anyhow;
use api::v1;
use lab::{Change, Lab};
use model::topology;
use serde_json::{Value, json};

use crate::cli::LinkChange;
use crate::failure::{Done, Failure};
use crate::output::{Output, table};
use crate::runtime::block_on;

pub(super) fn change(lab: &Lab, link: &str, change: LinkChange, output: &Output) -> Done {
    match change {
        LinkChange::Down { silent: false } => {
            if !lab.has_cable(link)? {
                // An end without a namespace has no carrier to lose.
                let (socket, link) = lab.emulator(link)?;
                let down = Some(true);
                ask(&socket, v1::ChangeEmulatedLinkRequest { link, down, ..Default::default() })?;
            }
            cable(lab, link, Change::Down, "down", output)
        }
        LinkChange::Down { silent: true } => {
            let down = v1::ChangeEmulatedLinkRequest { down: Some(true), ..Default::default() };
            emulated(lab, link, down, output)
        }
        LinkChange::Up => {
            if let Ok((socket, link)) = lab.emulator(link) {
                let down = Some(false);
                ask(&socket, v1::ChangeEmulatedLinkRequest { link, down, ..Default::default() })?;
            }
            cable(lab, link, Change::Up, "up", output)
        }
        LinkChange::Set { from, settings } => {
            if lab.emulator(link).is_err() {
                return rate(lab, link, from, &settings, output);
            }
            let changes = settings.iter().map(ToString::to_string).collect();
            let from = from.unwrap_or_default();
            if !from.is_empty() {
                lab.node(&from)?;
            }
            let set = v1::ChangeEmulatedLinkRequest { from, changes, ..Default::default() };
            emulated(lab, link, set, output)
        }
    }
}

/// What the emulated links do, and what they have done.
pub(super) fn list(lab: &Lab, output: &Output) -> Done {
    let socket = lab.emulator_socket()?;
    let answer = block_on(async {
        let mut client = api::connect_emulator(&socket).await?;
        let asked = v1::GetEmulatedLinksRequest {};
        Ok::<_, Failure>(client.get_emulated_links(asked).await?.into_inner())
    })??;
    let as_json = |one: &v1::EmulatedDirection| {
        let dropped: serde_json::Map<_, _> =
            one.dropped.iter().map(|d| (d.cause.clone(), d.packets.into())).collect();
        json!({
            "link": one.link,
            "from": one.from,
            "to": one.to,
            "does": one.does,
            "received": one.received,
            "copied": one.copied,
            "arrived": one.arrived,
            "arrived_bytes": one.arrived_bytes,
            "corrupted": one.corrupted,
            "overtook": one.overtook,
            "inside": one.inside,
            "waiting": one.waiting,
            "waiting_bytes": one.waiting_bytes,
            "filtered": one.filtered,
            "marked": one.marked,
            "cross": {
                "sent": one.cross_sent,
                "sent_bytes": one.cross_sent_bytes,
                "arrived": one.cross_arrived,
                "arrived_bytes": one.cross_arrived_bytes,
            },
            "dropped": dropped,
        })
    };
    output.print(&answer.directions.iter().map(as_json).collect::<Value>(), |_| {
        let row = |one: &v1::EmulatedDirection| {
            let dropped: Vec<_> = one
                .dropped
                .iter()
                .filter(|d| d.packets > 0)
                .map(|d| format!("{} {}", d.cause, d.packets))
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
        let header = ["LINK", "FROM", "IN", "OUT", "INSIDE", "DROPPED", "DOES"];
        table(&header, answer.directions.iter().map(row))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Lets a link carry packets of others as well.
pub(super) fn traffic(
    lab: &Lab,
    link: &str,
    from: String,
    settings: &[String],
    output: &Output,
) -> Done {
    let wrong = |text: String| Failure::usage(anyhow!(text));
    let traffic: topology::Traffic = settings.join(" ").parse().map_err(wrong)?;
    let (socket, link) = lab.emulator(link)?;
    lab.node(&from)?;
    let request = v1::AddCrossTrafficRequest {
        link: link.clone(),
        from: from.clone(),
        traffic: Some(traffic.into()),
    };
    block_on(async {
        let mut client = api::connect_emulator(&socket).await?;
        Ok::<_, Failure>(client.add_cross_traffic(request).await?)
    })??;
    let words = traffic.to_string();
    output.print(&json!({ "link": link, "from": from, "traffic": words }), |_| {
        format!("{link} from {from}: {words}")
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Changes the devices at a link's ends.
fn cable(lab: &Lab, link: &str, change: Change, what: &str, output: &Output) -> Done {
    let ends = lab.change_link(link, change)?;
    output.print(&json!({ "link": link, "changed": ends }), |_| match ends.len() {
        0 => format!("{link} is {what}"),
        _ => format!("{link} is {what}, at {}", ends.join(" and ")),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A link of the kernel's own has a rate, in both directions, and nothing else.
fn rate(
    lab: &Lab,
    link: &str,
    from: Option<String>,
    settings: &[topology::LinkChange],
    output: &Output,
) -> Done {
    let mut rate = None;
    for setting in settings {
        match setting {
            topology::LinkChange::Rate(bandwidth) if from.is_none() => rate = Some(*bandwidth),
            // Says what it needs.
            _ => drop(lab.emulator(link)?),
        }
    }
    let rate = rate.ok_or_else(|| Failure::usage(anyhow!("there is nothing to change")))?;
    cable(lab, link, Change::Rate(rate), "changed", output)
}

fn emulated(
    lab: &Lab,
    link: &str,
    request: v1::ChangeEmulatedLinkRequest,
    output: &Output,
) -> Done {
    let (socket, link) = lab.emulator(link)?;
    let directions = ask(&socket, v1::ChangeEmulatedLinkRequest { link: link.clone(), ..request })?;
    let changed: Value = directions
        .iter()
        .map(|one| json!({ "from": one.from, "to": one.to, "does": one.does }))
        .collect();
    output.print(&json!({ "link": link, "changed": changed }), |_| {
        let line = |one: &v1::EmulatedDirection| {
            let does = if one.does.is_empty() { "nothing" } else { &one.does };
            let to = if one.to.is_empty() { String::new() } else { format!(" to {}", one.to) };
            format!("{link} from {}{to}: {does}", one.from)
        };
        directions.iter().map(line).collect::<Vec<_>>().join("\n")
    })?;
    Ok(ExitCode::SUCCESS)
}

fn ask(
    socket: &Path,
    request: v1::ChangeEmulatedLinkRequest,
) -> Result<Vec<v1::EmulatedDirection>, Failure> {
    let answer = block_on(async {
        let mut client = api::connect_emulator(socket).await?;
        Ok::<_, Failure>(client.change_emulated_link(request).await?.into_inner())
    })??;
    Ok(answer.directions)
}
