//! `kaido app`: the user's side of the controller's interface.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

use api::v1::{self, State};
use lab::Labs;
use model::{Application, Bandwidth, Class};
use output::app::{
    Alternative, AlternativeLimit, ApplicationState, ApplicationStatus, Decision, Explanation,
    Limit, Match, RemovedApplication,
};

use crate::cli::{AddOptions, AppCommand, WhichController};
use crate::failure::{Done, Failure};
use crate::output::{Output, table};
use crate::runtime::{block_on, nobody_watches};

pub(crate) fn run(command: AppCommand, output: &Output) -> Done {
    match command {
        AppCommand::Add(options) => add(options, output),
        AppCommand::Ls { which } => ls(&which, output),
        AppCommand::Show { which, name } => show(&which, name, output),
        AppCommand::Why { which, name } => why(&which, name, output),
        AppCommand::Rm { which, name } => {
            let socket = socket(&which)?;
            let request = v1::RemoveApplicationRequest { name: name.clone() };
            block_on(async {
                Ok(api::connect(&socket).await?.remove_application(request).await?)
            })?
            .map_err(|failure: Failure| failure)?;
            output.print(&RemovedApplication { removed: name }, |gone| {
                format!("{} is removed", gone.removed)
            })?;
            Ok(ExitCode::SUCCESS)
        }
        AppCommand::Watch { which } => watch(&which, output),
    }
}

/// Returns the socket of the selected controller.
pub(crate) fn socket(which: &WhichController) -> Result<PathBuf, Failure> {
    match &which.controller {
        Some(socket) => Ok(socket.clone()),
        None => {
            let lab = Labs::of_environment()?.choose(which.lab.as_deref())?;
            if !lab.topology().controller {
                return Err(Failure::usage(anyhow::anyhow!(
                    "the lab {} has no controller: put `controller: true` into its file",
                    lab.name()
                )));
            }
            let socket = lab.controller_socket();
            // Other errors are reported by the caller's connection attempt.
            if lab::is_deaf(&socket) {
                return Err(Failure::failed(anyhow::anyhow!(
                    "no controller answers in the lab {}: it has ended, and `kaido lab start controller` \
                     starts it again",
                    lab.name()
                )));
            }
            Ok(socket)
        }
    }
}

fn add(options: AddOptions, output: &Output) -> Done {
    let socket = socket(&options.which)?;
    let dry_run = options.dry_run;
    let application = Application {
        name: options.name,
        from: options.from,
        to: options.to,
        protocol: options.protocol,
        src_ports: options.source_ports,
        dst_ports: options.ports,
        dscp: options.dscp,
        demand: options.demand,
        class: options.class,
        functions: options.functions,
    };
    application.validate().map_err(Failure::usage)?;
    let request = v1::AddApplicationRequest { application: Some((&application).into()), dry_run };
    let answer: Result<_, Failure> =
        block_on(async { Ok(api::connect(&socket).await?.add_application(request).await?) })?;
    let status = answer?.into_inner().status.unwrap_or_default();
    output.print(&status_output(&status), |_| {
        let what = if dry_run { "would be" } else { "is" };
        format!("{} {what} {}", application.name, state_in_words(&status))
    })?;
    Ok(ExitCode::SUCCESS)
}

fn ls(which: &WhichController, output: &Output) -> Done {
    let socket = socket(which)?;
    let answer: Result<_, Failure> = block_on(async {
        Ok(api::connect(&socket).await?.list_applications(v1::ListApplicationsRequest {}).await?)
    })?;
    let list = answer?.into_inner().applications;
    let statuses: Vec<_> = list.iter().map(status_output).collect();
    output.print(&statuses, |_| {
        if list.is_empty() {
            return "no applications".into();
        }
        let row = |status: &v1::ApplicationStatus| {
            let app = status.application.clone().unwrap_or_default();
            vec![
                app.name,
                format!("{} -> {}", app.from, app.to),
                rate(app.demand_bps),
                rate(status.rate_bps),
                state_in_words(status),
            ]
        };
        table(&["APPLICATION", "FROM -> TO", "DEMAND", "SENDS", "STATE"], list.iter().map(row))
    })?;
    Ok(ExitCode::SUCCESS)
}

