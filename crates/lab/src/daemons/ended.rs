//! Detection of a lab's daemons that have exited, for commands that show the lab.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use model::topology::Topology;
use openvswitch::Instance;

use crate::daemons::control_plane;
use crate::daemons::processes::arguments_of_root;
use crate::daemons::switch;
use crate::daemons::tenants;
use crate::daemons::xdp;
use crate::life::state::node_directory;
use crate::node::ends::judged;

/// Describes each controller, agent, data plane and switch that has exited, with the consequences
/// and the command that restarts it.
pub(crate) fn ended(directory: &Path, topology: &Topology) -> Vec<String> {
    let expected = expected(directory, topology);
    // Only root sees all processes.
    if expected.is_empty() || !nix::unistd::geteuid().is_root() {
        return Vec::new();
    }
    let there = paths_of_processes(&expected);
    let runs = |path: &Path| there.contains(&real(path));
    expected.into_iter().filter(|(path, _)| !runs(path)).map(|(_, words)| words).collect()
}

/// The path in each daemon's arguments that identifies it, and the message if it has exited.
fn expected(directory: &Path, topology: &Topology) -> Vec<(PathBuf, String)> {
    let mut expected = Vec::new();
    if topology.controller {
        let words = "the controller exited; applications keep their paths: \
                     `kaido lab start controller`";
        expected.push((control_plane::controller_config(directory), words.to_owned()));
    }
    for node in &topology.nodes {
        let name = &node.name;
        if node.runs_xdp() {
            let words = format!(
                "the data plane of {name} exited; its ports keep forwarding: \
                 `kaido lab start {name}`"
            );
            expected.push((xdp::known_by(directory, name).1, words));
        }
        if node.has_programs() {
            let judged = judged(node);
            let links = judged.iter().map(|(_, interface)| interface.name.as_str());
            let links = links.collect::<Vec<_>>().join(", ");
            let words = format!(
                "the programs of {name} exited; no packets pass at {links}: `kaido lab start {name}`"
            );
            expected.push((tenants::config(directory, name), words));
        }
        if node.is_switch() {
            // Its wrapper, which has the programs, may have ended alone.
            let ended = match Instance::is_running(&node_directory(directory, name)) {
                true => {
                    format!(
                        "the wrapper of the switch {name} exited; packets follow each tenant's `default`"
                    )
                }
                false => format!("the switch {name} exited; it forwards nothing"),
            };
            let words = format!("{ended}: `kaido lab start {name}`");
            expected.push((tenants::config(directory, name), words));
            let words = format!(
                "the database of the switch {name} exited; its ports keep forwarding: \
                 `kaido lab start {name}`"
            );
            expected.push((switch::database(directory, name), words));
        } else if topology.controller {
            let words = format!("the agent of {name} exited: `kaido lab start {name}`");
            expected.push((node_directory(directory, name).join("node.json"), words));
        }
    }
    expected
}

/// Resolves symbolic links: a daemon may have been started by another name of the same directory,
/// such as /var/run for /run.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.into())
}

/// Arguments of root's processes that are paths to one of the expected files: a daemon's arguments
/// include its configuration or its directory. Other users could name these files as well, and
/// paths that take hours to resolve.
fn paths_of_processes(expected: &[(PathBuf, String)]) -> HashSet<PathBuf> {
    let names: HashSet<&OsStr> = expected.iter().filter_map(|(path, _)| path.file_name()).collect();
    let Ok(entries) = fs::read_dir("/proc") else { return HashSet::new() };
    let processes = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        entry.file_name().to_str()?.parse::<u32>().ok()?;
        arguments_of_root(&entry.path())
    });
    let paths = processes.flat_map(|arguments| {
        let each = arguments.split(|byte| *byte == 0).map(|one| Path::new(OsStr::from_bytes(one)));
        let is_known = |path: &&Path| {
            path.is_absolute() && path.file_name().is_some_and(|name| names.contains(name))
        };
        each.filter(is_known).map(real).collect::<Vec<_>>()
    });
    paths.collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn root_arguments_of_other_users_are_not_read() {
        let expected = [(PathBuf::from("/run/kaido/a/node.yaml"), "a".to_owned())];
        for (user, is_read) in [(0, true), (65534, false)] {
            let mut sleep = Command::new("sleep");
            // Its name is an argument.
            let mut child =
                sleep.arg0("/run/kaido/a/node.yaml").arg("60").uid(user).spawn().unwrap();
            let found = paths_of_processes(&expected);
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(found.contains(Path::new("/run/kaido/a/node.yaml")), is_read, "{user}");
        }
    }
}
