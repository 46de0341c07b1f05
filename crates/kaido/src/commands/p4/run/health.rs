//! Tells people when the process of a program ends, comes again, or comes no more.

use std::time::Duration;

use p4runtime::{Health, Plane, Running};

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Looks after the program's process, and says on standard error what becomes of it; for ever.
pub(super) async fn watch<R: Running>(plane: Plane<R>, program: &str) {
    let mut before = plane.health().unwrap_or_default();
    loop {
        tokio::time::sleep(LOOK).await;
        // A table that is being written holds the plane for as long as that takes.
        let asked = plane.clone();
        let Ok(now) = tokio::task::spawn_blocking(move || asked.health()).await else { return };
        let now = now.unwrap_or_default();
        for line in news(&before, &now) {
            eprintln!("kaido: {program}: {line}");
        }
        before = now;
    }
}

/// What is new.
fn news(before: &Health, now: &Health) -> Vec<String> {
    let mut lines = Vec::new();
    let why = now.last_failure.as_deref().unwrap_or("its process has ended");
    if now.is_evicted && !before.is_evicted {
        lines.push(format!(
            "{why}; that was once too often: it has no process any more, and its packets are dropped. \
             A program that a control plane sets, or another `kaido p4 run`, takes its place"
        ));
        return lines;
    }
    let has_failed = now.failures > before.failures;
    match now.process {
        None if has_failed => {
            lines.push(format!("{why}; another one is started, packets are dropped until then"));
        }
        Some(process) if has_failed => {
            lines.push(format!("{why}; process {process} runs it now, with the same tables"));
        }
        // One that a control plane swapped in is no news.
        Some(process) if before.process.is_none() && before.failures > 0 => {
            lines.push(format!("process {process} runs it now, with the same tables"));
        }
        _ => {}
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_is_told_once() {
        let health = |process, failures, is_evicted| {
            let last_failure = (failures > 0).then(|| "the process ended: signal: 9".to_owned());
            Health { process, failures, is_evicted, last_failure }
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
            (&twice, &evicted, "the process ended: signal: 9; that was once too often"),
            (&evicted, &evicted, ""),
            (&evicted, &well, ""),
        ] {
            let lines = news(before, now).join("\n");
            assert!(lines.starts_with(said) && lines.is_empty() == said.is_empty(), "{lines}");
        }
    }
}