fn explain(
    which: &WhichController,
    name: String,
) -> Result<v1::ExplainApplicationResponse, Failure> {
    let socket = socket(which)?;
    let request = v1::ExplainApplicationRequest { name };
    let answer: Result<_, Failure> =
        block_on(async { Ok(api::connect(&socket).await?.explain_application(request).await?) })?;
    Ok(answer?.into_inner())
}

fn show(which: &WhichController, name: String, output: &Output) -> Done {
    let status = explain(which, name)?.status.unwrap_or_default();
    output.print(&status_output(&status), |_| show_text(&status))?;
    Ok(ExitCode::SUCCESS)
}

fn show_text(status: &v1::ApplicationStatus) -> String {
    let app = status.application.clone().unwrap_or_default();
    let matched = app.r#match.unwrap_or_default();
    let ports = |range: v1::PortRange| format!("{}-{}", range.first, range.last);
    let mut rows = vec![
        ("application", app.name),
        ("from", app.from),
        ("to", app.to),
        ("class", class(app.class).to_string()),
        ("demand", rate(app.demand_bps)),
    ];
    if let Some(protocol) = matched.protocol {
        rows.push(("protocol", protocol_name(protocol)));
    }
    if let Some(range) = matched.ports {
        rows.push(("ports", ports(range)));
    }
    if let Some(range) = matched.source_ports {
        rows.push(("source ports", ports(range)));
    }
    if let Some(dscp) = matched.dscp {
        rows.push(("dscp", dscp.to_string()));
    }
    if !app.functions.is_empty() {
        rows.push(("functions", app.functions.join(", ")));
    }
    rows.extend([
        ("sends", rate(status.rate_bps)),
        ("state", state_in_words(status)),
        ("SIDs, IPv4", sids(status, &status.ipv4_segments)),
        ("SIDs, IPv6", sids(status, &status.ipv6_segments)),
        ("moves", status.moves.to_string()),
    ]);
    if !status.error.is_empty() {
        rows.push(("error", status.error.clone()));
    }
    let line = |(key, value): (&str, String)| format!("{key:<12}  {value}\n");
    rows.into_iter().map(line).collect()
}

fn why(which: &WhichController, name: String, output: &Output) -> Done {
    let found = explain(which, name)?;
    let status = found.status.clone().unwrap_or_default();
    let explanation = Explanation {
        application: status_output(&status),
        alternatives: found.alternatives.iter().map(alternative_output).collect(),
        decision: found.decision.as_ref().map(decision_output),
    };
    output.print(&explanation, |_| why_text(&status, &found))?;
    Ok(ExitCode::SUCCESS)
}

fn why_text(status: &v1::ApplicationStatus, found: &v1::ExplainApplicationResponse) -> String {
    let app = status.application.clone().unwrap_or_default();
    let mut text = format!("{} is {}\n", app.name, state_in_words(status));
    text += &format!("  SIDs for IPv4: {}\n", sids(status, &status.ipv4_segments));
    text += &format!("  SIDs for IPv6: {}\n\n", sids(status, &status.ipv6_segments));
    let row = |alternative: &v1::Alternative| {
        let mark = if alternative.chosen { "*" } else { "" };
        vec![
            mark.into(),
            alternative.path.join(" "),
            limit(alternative),
            verdict(alternative, app.demand_bps),
        ]
    };
    let rows: Vec<_> = found.alternatives.iter().map(row).collect();
    text += &match rows.is_empty() {
        true => format!("no path leads from {} to {}", app.from, app.to),
        false => table(&["", "PATH", "NARROWEST LINK", "VERDICT"], rows),
    };
    text.push('\n');
    if let Some(decision) = &found.decision {
        text += &format!("\nlast decision: {}\n{}", decision.cause, stages(decision));
    }
    text
}

fn limit(alternative: &v1::Alternative) -> String {
    if alternative.limit.is_empty() {
        return "none is limited".into();
    }
    let congested = if alternative.limit_congested { ", congested" } else { "" };
    format!(
        "{}: {} of {} free{congested}",
        alternative.limit,
        Bandwidth::from_bps(alternative.limit_free_bps),
        Bandwidth::from_bps(alternative.limit_capacity_bps)
    )
}

fn verdict(alternative: &v1::Alternative, demand: u64) -> String {
    if !alternative.not_encodable.is_empty() {
        return format!("rejected: {}", alternative.not_encodable);
    }
    match (alternative.chosen, alternative.covers) {
        (true, true) => "chosen".into(),
        (true, false) => {
            format!("chosen: no path has the free bandwidth for demand {}", rate(demand))
        }
        (false, true) => format!("would do, {} hops", alternative.path.len().saturating_sub(1)),
        (false, false) => format!("rejected: demand {} exceeds free bandwidth", rate(demand)),
    }
}

