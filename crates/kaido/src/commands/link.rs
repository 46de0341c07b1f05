//! `kaido lab link`: cuts, restores and changes a link of a running lab.

use std::path::Path;
use std::process::ExitCode;

use anyhow::anyhow;
use api::v1;
use lab::{Change, Lab, Occurrence};
use model::topology;
use output::link::{
    AddedTraffic, ChangedDirection, ChangedEmulatedLink, ChangedLink, StoppedTraffic,
};

use crate::cli::LinkChange;
use crate::failure::{Done, Failure};
use crate::output::Output;
use crate::runtime::block_on;

pub(super) fn change(lab: &Lab, link: &str, change: LinkChange, output: &Output) -> Done {
    match change {
        LinkChange::Down { silent: false } => {
            if !lab.has_cable(link)? {
                // Ends without a namespace do not have a carrier to switch off.
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
            if let Some(from) = &from {
                lab.check_sender(link, from)?;
            }
            if lab.emulator(link).is_err() {
                return rate(lab, link, from, &settings, output);
            }
            let changes = settings.iter().map(ToString::to_string).collect();
            let from = from.unwrap_or_default();
            let set = v1::ChangeEmulatedLinkRequest { from, changes, ..Default::default() };
            emulated(lab, link, set, output)
        }
    }
}

/// Adds cross traffic to a link.
pub(super) fn traffic(
    lab: &Lab,
    link: &str,
    from: String,
    settings: &[String],
    output: &Output,
) -> Done {
    let wrong = |text: String| Failure::usage(anyhow!(text));
    let traffic = topology_file::cross_traffic(&settings.join(" ")).map_err(wrong)?;
    let (socket, link) = lab.emulator(link)?;
    lab.check_sender(&link, &from)?;
    let request = v1::AddCrossTrafficRequest {
        link: link.clone(),
        from: from.clone(),
        traffic: Some(traffic.into()),
    };
    block_on(async {
        let mut client = api::connect_emulator(&socket).await?;
        client.add_cross_traffic(request).await.map_err(Failure::of_emulator)
    })??;
    let traffic = traffic.to_string();
    lab.record(Occurrence::TrafficAdded {
        link: link.clone(),
        from: from.clone(),
        traffic: traffic.clone(),
    })?;
    let added = AddedTraffic { link, from, traffic };
    output.print(&added, |AddedTraffic { link, from, traffic }| {
        format!("{link} from {from}: {traffic}")
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Stops the cross traffic of a link.
pub(super) fn stop_traffic(lab: &Lab, link: &str, from: String, output: &Output) -> Done {
    let (socket, link) = lab.emulator(link)?;
    lab.node(&from)?;
    let request = v1::StopCrossTrafficRequest { link: link.clone(), from: from.clone() };
    let stopped = block_on(async {
        let mut client = api::connect_emulator(&socket).await?;
        Ok::<_, Failure>(
            client
                .stop_cross_traffic(request)
                .await
                .map_err(Failure::of_emulator)?
                .into_inner()
                .stopped,
        )
    })??;
    if stopped > 0 {
        // Record it, so that a restarted emulator does not start this traffic again.
        lab.record(Occurrence::TrafficStopped { link: link.clone(), from: from.clone() })?;
    }
    let stopped = StoppedTraffic { link, from, stopped };
    output.print(&stopped, |StoppedTraffic { link, from, stopped }| match stopped {
        0 => format!("{link} from {from} carries no cross traffic"),
        _ => format!("{link} from {from}: cross traffic has ended"),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Changes the devices at both ends of a link.
fn cable(lab: &Lab, link: &str, change: Change, what: &str, output: &Output) -> Done {
    let changed = ChangedLink { link: link.into(), changed: lab.change_link(link, change)? };
    output.print(&changed, |ChangedLink { changed: ends, .. }| match ends.len() {
        0 => format!("{link} is {what}"),
        _ => format!("{link} is {what}, at {}", ends.join(" and ")),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Sets the rate of a kernel link, in both directions; a kernel link has no other setting.
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
            topology::LinkChange::Rate(given) => rate = Some(*given),
            // Fails with an error that names the requirement of this setting.
            _ => drop(lab.emulator(link)?),
        }
    }
    if from.is_some() {
        let link = &lab.segment(link)?.name;
        return Err(Failure::usage(anyhow!(
            "{link} is a kernel link, whose rate applies to both directions: omit --from, or \
             add `engine: true` to the link in the topology file"
        )));
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
    let changed = directions
        .into_iter()
        .map(|one| ChangedDirection { from: one.from, to: one.to, does: one.does })
        .collect();
    output.print(
        &ChangedEmulatedLink { link, changed },
        |ChangedEmulatedLink { link, changed }| {
            let line = |one: &ChangedDirection| {
                let does = if one.does.is_empty() { "nothing" } else { &one.does };
                let to = if one.to.is_empty() { String::new() } else { format!(" to {}", one.to) };
                format!("{link} from {}{to}: {does}", one.from)
            };
            changed.iter().map(line).collect::<Vec<_>>().join("\n")
        },
    )?;
    Ok(ExitCode::SUCCESS)
}

fn ask(
    socket: &Path,
    request: v1::ChangeEmulatedLinkRequest,
) -> Result<Vec<v1::EmulatedDirection>, Failure> {
    let answer = block_on(async {
        let mut client = api::connect_emulator(socket).await?;
        Ok::<_, Failure>(
            client.change_emulated_link(request).await.map_err(Failure::of_emulator)?.into_inner(),
        )
    })??;
    Ok(answer.directions)
}
