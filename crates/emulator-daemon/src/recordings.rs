//! Files that links refer to: traces and delay samples.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use document::Problems;
use emulator::{BadTrace, Chance, Course, Moment, Opportunities, nanos};
use model::topology::{self, Topology};

/// Maximum file size: one day of packets at 50 Mbit/s, one per line.
const LARGEST: u64 = 64 << 20;
/// Maximum size of all of them in bytes. One that has several names counts for each of them.
const LARGEST_TOTAL: usize = if cfg!(test) { 1 << 20 } else { 128 << 20 };

/// Parsed contents of all files that a network's links refer to.
#[derive(Debug, Clone, Default)]
pub struct Recordings {
    traces: BTreeMap<String, Trace>,
    samples: BTreeMap<String, Arc<[f64]>>,
    texts: BTreeMap<String, String>,
}

#[derive(Debug, Clone)]
enum Trace {
    Opportunities(Opportunities),
    Course(Course),
}

/// Contents of the files that one direction of a link refers to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recorded {
    pub(crate) opportunities: Option<Arc<Opportunities>>,
    pub(crate) course: Option<Course>,
    pub(crate) samples: Option<Arc<[f64]>>,
}

/// Errors in a file that a link refers to.
#[derive(Debug, thiserror::Error)]
pub enum BadRecording {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// Name in the topology file.
        name: String,
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A line is invalid.
    #[error(transparent)]
    Line(#[from] Problems),
    /// A line of a file outside of the topology file's directory is invalid.
    #[error("{}: line {line} is invalid, and is not shown, because the file is outside of the topology file's directory: copy it there", path.display())]
    Hidden {
        /// Name in the topology file.
        name: String,
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
    },
}

impl BadRecording {
    /// Converts the error to problems with positions, in the file itself or at its name in the
    /// topology file.
    pub fn problems(self, file: &str, topology: &str) -> Problems {
        let message = self.to_string();
        match self {
            Self::Line(problems) => problems,
            Self::Unreadable { name, .. } | Self::Hidden { name, .. } => {
                Problems::unreadable(file, topology, &name, &message)
            }
        }
    }
}

impl Recordings {
    /// Reads the files of a network. `path` maps a name to the file's path. Lines of files outside of
    /// `directory`, a path without symbolic links, are not shown: the author of a topology may not be
    /// permitted to read what its user may.
    pub fn read(
        topology: &Topology,
        directory: &Path,
        path: impl Fn(&str) -> PathBuf,
    ) -> Result<Self, BadRecording> {
        let (mut all, mut total, mut shown) = (Self::default(), 0, HashSet::new());
        for interface in topology.nodes.iter().flat_map(|node| &node.interfaces) {
            let topology::Impairments { trace, samples, .. } = &interface.impairments;
            let (trace, samples) = (trace.as_deref(), samples.as_deref());
            for name in trace.into_iter().chain(samples) {
                if !all.texts.contains_key(name) {
                    let (text, is_shown) = text(name, path(name), directory)?;
                    total += text.len();
                    if total > LARGEST_TOTAL {
                        return Err(BadRecording::Unreadable {
                            name: name.to_owned(),
                            path: path(name),
                            source: io::Error::new(
                                io::ErrorKind::InvalidInput,
                                format!("all files have more than {} MiB", LARGEST_TOTAL >> 20),
                            ),
                        });
                    }
                    shown.extend(is_shown.then_some(name));
                    all.texts.insert(name.to_owned(), text);
                }
            }
            if let Some(name) = trace.filter(|name| !all.traces.contains_key(*name)) {
                let (path, is_shown) = (path(name), shown.contains(name));
                let text = &all.texts[name];
                let trace = parse_trace(&Source { name, text, path, is_shown })?;
                all.traces.insert(name.to_owned(), trace);
            }
            if let Some(name) = samples.filter(|name| !all.samples.contains_key(*name)) {
                let (path, is_shown) = (path(name), shown.contains(name));
                let text = &all.texts[name];
                let samples = parse_samples(&Source { name, text, path, is_shown })?;
                all.samples.insert(name.to_owned(), samples);
            }
        }
        Ok(all)
    }

    /// Returns the contents of the files by name.
    pub fn into_texts(self) -> BTreeMap<String, String> {
        self.texts
    }