/// Formats the duration of each stage, counted from the previous one.
fn stages(decision: &v1::Decision) -> String {
    let mut text = String::new();
    let mut before = 0;
    for (name, at) in [
        ("sampled", decision.sampled_at_ns),
        ("received", decision.received_at_ns),
        ("decided", decision.decided_at_ns),
        ("sent", decision.sent_at_ns),
        ("installed", decision.installed_at_ns),
    ] {
        if at == 0 {
            continue;
        }
        let since = at.saturating_sub(if before == 0 { at } else { before });
        text += &format!("  {name:<10} +{:.3} ms\n", since as f64 / 1e6);
        before = at;
    }
    text
}

fn watch(which: &WhichController, output: &Output) -> Done {
    let socket = socket(which)?;
    let watching = async {
        let mut client = api::connect(&socket).await?;
        let mut decisions =
            client.watch_decisions(v1::WatchDecisionsRequest {}).await?.into_inner();
        while let Some(decision) = decisions.message().await? {
            output.print(&decision_output(&decision), |_| {
                let path = |nodes: &[String]| {
                    if nodes.is_empty() { "nowhere".into() } else { nodes.join(" ") }
                };
                format!(
                    "{}: {} -> {} ({})\n{}",
                    decision.application,
                    path(&decision.before),
                    path(&decision.after),
                    decision.cause,
                    stages(&decision)
                )
            })?;
        }
        Ok::<(), Failure>(())
    };
    block_on(async {
        tokio::select! {
            ended = watching => ended,
            () = nobody_watches() => Ok(()),
        }
    })??;
    Ok(ExitCode::SUCCESS)
}

/// Formats a rate for people; a dash if it is 0.
pub(crate) fn rate(bps: u64) -> String {
    if bps == 0 { "-".into() } else { Bandwidth::from_bps(bps).to_string() }
}

fn sids(status: &v1::ApplicationStatus, list: &[String]) -> String {
    let passes_functions = status.application.iter().any(|app| !app.functions.is_empty());
    match (status.state(), list) {
        (State::Admitted | State::Degraded, []) => "none, the IGP goes this way".into(),
        (State::Unspecified | State::Pending, []) => "none yet".into(),
        (State::Unreachable, []) if passes_functions => "none, its packets are dropped".into(),
        (State::Unreachable, []) => "none, its packets are left to the IGP".into(),
        (State::Unreachable, list) => {
            format!("{}, as long as there is no other path", list.join(", "))
        }
        (_, list) => list.join(", "),
    }
}

fn application_state(state: State) -> ApplicationState {
    match state {
        State::Unspecified | State::Pending => ApplicationState::Pending,
        State::Admitted => ApplicationState::Admitted,
        State::Degraded => ApplicationState::Degraded,
        State::Unreachable => ApplicationState::Unreachable,
    }
}

/// Formats the nodes of the path, with the functions that the packets pass there: `h1 r1 r2[fw] r3
/// h2`.
fn path(status: &v1::ApplicationStatus) -> String {
    let functions = status.application.iter().flat_map(|application| &application.functions);
    let at: HashMap<u32, &String> = status.functions_at.iter().copied().zip(functions).collect();
    let node = |(index, node): (u32, &String)| match at.get(&index) {
        Some(function) => format!("{node}[{function}]"),
        None => node.clone(),
    };
    (0..).zip(&status.path).map(node).collect::<Vec<_>>().join(" ")
}

fn state_in_words(status: &v1::ApplicationStatus) -> String {
    let path = path(status);
    let error = if status.error.is_empty() { "" } else { " (with an error: see show)" };
    match status.state() {
        State::Unspecified | State::Pending => "waiting for its nodes".into(),
        State::Admitted => format!("admitted: {path}{error}"),
        State::Degraded => format!(
            "degraded: {path}; {} has {} free{error}",
            status.limit,
            Bandwidth::from_bps(status.limit_free_bps)
        ),
        State::Unreachable => {
            let functions = status.application.iter().flat_map(|app| &app.functions);
            match functions.map(String::as_str).collect::<Vec<_>>().join(", ") {
                none if none.is_empty() => "unreachable: there is no path".into(),
                // `kaido network` lists the functions that are up.
                functions => format!("unreachable: no path passes {functions}; dropped"),
            }
        }
    }
}

