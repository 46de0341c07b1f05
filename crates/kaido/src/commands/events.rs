//! `kaido lab events`.

use std::process::ExitCode;

use lab::{History, Lab, Occurrence, StepOutcome};
use output::events::{EventHistory, StepState, TimelineStep};

use crate::failure::Done;
use crate::output::{Output, table};

pub(super) fn list(lab: &Lab, output: &Output) -> Done {
    let history = lab.history();
    output.print(&history_output(&history), |_| as_text(&history))?;
    Ok(ExitCode::SUCCESS)
}

fn history_output(history: &History) -> EventHistory {
    let steps = history.steps.iter().map(|(step, progress)| {
        let (state, done_at, error) = match progress {
            StepOutcome::ToCome => (StepState::ToCome, None, None),
            StepOutcome::Done { done_at } => (StepState::Done, Some(*done_at), None),
            StepOutcome::Failed { done_at, error } => {
                (StepState::Failed, Some(*done_at), Some(error.clone()))
            }
        };
        TimelineStep {
            at: step.at.as_secs_f64(),
            link: step.link.clone(),
            from: step.from.clone(),
            does: step.deed.words(),
            state,
            done_at,
            error,
        }
    });
    EventHistory {
        ready_for: history.ready_for.map(|time| time.as_secs_f64()),
        events: steps.collect(),
        others: history.others.clone(),
    }
}

/// Returns the delay of an event in seconds, if it is worth mentioning.
fn late(at: f64, done_at: f64) -> Option<f64> {
    Some(done_at - at).filter(|late| *late >= 0.1)
}

fn as_text(history: &History) -> String {
    let seconds = |at: f64| format!("{at:.3} s");
    // Each row with its past or future time, for sorting.
    let mut rows: Vec<(f64, Vec<String>)> = history
        .steps
        .iter()
        .map(|(step, progress)| {
            let at = step.at.as_secs_f64();
            let when = |done_at: f64| match late(at, done_at) {
                Some(late) => format!("{}, {} late", seconds(done_at), seconds(late)),
                None => seconds(done_at),
            };
            let state = match progress {
                StepOutcome::ToCome => "to come".into(),
                StepOutcome::Done { done_at } => format!("done at {}", when(*done_at)),
                StepOutcome::Failed { done_at, error } => {
                    format!("failed at {}: {error}", when(*done_at))
                }
            };
            let from = step.from.clone().unwrap_or_default();
            (at, vec![seconds(at), step.link.clone(), from, step.deed.words(), state])
        })
        .collect();
    for entry in &history.others {
        let mut place = [String::new(), String::new()];
        let what = match &entry.what {
            Occurrence::EmulatorEnded => "the emulator exited: its links are down".into(),
            Occurrence::EmulatorStarted => "the emulator was restarted: its links are up".into(),
            Occurrence::EmulatorSilent => "the emulator does not respond: events wait".into(),
            Occurrence::EmulatorAnswers => "the emulator answers again".into(),
            Occurrence::InterfaceGone { node, interface } => {
                format!("{node}:{interface} is gone: its link is down")
            }
            Occurrence::TrafficAdded { link, from, traffic } => {
                place = [link.clone(), from.clone()];
                format!("cross traffic was added by a command: {traffic}")
            }
            Occurrence::TrafficStopped { link, from } => {
                place = [link.clone(), from.clone()];
                "its cross traffic was ended by a command".into()
            }
            // An expected entry does not get a line.
            Occurrence::Watching => continue,
        };
        let at = entry.at.unwrap_or(0.0);
        let [link, from] = place;
        rows.push((at, vec![seconds(at), link, from, what, "happened".into()]));
    }
    rows.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let now = match history.ready_for {
        Some(time) => format!("ready for {}", seconds(time.as_secs_f64())),
        None => "not ready yet".into(),
    };
    if rows.is_empty() {
        return format!("{now}: no events");
    }
    let lines =
        table(&["AT", "LINK", "FROM", "ACTION", "STATE"], rows.into_iter().map(|(_, row)| row));
    format!("{lines}\n{now}")
}
