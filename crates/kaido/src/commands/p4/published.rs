//! `kaido p4 published`: shows the published state of a VM, as the host sees it.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use output::p4::{PublicationState, Published, PublishedKey};
use vminfo::{Ages, Entry, Publication, ReadError, Reader};

use crate::failure::{Done, Failure};
use crate::output::{CLEAR, Output, table};
use crate::runtime::{block_on, nobody_watches};

/// Timeout for a heartbeat: without one, the age of the values is unknown.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Interval between two reads.
const LOOK: Duration = Duration::from_millis(20);
/// Interval between two tables of `--live`.
const INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn run(file: &Path, live: bool, output: &Output) -> Done {
    let mut watched = Watched { reader: Reader::new(file), ages: Ages::default(), said: None };
    block_on(async {
        let until = tokio::time::Instant::now() + TIMEOUT;
        loop {
            watched.look().map_err(|why| told(file, &why))?;
            let is_known =
                watched.is_alive() || watched.said.as_ref().is_some_and(|said| said.ended);
            if is_known || tokio::time::Instant::now() >= until {
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        if !live {
            return watched.print(file, output, "");
        }
        let clear = if std::io::IsTerminal::is_terminal(&std::io::stdout()) { CLEAR } else { "" };
        let all = async {
            loop {
                watched.print(file, output, clear)?;
                let next = tokio::time::Instant::now() + INTERVAL;
                while tokio::time::Instant::now() < next {
                    tokio::time::sleep(LOOK).await;
                    watched.look().map_err(|why| told(file, &why))?;
                }
            }
        };
        tokio::select! {
            done = all => done,
            () = nobody_watches() => Ok(()),
        }
    })??;
    Ok(ExitCode::SUCCESS)
}

fn told(file: &Path, why: &ReadError) -> Failure {
    Failure::usage(anyhow!("{}: {why}", file.display()))
}

/// A publication that is read repeatedly.
struct Watched {
    reader: Reader,
    ages: Ages,
    said: Option<Publication>,
}

impl Watched {
    /// Reads the publication. Keeps the previous one if the writer is in the middle of an update.
    fn look(&mut self) -> Result<(), ReadError> {
        match self.reader.read() {
            Ok(said) => {
                self.ages.hear(&said, vminfo::now_ns());
                self.said = Some(said);
                Ok(())
            }
            Err(ReadError::Torn) => Ok(()),
            Err(why) => Err(why),
        }
    }

    fn is_alive(&self) -> bool {
        self.ages.is_heard()
    }

    fn print(&self, file: &Path, output: &Output, clear: &str) -> Result<(), Failure> {
        let now = vminfo::now_ns();
        let Some(said) = &self.said else {
            let why = anyhow!("{}: {}", file.display(), ReadError::Torn);
            return Err(Failure::failed(why));
        };
        let state = match self.ages.silent_ns(now) {
            _ if said.ended => PublicationState::Ended,
            Some(_) => PublicationState::Publishes,
            None => PublicationState::Silent,
        };
        let key = |entry: &Entry| {
            let aged = self.ages.of(said, &entry.name);
            PublishedKey {
                key: entry.name.clone(),
                value: entry.value,
                unit: entry.unit.to_string(),
                // Without a heartbeat of the writer, ages are meaningless.
                age_ns: aged.filter(|_| self.is_alive()).map(|one| one.age_ns(now)),
                fresh: aged.is_some_and(|one| one.is_fresh(now)),
                valid_ns: u64::try_from(entry.valid.as_nanos()).unwrap_or(u64::MAX),
            }
        };
        let published = Published {
            file: file.display().to_string(),
            state,
            heartbeats: said.beat,
            keys: said.entries.iter().map(key).collect(),
        };
        output.print(&published, |published| format!("{clear}{}", text(published)))
    }
}

fn text(published: &Published) -> String {
    let row = |key: &PublishedKey| {
        let none = || "-".to_owned();
        let age = key.age_ns.map(|age| format!("{:.3} s", age as f64 / 1e9));
        let fresh = if key.fresh { "fresh" } else { "stale" };
        vec![
            key.key.clone(),
            key.value.map_or_else(none, |value| value.to_string()),
            key.unit.clone(),
            age.unwrap_or_else(none),
            fresh.to_owned(),
        ]
    };
    let rows = table(&["KEY", "VALUE", "UNIT", "AGE", "STATE"], published.keys.iter().map(row));
    let state = match published.state {
        PublicationState::Publishes => return rows,
        PublicationState::Ended => "its writer exited",
        PublicationState::Silent => "its writer gives no sign of life",
    };
    format!("{rows}\n\n{}: {state}", published.file)
}
