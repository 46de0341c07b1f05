//! Detection of a lab's daemons that have exited, for commands that show the lab.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use model::topology::Topology;

use crate::daemons::control_plane;
use crate::daemons::xdp;
use crate::life::state::node_folder;

/// Describes each controller, agent and data plane that has exited, with the consequences and the
/// command that restarts it.
pub(crate) fn ended(folder: &Path, topology: &Topology) -> Vec<String> {
    let expected = expected(folder, topology);
    // Only root sees all processes.
    if expected.is_empty() || !nix::unistd::geteuid().is_root() {
        return Vec::new();
    }
    let there = paths_of_processes();
    let runs = |path: &Path| there.contains(&real(path));
    expected.into_iter().filter(|(path, _)| !runs(path)).map(|(_, words)| words).collect()
}

/// The path in each daemon's arguments that identifies it, and the message if it has exited.
fn expected(folder: &Path, topology: &Topology) -> Vec<(PathBuf, String)> {
    let mut expected = Vec::new();
    if topology.controller {
        let words = "the controller has ended, and applications stay where they are: \
                     `kaido lab start controller`";
        expected.push((control_plane::controller_config(folder), words.to_owned()));
    }
    for node in &topology.nodes {
        let name = &node.name;
        if node.runs_xdp() {
            let words = format!(
                "the data plane of {name} has ended, and its ports go on as they are: \
                 `kaido lab start {name}`"
            );
            expected.push((xdp::known_by(folder, name).1, words));
        }
        if topology.controller {
            let words = format!("the agent of {name} has ended: `kaido lab start {name}`");
            expected.push((node_folder(folder, name).join("node.json"), words));
        }
    }
    expected
}

/// Resolves symbolic links: a daemon may have been started by another name of the same folder, such
/// as /var/run for /run.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.into())
}

/// All process arguments that are paths: a daemon's arguments include its configuration or its
/// folder.
fn paths_of_processes() -> HashSet<PathBuf> {
    let Ok(entries) = fs::read_dir("/proc") else { return HashSet::new() };
    let processes = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        entry.file_name().to_str()?.parse::<u32>().ok()?;
        fs::read(entry.path().join("cmdline")).ok()
    });
    let paths = processes.flat_map(|arguments| {
        let each = arguments.split(|byte| *byte == 0).filter(|one| one.starts_with(b"/"));
        each.map(|path| real(&PathBuf::from(OsString::from_vec(path.to_vec())))).collect::<Vec<_>>()
    });
    paths.collect()
}
