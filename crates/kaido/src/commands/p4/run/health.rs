//! Reports when the process of a program ends, is restarted or is given up, and when its VM does
//! not publish the values that it reads.

use std::time::{Duration, Instant};

use p4_object::vm::Reading;
use p4runtime::{Health, Plane, Running};
use sandbox::process::VmFeed;

/// Poll interval.
const LOOK: Duration = Duration::from_millis(200);
/// Minimum interval between two messages about the VM: its state may change as often as its tenant
/// likes.
const QUIET: Duration = Duration::from_secs(2);

/// Monitors the process of the current program, and reports on standard error its state and that of
/// the VM's publication. Never returns. The first program came from a file.
pub(super) async fn watch<R: Running>(plane: Plane<R>, vm: Option<VmFeed>, file: &str) {
    let (mut program, mut before) = (plane.program(), plane.health().unwrap_or_default());
    let mut name = file;
    let (mut vm_told, mut vm_told_at) = (None, None::<Instant>);
    loop {
        tokio::time::sleep(LOOK).await;
        // Do not block the runtime: a table write holds the plane's lock for its whole duration.
        let asked = plane.clone();
        let asked = tokio::task::spawn_blocking(move || (asked.program(), asked.health()));
        let Ok((installed, now)) = asked.await else { continue };
        let now = now.unwrap_or_default();
        let mut lines = Vec::new();
        if installed.number != program.number {
            name = "a control plane's program";
            lines.push("it is running now".to_owned());
            (vm_told, vm_told_at) = (None, None);
        }
        program = installed;
        lines.extend(news(&before, &now));
        before = now;
        if vm_told_at.is_none_or(|at| at.elapsed() > QUIET) {
            let lack = vm.as_ref().and_then(|feed| lack(feed, &program.vm_keys));
            if let Some(line) = vm_news(vm_told.as_deref(), lack.as_deref()) {
                lines.push(line);
                (vm_told, vm_told_at) = (lack, Some(Instant::now()));
            }
        }
        for line in lines {
            crate::output::tell(&format!("kaido: {name}: {line}"));
        }
    }
}

/// Returns the reason if the program cannot read values of its VM now.
fn lack(feed: &VmFeed, keys: &[String]) -> Option<String> {
    if keys.is_empty() {
        return None;
    }
    if let Err(why) = feed.check(keys) {
        return Some(why);
    }
    let now = feed.readings_at(keys, Duration::ZERO);
    let is_stale = |reading: &Option<Reading>| reading.is_none_or(|one| !one.is_fresh(0));
    let stale = keys.iter().zip(&now).filter(|(_, reading)| is_stale(reading));
    let stale: Vec<&str> = stale.map(|(key, _)| &**key).collect();
    if stale.is_empty() {
        return None;
    }
    let (status, file) = (feed.status(), feed.path().display());
    let why = match status.why {
        Some(why) => why,
        None if status.ended => "the publisher in the VM exited".to_owned(),
        None => "the VM did not say it again within its time".to_owned(),
    };
    Some(format!("{file}: {why}; not fresh: {}", stale.join(", ")))
}

/// Returns a message about a change of the VM: each reason once, and its end.
fn vm_news(before: Option<&str>, now: Option<&str>) -> Option<String> {
    match (before, now) {
        (_, Some(lack)) if before != now => Some(lack.to_owned()),
        (Some(_), None) => Some("the VM publishes what the program reads".to_owned()),
        _ => None,
    }
}

/// Returns messages about the changes between two health states.
fn news(before: &Health, now: &Health) -> Vec<String> {
    let mut lines = Vec::new();
    let why = now.last_failure.as_deref().unwrap_or("its process exited");
    if now.is_evicted && !before.is_evicted {
        lines.push(format!(
            "{why}; too many failures: the program is evicted, and its packets are dropped. Install a \
             program through P4Runtime, or restart `kaido p4 run`"
        ));
        return lines;
    }
    let has_failed = now.failures > before.failures;
    let again = "has its tables and what was set; what it counted itself starts again from zero";
    match now.process {
        None if has_failed => {
            lines.push(format!("{why}; another one is started, packets are dropped until then"));
        }
        Some(process) if has_failed => {
            lines.push(format!("{why}; process {process} runs it now: it {again}"));
        }
        // A control plane requests a start without a preceding failure, and needs no notice.
        Some(process) if before.process.is_none() && now.failures > 0 => {
            lines.push(format!("process {process} runs it now: it {again}"));
        }
        _ => {}
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_of_the_vm_is_reported_once() {
        let (well, one, other) = (None, Some("no sign of life"), Some("it publishes nothing"));
        assert_eq!(vm_news(well, well), None);
        assert_eq!(vm_news(well, one).as_deref(), one);
        assert_eq!(vm_news(one, one), None);
        assert_eq!(vm_news(one, other).as_deref(), other);
        assert!(vm_news(other, well).is_some_and(|line| line.contains("publishes what")));
    }

    #[test]
    fn a_new_failure_is_reported_once() {
        let health = |process, failures, is_evicted| {
            let last_failure = (failures > 0).then(|| "the process ended: signal: 9".to_owned());
            Health { process, failures, is_evicted, last_failure, ..Health::default() }
        };
        let (well, swapped) = (health(Some(7), 0, false), health(Some(9), 0, false));
        let (gone, again) = (health(None, 1, false), health(Some(8), 1, false));
        let (twice, evicted) = (health(Some(9), 2, false), health(None, 3, true));
        for (before, now, said) in [
            (&well, &well, ""),
            (&well, &swapped, ""),
            (&well, &gone, "the process ended: signal: 9; another one is started"),
            (&gone, &gone, ""),
            (&gone, &again, "process 8 runs it now"),
            (&well, &again, "the process ended: signal: 9; process 8 runs it now"),
            (&again, &twice, "the process ended: signal: 9; process 9 runs it now"),
            (&twice, &evicted, "the process ended: signal: 9; too many failures"),
            (&evicted, &evicted, ""),
            // Another program, set by a control plane.
            (&evicted, &well, ""),
        ] {
            let lines = news(before, now).join("\n");
            assert!(lines.starts_with(said) && lines.is_empty() == said.is_empty(), "{lines}");
        }
    }
}
