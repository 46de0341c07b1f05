//! `kaido lab events`.

use std::process::ExitCode;

use lab::{Happening, History, Lab, StepOutcome};
use serde_json::{Value, json};

use crate::failure::Done;
use crate::output::{Output, table};

pub(super) fn list(lab: &Lab, output: &Output) -> Done {
    let history = lab.history();
    output.print(&as_json(&history), |_| as_text(&history))?;
    Ok(ExitCode::SUCCESS)
}

fn as_json(history: &History) -> Value {
    let steps = history.steps.iter().map(|(step, progress)| {
        let mut line = json!({
            "at": step.at.as_secs_f64(),
            "link": step.link,
            "from": step.from,
            "does": step.deed.words(),
        });
        if let (Value::Object(line), Ok(Value::Object(progress))) =
            (&mut line, serde_json::to_value(progress))
        {
            line.extend(progress);
        }
        line
    });
    json!({
        "ready_for": history.ready_for.map(|time| time.as_secs_f64()),
        "events": steps.collect::<Value>(),
        "others": history.others,
    })
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
            Happening::EmulatorEnded => "the emulator has ended: its links are down".into(),
            Happening::EmulatorStarted => "the emulator is there again: its links are up".into(),
            Happening::EmulatorSilent => "the emulator does not answer: events wait".into(),
            Happening::EmulatorAnswers => "the emulator answers again".into(),
            Happening::InterfaceGone { node, interface } => {
                format!("{node}:{interface} is gone: its link is down")
            }
            Happening::TrafficStopped { link, from } => {
                place = [link.clone(), from.clone()];
                "its cross traffic was ended by a command".into()
            }
            // Expected entries do not get a line.
            Happening::Watching | Happening::Step { .. } => continue,
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
        table(&["AT", "LINK", "FROM", "DOES", "STATE"], rows.into_iter().map(|(_, row)| row));
    format!("{lines}\n{now}")
}
