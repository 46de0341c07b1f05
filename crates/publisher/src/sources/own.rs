//! The tenant's own values: constants, files, commands, and lines from standard input.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use vminfo::Unit;

use super::{Board, Source, first_number};
use crate::options::{Named, Options};

/// Number of wrong lines of standard input that are shown: a log may have any number of them.
const SHOWN_LINES: u32 = 16;
/// Maximum number of bytes read from a file, a line or the output of a command.
const MAX_BYTES: u64 = 4096;

pub(super) fn all(options: &Options) -> Vec<Box<dyn Source>> {
    let mut all: Vec<Box<dyn Source>> = Vec::new();
    if !options.set.is_empty() {
        all.push(Box::new(Fixed(options.set.clone())));
    }
    all.extend(options.file.iter().map(|one| Box::new(OfFile(one.clone())) as Box<dyn Source>));
    for one in &options.command {
        all.push(Box::new(Latest::by_command(one, options.period())));
    }
    if options.stdin {
        all.push(Box::new(Latest::by_lines()));
    }
    all
}

/// Constant numbers.
struct Fixed(Vec<(String, u64)>);

impl Source for Fixed {
    fn count(&mut self, _: Instant, to: &mut Board<'_>) {
        for (key, value) in &self.0 {
            to.set(key, Unit::Number, *value);
        }
    }
}

/// The first number in a file.
struct OfFile(Named);

impl Source for OfFile {
    fn count(&mut self, _: Instant, to: &mut Board<'_>) {
        let mut text = String::new();
        // A pipe may never have a writer.
        let read = private::open_regular(Path::new(&self.0.from));
        let read = read.and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text));
        if let Some(value) = read.ok().and_then(|_| first_number(&text)) {
            to.set(&self.0.key, Unit::Number, value);
        }
    }
}

/// Values from another thread; each is set once.
struct Latest(Arc<Mutex<Vec<(String, u64)>>>);

impl Latest {
    fn put(to: &Mutex<Vec<(String, u64)>>, key: &str, value: u64) {
        let mut latest = to.lock().unwrap_or_else(PoisonError::into_inner);
        latest.retain(|(other, _)| other != key);
        // No more keys are published.
        if latest.len() < vminfo::layout::MAX_KEYS {
            latest.push((key.to_owned(), value));
        }
    }

    /// Runs a command repeatedly, which may take any time. A run in progress continues when this
    /// process exits.
    fn by_command(of: &Named, every: Duration) -> Self {
        let latest = Arc::new(Mutex::new(Vec::new()));
        let (to, Named { key, from }) = (Arc::clone(&latest), of.clone());
        std::thread::spawn(move || {
            loop {
                let begin = Instant::now();
                match printed(&from) {
                    Ok(Some(value)) => Self::put(&to, &key, value),
                    // The value becomes stale.
                    Ok(None) => {}
                    Err(why) => {
                        eprintln!("publish: {key}: `{from}` cannot be run: {why}");
                        return;
                    }
                }
                while let Some(left) =
                    every.checked_sub(begin.elapsed()).filter(|left| !left.is_zero())
                {
                    std::thread::park_timeout(left);
                }
            }
        });
        Self(latest)
    }

    /// Reads lines from standard input.
    fn by_lines() -> Self {
        let latest = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&latest);
        std::thread::spawn(move || {
            let mut input = BufReader::new(std::io::stdin());
            let (mut line, mut wrong) = (Vec::new(), 0);
            loop {
                line.clear();
                match (&mut input).take(MAX_BYTES).read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
                let text = String::from_utf8_lossy(&line);
                match said(&text) {
                    Some((key, value)) => Self::put(&to, key, value),
                    None if text.trim().is_empty() => {}
                    None if wrong == SHOWN_LINES => {}
                    None => {
                        wrong += 1;
                        eprintln!("publish: `{}` is not `KEY NUMBER`", shown(text.trim()));
                    }
                }
            }
        });
        Self(latest)
    }
}

