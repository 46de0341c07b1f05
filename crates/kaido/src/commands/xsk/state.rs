//! `kaido xsk stats` and `kaido xsk top`.

use std::time::{Duration, Instant};

use api::v1;
use output::xsk::{XskDirection, XskPort, XskProgram, XskState};

use super::directory::Running;
use crate::cli::WhichXsk;
use crate::failure::Failure;
use crate::output::{CLEAR, Output, table};
use crate::runtime::{block_on, nobody_watches};

const REFRESH: Duration = Duration::from_secs(1);
/// Timeout of a client, if others are asked too.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2);

pub(super) async fn get(running: &Running) -> Result<v1::GetXskResponse, Failure> {
    let mut client = api::connect_xsk(&running.socket).await?;
    Ok(client.get_xsk(v1::GetXskRequest {}).await?.into_inner())
}

/// Returns the nodes of a lab that have programs, with the directions of their sockets. Clients that do
/// not respond are skipped.
pub(crate) fn sockets_of(lab: &str) -> Result<Vec<(String, Vec<XskDirection>)>, Failure> {
    let all = Running::all(Some(lab))?;
    block_on(async {
        let mut nodes = Vec::new();
        for one in all {
            if let Ok(Ok(found)) = tokio::time::timeout(TIMEOUT, get(&one)).await {
                let sockets = state(&one, found).sockets;
                nodes.push((one.name, sockets));
            }
        }
        nodes
    })
}

pub(super) fn show(which: &WhichXsk, output: &Output) -> Result<(), Failure> {
    let running = Running::choose(which)?;
    let found = block_on(get(&running))??;
    output.print(&state(&running, found), |state| text(state, ""))
}

pub(super) fn watch(which: &WhichXsk, output: &Output) -> Result<(), Failure> {
    let running = Running::choose(which)?;
    block_on(async {
        let watching = async {
            let mut before = state(&running, get(&running).await?);
            loop {
                let started = Instant::now();
                tokio::time::sleep(REFRESH).await;
                let now = state(&running, get(&running).await?);
                let rates = per_second(&before, &now, started.elapsed());
                output.print(&rates, |rates| format!("{CLEAR}{}", text(rates, "/S")))?;
                before = now;
            }
        };
        tokio::select! {
            ended = watching => ended,
            () = nobody_watches() => Ok(()),
        }
    })?
}

fn state(running: &Running, found: v1::GetXskResponse) -> XskState {
    let sockets = found.processes.into_iter().flat_map(|process| {
        let number = process.process;
        process.directions.into_iter().map(move |one| direction(number, one))
    });
    XskState {
        name: running.name.clone(),
        process: found.process,
        executable: found.executable,
        p4runtime: format!("unix:{}", found.p4runtime),
        programs: found.programs.into_iter().map(program).collect(),
        sockets: sockets.collect(),
    }
}

fn program(of: v1::XskProgram) -> XskProgram {
    let ports = of.ports.into_iter();
    let ports = ports.map(|port| XskPort { interface: port.interface, number: port.number });
    XskProgram {
        tenant: of.tenant,
        device_id: of.device,
        ports: ports.collect(),
        version: of.version,
        process: of.process,
        is_inline: of.inline,
        isolation: of.isolation,
        isolation_lacks: of.isolation_lacks,
        failures: of.failures,
        last_failure: of.last_failure,
        evicted: of.evicted,
    }
}

fn direction(process: u32, of: v1::XskDirection) -> XskDirection {
    let packets = of.packets.unwrap_or_default();
    XskDirection {
        process,
        interface: of.interface,
        queue: of.queue,
        direction: if of.transmit { "transmit" } else { "receive" },
        tenant: of.tenant,
        port: of.port,
        submitted: packets.submitted,
        passed: packets.passed,
        dropped: packets.dropped,
        redirected: packets.redirected,
        by_policy: packets.by_policy,
        dropped_by_policy: packets.dropped_by_policy,
        unfit: packets.unfit,
        in_flight: packets.in_flight,
        without_program: packets.without_program,
        wrong_owner: packets.wrong_owner,
    }
}

/// Returns the same state with the counts since `before`, per second.
fn per_second(before: &XskState, now: &XskState, elapsed: Duration) -> XskState {
    let of = |one: &XskDirection| (one.process, one.interface.clone(), one.queue, one.direction);
    let mut rates = now.clone();
    for one in &mut rates.sockets {
        let old = before.sockets.iter().find(|old| of(old) == of(one));
        let rate = |now: u64, before: fn(&XskDirection) -> u64| {
            let before = old.map_or(0, before);
            // The counters of a socket that was opened again begin at 0.
            let since = now.checked_sub(before).unwrap_or(now);
            (since as f64 / elapsed.as_secs_f64()).round() as u64
        };
        one.submitted = rate(one.submitted, |old| old.submitted);
        one.passed = rate(one.passed, |old| old.passed);
        one.dropped = rate(one.dropped, |old| old.dropped);
        one.redirected = rate(one.redirected, |old| old.redirected);
        one.by_policy = rate(one.by_policy, |old| old.by_policy);
        one.dropped_by_policy = rate(one.dropped_by_policy, |old| old.dropped_by_policy);
        one.unfit = rate(one.unfit, |old| old.unfit);
        one.without_program = rate(one.without_program, |old| old.without_program);
        one.wrong_owner = rate(one.wrong_owner, |old| old.wrong_owner);
    }
    rates
}

