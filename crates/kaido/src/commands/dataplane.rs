//! `kaido dataplane`: SRv6 on this machine's ports, in XDP or by the kernel alone.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use api::v1;
use lab::Labs;
use output::dataplane::{
    CheckedFile, DataplaneChanges, DataplaneEntry, DataplaneLeft, DataplanePort, DataplaneReason,
    DataplaneState, DataplaneTenant, DetachedDataplane, TracedPacket, Traffic,
};

use super::daemon;
use super::function_text;
use super::health_text::{MAX_SHOWN, health_output};
use crate::cli::{DataplaneCommand, DataplaneFile, State, WhichDataplane};
use crate::failure::{Done, Failure};
use crate::output::{CLEAR, Output, table};
use crate::runtime::{asked_to_end, block_on, nobody_watches};

const REFRESH: Duration = Duration::from_secs(1);

pub(crate) fn run(command: DataplaneCommand, output: &Output) -> Done {
    match command {
        DataplaneCommand::Run { state, file, metrics } => daemon(&state, file.as_deref(), metrics),
        DataplaneCommand::Check { file } => check(&file, output),
        DataplaneCommand::Plan(file) => apply(&file, true, output),
        DataplaneCommand::Apply(file) => apply(&file, false, output),
        DataplaneCommand::Show { which } => show(&which, output),
        DataplaneCommand::Top { which } => top(&which, output),
        DataplaneCommand::Trace { what, count, which } => trace(&what, count, &which, output),
        DataplaneCommand::Detach { which } => detach(&which, output),
    }
}

fn directory(state: &State) -> Result<PathBuf, Failure> {
    match &state.state {
        Some(directory) => {
            let elsewhere = "name a directory that no other user can write (--state)";
            private::check(directory).context(elsewhere).map_err(Failure::usage)?;
            Ok(directory.clone())
        }
        None => Ok(lab::run_directory("dataplane")?),
    }
}

pub(super) fn socket(which: &WhichDataplane) -> Result<PathBuf, Failure> {
    let state = match &which.node {
        Some(node) => Labs::of_environment()?.choose(which.lab.as_deref())?.dataplane(node)?,
        None => directory(&which.state)?,
    };
    Ok(dataplane_daemon::Config::socket(&state))
}