    /// Returns the contents that a direction refers to. `bytes` is its maximum packet size at layer
    /// 2.
    pub(crate) fn of(&self, impairments: &topology::Impairments, bytes: u32) -> Recorded {
        let mut found = Recorded::default();
        match impairments.trace.as_deref().and_then(|name| self.traces.get(name)) {
            // Each opportunity can send one full-sized packet.
            Some(Trace::Opportunities(trace)) => {
                found.opportunities = Some(Arc::new(trace.with_bytes(bytes)));
            }
            Some(Trace::Course(course)) => found.course = Some(course.clone()),
            None => {}
        }
        let samples = impairments.samples.as_deref().and_then(|name| self.samples.get(name));
        found.samples = samples.cloned();
        found
    }
}

/// Reads a text file. Only regular files are accepted, because others may be endless. Also returns true if
/// its lines may be shown.
fn text(name: &str, path: PathBuf, directory: &Path) -> Result<(String, bool), BadRecording> {
    let read = || {
        let file = private::open_regular(&path)?;
        let is_shown = private::is_below(&file, directory).unwrap_or(false);
        Ok((read_open(file)?, is_shown))
    };
    read().map_err(|source| BadRecording::Unreadable { name: name.into(), path, source })
}

pub(crate) fn read(path: &Path) -> io::Result<String> {
    read_open(private::open_regular(path)?)
}

fn read_open(file: File) -> io::Result<String> {
    let refuse = |why: String| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return refuse(format!("it is larger than {} MiB", LARGEST >> 20));
    }
    match String::from_utf8(bytes) {
        // Spreadsheets write a byte order mark.
        Ok(text) => Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)),
        Err(_) => refuse("it is not UTF-8 text".into()),
    }
}

/// A file to parse.
struct Source<'s> {
    name: &'s str,
    text: &'s str,
    path: PathBuf,
    is_shown: bool,
}

impl Source<'_> {
    /// Describes an invalid line, without its words if they may not be shown.
    fn bad(&self, line: usize, message: &str, help: &str) -> BadRecording {
        if self.is_shown {
            let file = self.path.display().to_string();
            return Problems::at_line(&file, self.text, line, message, help).into();
        }
        BadRecording::Hidden { name: self.name.into(), path: self.path.clone(), line }
    }
}

fn parse_trace(source: &Source<'_>) -> Result<Trace, BadRecording> {
    if !topology::is_course(source.name) {
        let help = "a line is a whole number of milliseconds, and none is less than the one before";
        let bad = |why: BadTrace| {
            let line = why.line().unwrap_or_else(|| source.text.lines().count().max(1));
            source.bad(line, &why.to_string(), help)
        };
        return Ok(Trace::Opportunities(Opportunities::parse(source.text, 1).map_err(bad)?));
    }
    let help = "a line has a time later than the one before, and a value for each column or none";
    let bad = |why: topology_file::BadLine| source.bad(why.line, &why.message, help);
    let found = topology_file::Course::parse(source.text).map_err(bad)?;
    let moment = |moment: topology_file::Moment| Moment {
        at: nanos(moment.at),
        delay: moment.delay.map(nanos),
        loss: moment.loss.map(|share| emulator::Loss::Independent(Chance::new(share.part()))),
        rate: moment.rate,
    };
    let moments = found.moments.into_iter().map(moment).collect();
    Ok(Trace::Course(Course::new(moments, found.period.map(nanos))))
}