/// Formats the state. `per` is the suffix of the counters' headings.
fn text(state: &XskState, per: &str) -> String {
    let XskState { process, executable, p4runtime, .. } = state;
    let mut text = format!("{executable} (process {process}), P4Runtime at {p4runtime}\n\n");
    text += &programs(&state.programs);
    text += "\n\n";
    if state.sockets.is_empty() {
        return text + "the client has not opened an AF_XDP socket";
    }
    text + &sockets(&state.sockets, per)
}

fn programs(all: &[XskProgram]) -> String {
    let row = |one: &XskProgram| {
        let ports = one.ports.iter().map(|port| format!("{}={}", port.interface, port.number));
        let isolation = match &one.isolation_lacks[..] {
            _ if one.process.is_none() => "-".to_owned(),
            _ if one.is_inline => "inline".to_owned(),
            [] if one.isolation.iter().any(|part| part == "virtual machine") => "vm".to_owned(),
            [] => "process".to_owned(),
            lacks => format!("no {}", lacks.join(", no ")),
        };
        let last = one.evicted.then_some("evicted").into_iter().chain(one.last_failure.as_deref());
        vec![
            one.tenant.clone(),
            one.device_id.to_string(),
            ports.collect::<Vec<_>>().join(","),
            one.version.to_string(),
            one.process.map_or("-".to_owned(), |process| process.to_string()),
            isolation,
            one.failures.to_string(),
            last.collect::<Vec<_>>().join(": "),
        ]
    };
    let header = [
        "TENANT",
        "DEVICE",
        "PORTS",
        "VERSION",
        "PROCESS",
        "ISOLATION",
        "FAILURES",
        "LAST FAILURE",
    ];
    table(&header, all.iter().map(row))
}

fn sockets(all: &[XskDirection], per: &str) -> String {
    let counter = |heading: &str| format!("{heading}{per}");
    let counters = ["PASSED", "DROPPED", "REDIRECTED", "BY-POLICY", "UNFIT", "NO-PROGRAM"];
    let counters = counters.map(counter);
    let mut header = vec!["INTERFACE", "QUEUE", "DIRECTION", "TENANT", "PORT"];
    header.extend(counters.iter().map(String::as_str));
    header.push("IN-FLIGHT");
    let row = |one: &XskDirection| {
        let mut row = vec![
            one.interface.clone(),
            one.queue.to_string(),
            one.direction.to_owned(),
            one.tenant.clone().unwrap_or_else(|| "-".to_owned()),
            one.port.map_or("-".to_owned(), |port| port.to_string()),
        ];
        let packets = [
            one.passed,
            one.dropped,
            one.redirected,
            one.by_policy,
            one.unfit,
            one.without_program,
            one.in_flight,
        ];
        row.extend(packets.iter().map(u64::to_string));
        row
    };
    table(&header, all.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(passed: u64, queue: u32) -> v1::GetXskResponse {
        let packets = v1::XskCounters {
            passed,
            dropped: 4,
            by_policy: 3,
            in_flight: 9,
            ..v1::XskCounters::default()
        };
        let one = v1::XskDirection {
            interface: "eth1".to_owned(),
            queue,
            transmit: true,
            tenant: Some("blue".to_owned()),
            port: Some(257),
            packets: Some(packets),
        };
        let bare = v1::XskDirection { transmit: false, tenant: None, port: None, ..one.clone() };
        let program = |tenant: &str, process, lacks: &[&str]| v1::XskProgram {
            tenant: tenant.to_owned(),
            device: 2,
            version: 3,
            process,
            failures: 5,
            evicted: process.is_none(),
            last_failure: Some("too slow".to_owned()),
            isolation_lacks: lacks.iter().map(|part| (*part).to_owned()).collect(),
            ..v1::XskProgram::default()
        };
        v1::GetXskResponse {
            process: 11,
            executable: "switch".to_owned(),
            p4runtime: "/run/p4".to_owned(),
            programs: vec![program("blue", Some(8), &["empty root"]), program("red", None, &[])],
            processes: vec![v1::XskProcess {
                process: 12,
                executable: "switch".to_owned(),
                directions: vec![one, bare],
            }],
        }
    }

    fn shown(passed: u64, queue: u32) -> XskState {
        let running = Running { name: "a".to_owned(), socket: "/run/a".into() };
        state(&running, found(passed, queue))
    }

    #[test]
    fn programs_and_sockets_are_shown() {
        let text = text(&shown(70, 0), "");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(words).collect();
        let wanted = [
            "switch (process 11), P4Runtime at unix:/run/p4",
            "blue 2 3 8 no empty root 5 too slow",
            "red 2 3 - - 5 evicted: too slow",
            "INTERFACE QUEUE DIRECTION TENANT PORT PASSED DROPPED REDIRECTED BY-POLICY UNFIT \
             NO-PROGRAM IN-FLIGHT",
            "eth1 0 transmit blue 257 70 4 0 3 0 0 9",
            "eth1 0 receive - - 70 4 0 3 0 0 9",
        ];
        for line in wanted {
            assert!(lines.iter().any(|one| one == line), "{line}\n{text}");
        }
    }

    #[test]
    fn rates_are_of_the_same_socket() {
        let rates = |before: &XskState, now: &XskState| {
            let rates = per_second(before, now, Duration::from_secs(2));
            let one = &rates.sockets[0];
            (one.passed, one.dropped, one.in_flight)
        };
        assert_eq!(rates(&shown(70, 0), &shown(170, 0)), (50, 0, 9));
        assert_eq!(rates(&shown(170, 0), &shown(70, 0)), (35, 0, 9), "it was opened again");
        assert_eq!(rates(&shown(70, 1), &shown(70, 0)), (35, 2, 9), "it is new");
    }
}
