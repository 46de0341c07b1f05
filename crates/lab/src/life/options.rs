//! Options and progress of bringing up a lab.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Options for bringing up a lab.
#[derive(Debug, Clone)]
pub struct Options {
    /// Lab name; the file's own if absent.
    pub name: Option<String>,
    /// Program that runs as Kaido's own daemons, and restricts FRR's. Without it the lab has none,
    /// and all its routers use the kernel's SRv6.
    pub program: Option<PathBuf>,
    /// Timeout for routing to converge.
    pub limit: Duration,
    /// Allows attaching the interface of this machine's only default route.
    pub attach_only_way_out: bool,
    /// Contents of the files that links refer to, by their names.
    pub files: BTreeMap<String, String>,
    /// True if the lab belongs to this process: if the process exits without removing it, `gc`
    /// does.
    pub owned: bool,
}

impl Default for Options {
    fn default() -> Self {
        let limit = Duration::from_secs(120);
        let files = BTreeMap::new();
        Self { name: None, program: None, limit, attach_only_way_out: false, files, owned: false }
    }
}

/// A stage of bringing up a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Creating namespaces.
    Namespaces,
    /// Creating links.
    Links,
    /// Setting addresses, routes and SIDs.
    Nodes,
    /// Starting programs at the ends of links.
    Programs,
    /// Starting XDP data planes.
    Dataplanes,
    /// Starting switches.
    Switches,
    /// Starting FRR.
    Routers,
    /// Waiting for routes.
    Convergence,
    /// Starting Kaido's daemons.
    Daemons,
}

impl Stage {
    /// A description of the stage.
    pub fn words(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Links => "links",
            Self::Nodes => "addresses, routes, SIDs",
            Self::Programs => "P4 programs",
            Self::Dataplanes => "data planes",
            Self::Switches => "switches",
            Self::Routers => "routing daemons",
            Self::Convergence => "routes converging",
            Self::Daemons => "nodes and controller",
        }
    }
}

/// Progress callback: the stage, the number of completed items and their total.
pub type Progress<'p> = &'p mut dyn FnMut(Stage, usize, usize);