fn daemon(state: &State, file: Option<&Path>, metrics: Option<SocketAddr>) -> Done {
    daemon::start();
    let file = file.map(read).transpose()?;
    let config = dataplane_daemon::Config { state: directory(state)?, file, metrics };
    block_on(dataplane_daemon::run(config, asked_to_end()))?.map_err(|error| {
        if error.is_usage() { Failure::usage(error) } else { Failure::failed(error) }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<String, Failure> {
    crate::input::read(path, "data plane file", api::LARGEST_REQUEST as u64)
}

fn check(path: &Path, output: &Output) -> Done {
    let text = read(path)?;
    dataplane_file::parse(&path.to_string_lossy(), &text)
        .map_err(|problems| Failure::usage(anyhow!("{problems}")))?;
    output.print(&CheckedFile { ok: true }, |_| format!("{}: no errors", path.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Sends the file to the daemon, which parses it and reports its mistakes: a file of a million
/// entries is parsed only once.
fn apply(file: &DataplaneFile, plan: bool, output: &Output) -> Done {
    let socket = socket(&file.which)?;
    let request = v1::ApplyDataplaneRequest {
        file: read(&file.file)?,
        plan,
        name: file.file.to_string_lossy().into_owned(),
        most: file.most,
    };
    let answer = block_on(async {
        let mut client = api::connect_dataplane(&socket).await?;
        Ok::<_, Failure>(client.apply_dataplane(request).await?.into_inner())
    })??;
    print_changes(answer, output)
}

/// Prints the changes of the data plane.
pub(super) fn print_changes(answer: v1::ApplyDataplaneResponse, output: &Output) -> Done {
    let v1::ApplyDataplaneResponse { changes, more, summary, warnings } = answer;
    let found = DataplaneChanges { changes, more, summary, warnings };
    output.print(&found, |DataplaneChanges { changes, more, summary, warnings }| {
        let (mut changes, more) = (changes.clone(), *more);
        if changes.is_empty() && more == 0 {
            changes.push("nothing changes".into());
        }
        if more > 0 {
            changes.push(format!("… and {more} more"));
            changes.push(summary.clone());
        }
        changes.extend(warnings.iter().map(|warning| format!("warning: {warning}")));
        changes.join("\n")
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Parses a filter such as `port eth1 dst 10.9.0.0/24` into a request.
fn to_trace(what: &str, most: u32) -> Result<v1::TraceDataplaneRequest, Failure> {
    let mut request = v1::TraceDataplaneRequest { most, ..Default::default() };
    let usage = |text: String| Failure::usage(anyhow!(text));
    let mut words = what.split_whitespace();
    while let Some(key) = words.next() {
        let missing = || usage(format!("`{key}` in --match needs a value: `{key} …`"));
        let value = words.next().ok_or_else(missing)?;
        match key {
            "port" => request.port = value.into(),
            "src" => request.source = value.into(),
            "dst" => request.destination = value.into(),
            "vlan" => {
                let vlan = value.parse().ok().filter(|vlan| (1..4095).contains(vlan));
                let wrong = || usage(format!("`vlan {value}` in --match: write 1 to 4094"));
                request.vlan = vlan.ok_or_else(wrong)?;
            }
            other => {
                let known = "use port, vlan, src and dst";
                return Err(usage(format!("`{other}` in --match is not known: {known}")));
            }
        }
    }
    Ok(request)
}

pub(super) fn trace(what: &str, count: u32, which: &WhichDataplane, output: &Output) -> Done {
    let request = to_trace(what, count)?;
    let socket = socket(which)?;
    block_on(async {
        let tracing = async {
            let mut client = api::connect_dataplane(&socket).await?;
            let mut packets = client.trace_dataplane(request).await?.into_inner();
            while let Some(packet) = packets.message().await? {
                output.print(&traced_output(&packet), |_| traced_text(&packet))?;
            }
            Ok::<_, Failure>(())
        };
        // The trace ends with the command, because dropping the call ends it.
        tokio::select! {
            ended = tracing => ended,
            () = nobody_watches() => Ok(()),
        }
    })?
    .map(|()| ExitCode::SUCCESS)
}

fn traced_output(packet: &v1::TracedPacket) -> TracedPacket {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    TracedPacket {
        at_ns: packet.at_ns,
        port: packet.port.clone(),
        headers: packet.headers.clone(),
        entry: packet.entry.clone(),
        verdict: packet.verdict.clone(),
        reason: packet.reason.clone(),
        sent: packet.sent.clone(),
        frame: hex(&packet.frame),
        sent_frame: hex(&packet.sent_frame),
    }
}

fn traced_text(packet: &v1::TracedPacket) -> String {
    let seconds = packet.at_ns as f64 / 1e9;
    let mut text =
        format!("{seconds:.6} {}, {} bytes: {}", packet.port, packet.frame.len(), packet.headers);
    if !packet.entry.is_empty() {
        text += &format!("\n    matches {}", packet.entry);
    }
    text += &format!("\n    {}", packet.verdict);
    if !packet.reason.is_empty() {
        text += &format!(" ({})", packet.reason);
    }
    if !packet.sent.is_empty() {
        text += &format!(": {}", packet.sent);
    }
    text
}

fn detach(which: &WhichDataplane, output: &Output) -> Done {
    let socket = socket(which)?;
    block_on(async {
        let mut client = api::connect_dataplane(&socket).await?;
        client.detach_dataplane(v1::DetachDataplaneRequest {}).await?;
        Ok::<_, Failure>(())
    })??;
    output
        .print(&DetachedDataplane { detached: true }, |_| "the kernel has its ports back".into())?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn get(socket: &Path) -> Result<v1::GetDataplaneResponse, Failure> {
    let mut client = api::connect_dataplane(socket).await?;
    Ok(client.get_dataplane(v1::GetDataplaneRequest {}).await?.into_inner())
}

/// Returns the state of this machine's data plane, if it has one.
pub(super) fn running() -> Option<v1::GetDataplaneResponse> {
    let socket =
        directory(&State { state: None }).map(|state| dataplane_daemon::Config::socket(&state));
    let socket = socket.ok().filter(|socket| socket.exists())?;
    block_on(get(&socket)).ok().and_then(Result::ok)
}

fn show(which: &WhichDataplane, output: &Output) -> Done {
    let found = block_on(get(&socket(which)?))??;
    output.print(&state_output(&found), |_| text(&found, ""))?;
    Ok(ExitCode::SUCCESS)
}

fn top(which: &WhichDataplane, output: &Output) -> Done {
    let socket = socket(which)?;
    block_on(async {
        let watching = async {
            let mut before = get(&socket).await?;
            loop {
                let started = Instant::now();
                tokio::time::sleep(REFRESH).await;
                let now = get(&socket).await?;
                let rates = per_second(&before, &now, started.elapsed());
                output
                    .print(&state_output(&rates), |_| format!("{CLEAR}{}", text(&rates, "/S")))?;
                before = now;
            }
        };
        tokio::select! {
            ended = watching => ended,
            () = nobody_watches() => Ok(()),
        }
    })?
    .map(|()| ExitCode::SUCCESS)
}

/// Returns the same response with the counts since `before`, per second.
fn per_second(
    before: &v1::GetDataplaneResponse,
    now: &v1::GetDataplaneResponse,
    elapsed: Duration,
) -> v1::GetDataplaneResponse {
    let rate = |now: u64, before: u64| {
        (now.saturating_sub(before) as f64 / elapsed.as_secs_f64()).round() as u64
    };
    let rates = |before: &[v1::DataplaneEntry], now: &mut Vec<v1::DataplaneEntry>| {
        let before: HashMap<&str, &v1::DataplaneEntry> =
            before.iter().map(|entry| (entry.name.as_str(), entry)).collect();
        for entry in now {
            let before = before.get(entry.name.as_str());
            let since = |count: fn(&v1::DataplaneEntry) -> Option<u64>| {
                before.and_then(|before| count(before)).unwrap_or(0)
            };
            let (packets, bytes) = (since(|entry| entry.packets), since(|entry| entry.bytes));
            entry.packets = entry.packets.map(|now| rate(now, packets));
            entry.bytes = entry.bytes.map(|now| rate(now, bytes));
            let returned = since(|entry| entry.returned);
            entry.returned = entry.returned.map(|now| rate(now, returned));
            if let Some(now) = &mut entry.dropped {
                let before = before.and_then(|before| before.dropped).unwrap_or_default();
                now.prerouting = rate(now.prerouting, before.prerouting);
                now.forward = rate(now.forward, before.forward);
                now.postrouting = rate(now.postrouting, before.postrouting);
                now.no_hook = rate(now.no_hook, before.no_hook);
            }
        }
    };
    let mut result = now.clone();
    rates(&before.sids, &mut result.sids);
    rates(&before.policies, &mut result.policies);
    for tenant in &mut result.tenants {
        let before = before.tenants.iter().find(|before| before.name == tenant.name);
        let before = before.cloned().unwrap_or_default();
        tenant.encapsulated_packets =
            rate(tenant.encapsulated_packets, before.encapsulated_packets);
        tenant.encapsulated_bytes = rate(tenant.encapsulated_bytes, before.encapsulated_bytes);
        tenant.decapsulated_packets =
            rate(tenant.decapsulated_packets, before.decapsulated_packets);
        tenant.decapsulated_bytes = rate(tenant.decapsulated_bytes, before.decapsulated_bytes);
    }
    for (reason, before) in result.reasons.iter_mut().zip(&before.reasons) {
        reason.passed = rate(reason.passed, before.passed);
        reason.dropped = rate(reason.dropped, before.dropped);
    }
    result
}

/// Formats the data plane. `per` is the suffix of the counter headings.
fn text(found: &v1::GetDataplaneResponse, per: &str) -> String {
    let counter = |heading: &str| format!("{heading}{per}");
    let (packets, bytes) = (counter("PACKETS"), counter("BYTES"));
    let is_kernel = found.dataplane == "kernel";
    let port = |port: &v1::DataplanePort| {
        let vlans = match &port.vlans[..] {
            [] => None,
            [vlan] => Some(format!("VLAN {vlan}")),
            vlans => Some(format!("VLANs {}", vlans.join(" "))),
        };
        let renamed = format!("now {}", port.renamed_to);
        let words = [
            Some(renamed.as_str()).filter(|_| !port.renamed_to.is_empty()),
            Some(port.mode.as_str()).filter(|_| !is_kernel),
            Some("edge").filter(|_| port.edge),
            Some("requires HMAC").filter(|_| port.requires_hmac),
            vlans.as_deref(),
        ];
        let words: Vec<&str> = words.into_iter().flatten().collect();
        match words.is_empty() {
            true => port.name.clone(),
            false => format!("{} ({})", port.name, words.join(", ")),
        }
    };
    let ports: Vec<String> = found.ports.iter().map(port).collect();
    let mut parts = vec![format!("ports: {}", ports.join(" "))];
    if !found.sources.is_empty() {
        parts.push(format!("SIDs are for packets from {}", found.sources.join(", ")));
    }
    if is_kernel {
        parts.push("the kernel alone forwards (`dataplane: kernel`), and counts nothing".into());
    }
    parts.extend(found.warnings.iter().map(|warning| format!("warning: {warning}")));
    let count = |count: Option<u64>| count.map_or("-".into(), |count| count.to_string());
    for (title, entries) in [("SID", &found.sids), ("POLICY", &found.policies)] {
        if entries.is_empty() {
            continue;
        }
        let mut busiest: Vec<_> = entries.iter().collect();
        if entries.len() > MAX_SHOWN {
            busiest.sort_by_key(|entry| std::cmp::Reverse(entry.packets));
            busiest.truncate(MAX_SHOWN);
        }
        let row = |e: &&v1::DataplaneEntry| {
            vec![e.name.clone(), e.action.clone(), count(e.packets), count(e.bytes)]
        };
        let rows = busiest.iter().map(row);
        parts.push(table(&[title, "ACTION", &packets, &bytes], rows));
        if entries.len() > MAX_SHOWN {
            parts.push(format!("and {} more: --json has them all", entries.len() - MAX_SHOWN));
        }
    }
    parts.extend(function_text::text(found, per));
    let seen = |t: &&v1::DataplaneTenant| t.encapsulated_packets + t.decapsulated_packets > 0;
    let row = |tenant: &v1::DataplaneTenant| {
        vec![
            tenant.name.clone(),
            tenant.encapsulated_packets.to_string(),
            tenant.encapsulated_bytes.to_string(),
            tenant.decapsulated_packets.to_string(),
            tenant.decapsulated_bytes.to_string(),
        ]
    };
    let rows: Vec<_> = found.tenants.iter().filter(seen).take(MAX_SHOWN).map(row).collect();
    if !rows.is_empty() {
        let (into, out_of) = (counter("ENCAPSULATED"), counter("DECAPSULATED"));
        parts.push(table(&["TENANT", &into, &bytes, &out_of, &bytes], rows));
    }
    let seen = |reason: &&v1::DataplaneReason| reason.passed + reason.dropped > 0;
    let row = |reason: &v1::DataplaneReason| {
        vec![
            reason.reason.clone(),
            reason.passed.to_string(),
            reason.dropped.to_string(),
            reason.text.clone(),
        ]
    };
    let rows: Vec<_> = found.reasons.iter().filter(seen).map(row).collect();
    if !rows.is_empty() {
        let (passed, dropped) = (counter("TO THE KERNEL"), counter("DROPPED"));
        parts.push(table(&["NOT FORWARDED", &passed, &dropped, "REASON"], rows));
    }
    if !found.left.is_empty() {
        let rows = found
            .left
            .iter()
            .take(MAX_SHOWN)
            .map(|l| vec![l.destination.clone(), l.reason.clone()]);
        parts.push(table(&["LEFT TO THE KERNEL", "REASON"], rows));
    }
    parts.join("\n\n")
}

fn entry_output(entry: &v1::DataplaneEntry) -> DataplaneEntry {
    DataplaneEntry {
        name: entry.name.clone(),
        action: entry.action.clone(),
        packets: entry.packets,
        bytes: entry.bytes,
        returned: entry.returned,
        dropped: entry.dropped.as_ref().map(function_text::drops_output),
        health: entry.health.as_ref().map(health_output),
    }
}

fn state_output(found: &v1::GetDataplaneResponse) -> DataplaneState {
    let port = |port: &v1::DataplanePort| DataplanePort {
        name: port.name.clone(),
        mode: port.mode.clone(),
        requires_hmac: port.requires_hmac,
        edge: port.edge,
        vlans: port.vlans.clone(),
        renamed_to: Some(port.renamed_to.clone()).filter(|name| !name.is_empty()),
    };
    let tenant = |tenant: &v1::DataplaneTenant| DataplaneTenant {
        name: tenant.name.clone(),
        encapsulated: Traffic {
            packets: tenant.encapsulated_packets,
            bytes: tenant.encapsulated_bytes,
        },
        decapsulated: Traffic {
            packets: tenant.decapsulated_packets,
            bytes: tenant.decapsulated_bytes,
        },
    };
    let left = |left: &v1::DataplaneLeft| DataplaneLeft {
        destination: left.destination.clone(),
        reason: left.reason.clone(),
    };
    let reason = |reason: &v1::DataplaneReason| DataplaneReason {
        reason: reason.reason.clone(),
        text: reason.text.clone(),
        passed: reason.passed,
        dropped: reason.dropped,
    };
    DataplaneState {
        dataplane: found.dataplane.clone(),
        ports: found.ports.iter().map(port).collect(),
        sids: found.sids.iter().map(entry_output).collect(),
        policies: found.policies.iter().map(entry_output).collect(),
        tenants: found.tenants.iter().map(tenant).collect(),
        sources: found.sources.clone(),
        warnings: found.warnings.clone(),
        imported: found.imported,
        left: found.left.iter().map(left).collect(),
        reasons: found.reasons.iter().map(reason).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_name_rates_per_second() {
        let sid = v1::DataplaneEntry { name: "fd00:1::1/128".into(), ..Default::default() };
        let found = v1::GetDataplaneResponse { sids: vec![sid], ..Default::default() };
        assert!(text(&found, "/S").contains("PACKETS/S  BYTES/S\n"), "{}", text(&found, "/S"));
        assert!(text(&found, "").contains("PACKETS  BYTES\n"));
    }
}