impl Source for Latest {
    fn count(&mut self, _: Instant, to: &mut Board<'_>) {
        let latest = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for (key, value) in latest {
            to.set(&key, Unit::Number, value);
        }
    }
}

/// Returns the beginning of a line of others, without characters that a terminal acts on.
fn shown(line: &str) -> String {
    line.chars().take(60).flat_map(char::escape_debug).collect()
}

/// Returns the first number that a command prints; None if it fails or prints more than [`MAX_BYTES`]
/// bytes.
fn printed(command: &str) -> std::io::Result<Option<u64>> {
    let mut command = {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::piped());
        shell.spawn()?
    };
    let mut text = Vec::new();
    let output = command.stdout.take();
    // A command that prints more receives SIGPIPE when the pipe is closed.
    let read = output.map_or(Ok(0), |output| output.take(MAX_BYTES + 1).read_to_end(&mut text));
    let status = command.wait()?;
    let is_whole = status.success() && read? as u64 <= MAX_BYTES;
    Ok(first_number(&String::from_utf8_lossy(&text)).filter(|_| is_whole))
}

/// Parses `KEY NUMBER`; a `=` may also separate them.
fn said(line: &str) -> Option<(&str, u64)> {
    let (key, value) = line.trim().split_once(['=', ' ', '\t'])?;
    let value = value.trim().parse().ok()?;
    vminfo::is_name(key).then_some((key, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::tests::Bed;

    #[test]
    fn lines_have_a_key_and_a_number() {
        assert_eq!(said("a 5\n"), Some(("a", 5)));
        assert_eq!(said(" app.queue=18446744073709551615"), Some(("app.queue", u64::MAX)));
        for wrong in ["a", "a x", "a -1", "a 1.5", "two words 3", " =5", ""] {
            assert_eq!(said(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn files_are_read_again_and_missing_values_grow_old() {
        let mut bed = Bed::new();
        let file = bed.directory().join("depth");
        let from = file.display().to_string();
        let mut source = OfFile(Named { key: "depth".into(), from });
        let now = Instant::now();
        assert_eq!(bed.values(&mut source, now, &["depth"]), [None]);
        std::fs::write(&file, "17 packets\n").unwrap();
        let first = bed.count(&mut source, now);
        assert_eq!(first.entries[0].value, Some(17));
        std::fs::remove_file(&file).unwrap();
        let second = bed.count(&mut source, now);
        assert_eq!(
            (second.entries[0].value, second.entries[0].at_ns),
            (Some(17), first.entries[0].at_ns)
        );
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let mut bed = Bed::new();
        let pipe = bed.directory().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let from = pipe.display().to_string();
        let mut source = OfFile(Named { key: "depth".into(), from });
        assert_eq!(bed.values(&mut source, Instant::now(), &["depth"]), [None]);
    }

    #[test]
    fn lines_of_any_number_of_keys_are_limited() {
        let latest = Latest(Arc::default());
        let mut bed = Bed::new();
        for round in 0..8 {
            for number in 0..1000 {
                Latest::put(&latest.0, &format!("k{round}.{number}"), 1);
            }
            assert_eq!(latest.0.lock().unwrap().len(), vminfo::layout::MAX_KEYS);
            Latest::put(&latest.0, "k0.1", 7);
            let mut source = Latest(Arc::clone(&latest.0));
            let published = bed.count(&mut source, Instant::now());
            assert_eq!(published.entries.len(), vminfo::layout::MAX_KEYS);
        }
        assert!(bed.names() <= 4 * vminfo::layout::MAX_KEYS, "{}", bed.names());
    }

    #[test]
    fn commands_say_a_number() {
        assert_eq!(printed("echo 12 apples").unwrap(), Some(12));
        assert_eq!(printed("echo 12; exit 3").unwrap(), None, "what fails says nothing");
        assert_eq!(printed("echo x").unwrap(), None);
        assert_eq!(
            printed("echo 7; head -c 5000 /dev/zero").unwrap(),
            None,
            "it is not read whole"
        );
        assert_eq!(printed("yes 7").unwrap(), None, "it is not read to its end");
    }
}