fn parse_samples(source: &Source<'_>) -> Result<Arc<[f64]>, BadRecording> {
    let help = "a line is a delay with its unit, such as 1.5ms";
    let bad = |why: topology_file::BadLine| source.bad(why.line, &why.message, help);
    let samples = topology_file::samples(source.text).map_err(bad)?;
    Ok(samples.into_iter().map(|sample| nanos(sample) as f64).collect())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    /// Reads the files of a network with one link option, in which names are paths.
    fn read_named(option: &str, name: &str) -> Result<Recordings, BadRecording> {
        let option = option.replace("FILE", name);
        let text =
            format!("name: a\nnodes: {{h1: {{}}, h2: {{}}}}\nlinks: [h1-h2: {{{option}}}]\n");
        let topology = topology_file::parse("a", &text).unwrap();
        Recordings::read(&topology, Path::new("/"), |name| name.into())
    }

    #[test]
    fn a_special_or_too_large_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        nix::unistd::mkfifo(path("pipe").as_str(), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let large = File::create(path("large")).unwrap();
        large.set_len(LARGEST + 1).unwrap();
        fs::write(path("bytes"), [0xff, 0xfe]).unwrap();
        for (file, why) in [
            ("/dev/zero".to_owned(), "not a regular file"),
            (path("pipe"), "not a regular file"),
            (path("."), "not a regular file"),
            (path("large"), "larger than 64 MiB"),
            (path("bytes"), "not UTF-8 text"),
            (path("nowhere"), "No such file"),
        ] {
            for option in ["trace: FILE", "delay: 1ms, jitter: {file: FILE}"] {
                let bad = read_named(option, &file).unwrap_err();
                assert!(bad.to_string().contains(why), "{bad}");
                let problems = bad.problems("lab.yaml", "name: a\n# nothing\n").to_string();
                assert!(problems.contains("lab.yaml:1:1"), "{problems}");
            }
        }
    }

    /// One file has many names: each of them is read, and kept.
    #[test]
    fn all_files_together_have_a_limit() {
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().join("trace").display().to_string();
        fs::write(&name, "1\n".repeat(200 << 10)).unwrap();
        let links = |count: usize| {
            let slashes = (1..=count).map(|number| "/".repeat(number));
            let link = |slash: String| {
                format!("  - h1-h2: {{trace: {}}}\n", name.replacen('/', &slash, 1))
            };
            let text: String = slashes.map(link).collect();
            let topology = format!("name: a\nnodes: {{h1: {{}}, h2: {{}}}}\nlinks:\n{text}");
            let topology = topology_file::parse("a", &topology).unwrap();
            Recordings::read(&topology, Path::new("/"), |name| name.into())
        };
        assert!(links(2).is_ok());
        let why = links(3).unwrap_err().to_string();
        assert!(why.contains("all files have more than 1 MiB"), "{why}");
    }

    #[test]
    fn a_line_that_means_nothing_is_shown() {
        let directory = tempfile::tempdir().unwrap();
        for (name, text, option, place, why) in [
            ("a.trace", "5\n4\n", "trace: FILE", "a.trace:2:1", "earlier"),
            ("b.trace", "0\n\n0\n", "trace: FILE", "b.trace:3:1", "ends at 0 ms"),
            ("c.csv", "time,delay\n1s,x\n", "trace: FILE", "c.csv:2:1", "not a duration"),
            ("d", "1ms\n-2ms", "delay: 1ms, jitter: {file: FILE}", "d:2:1", "negative"),
        ] {
            let path = directory.path().join(name);
            fs::write(&path, text).unwrap();
            let bad = read_named(option, &path.display().to_string()).unwrap_err();
            let problems = bad.problems("lab.yaml", "").to_string();
            assert!(problems.contains(place) && problems.contains(why), "{problems}");
        }
    }

    #[test]
    fn a_line_of_a_file_elsewhere_is_not_shown() {
        let directory = tempfile::tempdir().unwrap();
        let [lab, secret] = ["lab", "secret"].map(|name| directory.path().join(name));
        fs::create_dir(&lab).unwrap();
        fs::write(&secret, "hidden-word\n").unwrap();
        fs::write(directory.path().join("secret.csv"), "time,hidden-word\n1,2\n").unwrap();
        std::os::unix::fs::symlink(&secret, lab.join("link")).unwrap();
        fs::write(lab.join("own"), "shown-word\n").unwrap();
        let secret = secret.display().to_string();
        let said = |option: &str, name: &str| {
            let option = option.replace("FILE", name);
            let text =
                format!("name: a\nnodes: {{h1: {{}}, h2: {{}}}}\nlinks: [h1-h2: {{{option}}}]\n");
            let topology = topology_file::parse("a", &text).unwrap();
            let bad = Recordings::read(&topology, &lab, |name| lab.join(name)).unwrap_err();
            bad.problems("lab.yaml", &text).to_string()
        };
        for option in ["trace: FILE", "delay: 1ms, jitter: {file: FILE}"] {
            for name in [&*secret, "../secret", "link", "../secret.csv"] {
                let said = said(option, name);
                assert!(said.contains("lab.yaml:3:1") && said.contains("copy it there"), "{said}");
                assert!(!said.contains("hidden-word"), "{said}");
            }
            assert!(said(option, "own").contains("shown-word"), "{option}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_not_part_of_a_header() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.csv");
        fs::write(&path, "\u{feff}time (s),delay (ms)\r\n0,20\r\n").unwrap();
        let found = read_named("trace: FILE", &path.display().to_string()).unwrap();
        assert_eq!(found.into_texts().into_values().next().unwrap().chars().next(), Some('t'));
    }
}
