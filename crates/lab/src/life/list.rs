//! The labs of this machine, as `kaido lab ls` shows them.

use std::path::PathBuf;

use serde::Serialize;

use crate::Error;
use crate::daemons::supervised::troubles;
use crate::life::state::{Labs, Phase, State, read_topology};

/// An entry of `kaido lab ls`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Lab name.
    pub name: String,
    /// State of the lab.
    pub phase: Phase,
    /// Topology file from which it was created.
    pub file: PathBuf,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of nodes with an XDP data plane.
    pub xdp: usize,
    /// Start time, in seconds since the Unix epoch.
    pub started: u64,
    /// Descriptions of its problems.
    pub troubles: Vec<String>,
}

impl Labs {
    /// Summaries for `kaido lab ls`.
    pub fn list(&self) -> Result<Vec<Summary>, Error> {
        let summary = |name: String| {
            let directory = self.directory(&name);
            let state = State::read(&directory);
            let topology = read_topology(&directory);
            let (nodes, xdp) = topology.as_ref().map_or((0, 0), |topology| {
                let xdp = topology.nodes.iter().filter(|node| node.runs_xdp()).count();
                (topology.nodes.len(), xdp)
            });
            let (phase, troubles) = match (self.phase(&name), &topology) {
                (Phase::Ready, Some(topology)) => match troubles(&directory, topology) {
                    none if none.is_empty() => (Phase::Ready, none),
                    troubles => (Phase::Degraded, troubles),
                },
                (Phase::Broken, _) => {
                    let words =
                        "the command that it belonged to was killed: `kaido lab gc` removes it";
                    (Phase::Broken, vec![words.into()])
                }
                (Phase::Ready, None) => {
                    (Phase::Broken, vec![Error::Damaged { name: name.clone() }.to_string()])
                }
                (phase, _) => (phase, Vec::new()),
            };
            let (file, started) = state.map_or_else(Default::default, |s| (s.file, s.started));
            Summary { name, phase, file, nodes, xdp, started, troubles }
        };
        Ok(self.names()?.into_iter().map(summary).collect())
    }
}
