//! Reads topology files, and the files that they name.

use std::path::{Path, PathBuf};

use document::Problems;
use emulator_daemon::Recordings;
use model::topology::Topology;

use super::mistakes::mistakes;
use super::xsk::tenants::check_programs;
use crate::failure::Failure;
use crate::output::Output;

/// Maximum size of a topology file, in bytes; real ones are far smaller.
pub(super) const LARGEST_FILE: u64 = 5 << 20;

/// A topology file, with the files that its links name.
pub(super) struct TopologyFile {
    pub(super) text: String,
    pub(super) topology: Topology,
    pub(super) recordings: Recordings,
    /// Path of the file that was read, without symbolic links: another file may have taken its place.
    pub(super) path: PathBuf,
}

/// Reads and checks a topology file; also returns its text.
pub(crate) fn read_topology(file: &Path, output: &Output) -> Result<(String, Topology), Failure> {
    let (text, topology, _) = read_with_path(file, output)?;
    Ok((text, topology))
}

fn read_with_path(file: &Path, output: &Output) -> Result<(String, Topology, PathBuf), Failure> {
    let name = file.display().to_string();
    let (text, path) = crate::input::read_with_path(file, "topology file", LARGEST_FILE)?;
    match topology_file::parse(&name, &text) {
        Ok(topology) => Ok((text, topology, path)),
        Err(problems) => Err(mistakes(&problems, output)),
    }
}

/// Reads and checks a topology file, and all files that it names.
pub(super) fn read_all(file: &Path, output: &Output) -> Result<TopologyFile, Failure> {
    let read = read_recorded(file, output)?;
    let TopologyFile { text, topology, path, .. } = &read;
    if let Some((rules, error)) = lab::unreadable_rules(topology, path) {
        let (name, why) = (file.display().to_string(), Failure::failed(error).text());
        let problems = Problems::unreadable(&name, text, rules, &why);
        return Err(mistakes(&problems, output));
    }
    if let Some((named, why)) = check_programs(topology, path, output)? {
        let name = file.display().to_string();
        let why = format!("cannot read {}: {why}", path.with_file_name(&named).display());
        return Err(mistakes(&Problems::unreadable(&name, text, &named, &why), output));
    }
    Ok(read)
}

/// Does the same with the files that its links name, but not with those of its functions.
pub(super) fn read_recorded(file: &Path, output: &Output) -> Result<TopologyFile, Failure> {
    let (text, topology, path) = read_with_path(file, output)?;
    let beside = |name: &str| path.with_file_name(name);
    let directory = path.parent().unwrap_or(Path::new(""));
    let recordings = Recordings::read(&topology, directory, beside).map_err(|bad| {
        let problems = bad.problems(&file.display().to_string(), &text);
        mistakes(&problems, output)
    })?;
    Ok(TopologyFile { text, topology, recordings, path })
}