fn class(class: i32) -> Class {
    match v1::Class::try_from(class) {
        Ok(v1::Class::LowLatency) => Class::LowLatency,
        _ => Class::Bandwidth,
    }
}

fn protocol_name(protocol: i32) -> String {
    let name = v1::Protocol::try_from(protocol).map_or("", |protocol| protocol.as_str_name());
    name.trim_start_matches("PROTOCOL_").to_ascii_lowercase()
}

fn matches(matched: Option<v1::Match>) -> Match {
    let matched = matched.unwrap_or_default();
    let ports = |range: Option<v1::PortRange>| range.map(|range| [range.first, range.last]);
    Match {
        protocol: matched.protocol.map(protocol_name),
        ports: ports(matched.ports),
        source_ports: ports(matched.source_ports),
        dscp: matched.dscp,
    }
}

fn unless_empty(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

fn status_output(status: &v1::ApplicationStatus) -> ApplicationStatus {
    let app = status.application.clone().unwrap_or_default();
    let limit = (status.state() == State::Degraded)
        .then(|| Limit { interface: status.limit.clone(), free_bps: status.limit_free_bps });
    ApplicationStatus {
        name: app.name,
        from: app.from,
        to: app.to,
        matches: matches(app.r#match),
        class: class(app.class),
        demand_bps: app.demand_bps,
        functions: app.functions,
        functions_at: status.functions_at.clone(),
        color: status.color,
        state: application_state(status.state()),
        limit,
        path: status.path.clone(),
        ipv4_segments: status.ipv4_segments.clone(),
        ipv6_segments: status.ipv6_segments.clone(),
        rate_bps: status.rate_bps,
        moves: status.moves,
        error: unless_empty(&status.error),
    }
}

fn alternative_output(alternative: &v1::Alternative) -> Alternative {
    let limit = (!alternative.limit.is_empty()).then(|| AlternativeLimit {
        interface: alternative.limit.clone(),
        free_bps: alternative.limit_free_bps,
        capacity_bps: alternative.limit_capacity_bps,
        congested: alternative.limit_congested,
    });
    Alternative {
        path: alternative.path.clone(),
        cost: alternative.cost,
        limit,
        chosen: alternative.chosen,
        covers: alternative.covers,
        not_encodable: unless_empty(&alternative.not_encodable),
    }
}

fn decision_output(decision: &v1::Decision) -> Decision {
    Decision {
        application: decision.application.clone(),
        cause: decision.cause.clone(),
        before: decision.before.clone(),
        after: decision.after.clone(),
        ipv4_segments: decision.ipv4_segments.clone(),
        ipv6_segments: decision.ipv6_segments.clone(),
        sampled_at_ns: decision.sampled_at_ns,
        received_at_ns: decision.received_at_ns,
        decided_at_ns: decision.decided_at_ns,
        sent_at_ns: decision.sent_at_ns,
        installed_at_ns: decision.installed_at_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why_of(state: State, functions: &[&str], segments: &[&str]) -> String {
        let text = |list: &[&str]| list.iter().map(|word| (*word).into()).collect();
        let application = v1::Application {
            name: "x".into(),
            from: "h1".into(),
            to: "h2".into(),
            functions: text(functions),
            ..Default::default()
        };
        let status = v1::ApplicationStatus {
            application: Some(application),
            state: state.into(),
            ipv4_segments: text(segments),
            ..Default::default()
        };
        why_text(&status, &Default::default())
    }

    #[test]
    fn an_unreachable_application_has_no_path() {
        let text = why_of(State::Unreachable, &[], &[]);
        for words in ["unreachable: there is no path", "left to the IGP", "from h1 to h2"] {
            assert!(text.contains(words), "{text}");
        }
        assert!(!text.contains("goes this way") && !text.contains("VERDICT"), "{text}");
        assert!(why_of(State::Unreachable, &["fw"], &[]).contains("packets are dropped"));
        let kept = why_of(State::Unreachable, &[], &["fd00::1"]);
        assert!(kept.contains("fd00::1, as long as there is no other path"), "{kept}");
        assert!(why_of(State::Admitted, &[], &[]).contains("the IGP goes this way"));
        assert!(why_of(State::Pending, &[], &[]).contains("none yet"));
    }
}
