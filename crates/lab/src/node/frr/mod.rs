//! FRR's daemons on a lab's routers, from the distribution's package.

mod daemon;
mod load;
mod user;

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use model::topology::{Routing, Topology};
use netlink::Ids;
use private::Owner;

use crate::error::MachineError;
use crate::life::state::node_directory;
use crate::node::enter::{FRR_RUN, enter, hide_machine, on_thread};
use crate::node::frr_config::config;
use crate::{Cancel, Error};

use daemon::{Daemon, Log};

/// Directories searched for the FRR daemons, in order.
const DIRECTORIES: [&str; 3] = ["/usr/lib/frr", "/usr/libexec/frr", "/usr/sbin"];

/// Timeout for a daemon to start, and for vtysh to load a configuration.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The daemons of a router. zebra is first, since the others connect to it.
fn daemons(topology: &Topology, at: usize) -> Vec<&'static str> {
    let node = &topology.nodes[at];
    let [ipv4, ipv6] = [node.ipv4_routing, node.ipv6_routing];
    let runs = |protocol| ipv4 == protocol || ipv6 == protocol;
    let timers = &topology.timers;
    let bfd = (runs(Routing::Ospf) && timers.ospf.bfd)
        || (runs(Routing::Isis) && timers.isis.bfd)
        || (runs(Routing::Bgp) && timers.bgp.bfd);
    [
        ("zebra", true),
        ("staticd", true),
        // Before the daemons that use it to monitor their neighbors.
        ("bfdd", bfd),
        ("ospfd", ipv4 == Routing::Ospf),
        ("ospf6d", ipv6 == Routing::Ospf),
        ("isisd", runs(Routing::Isis)),
        ("ripd", ipv4 == Routing::Rip),
        ("ripngd", ipv6 == Routing::Rip),
        ("bgpd", runs(Routing::Bgp)),
    ]
    .into_iter()
    .filter_map(|(daemon, runs)| runs.then_some(daemon))
    .collect()
}

/// The FRR installation.
#[derive(Debug, Clone)]
pub(crate) struct Frr {
    programs: PathBuf,
    /// `kaido`, which restricts a daemon before it becomes it.
    kaido: Arc<File>,
    /// User and groups of its daemons, in their user namespace.
    ids: Ids,
    /// The user in the machine's user namespace. It may have been compromised through a malicious
    /// packet.
    user: Owner,
}

impl Frr {
    /// Finds FRR and the daemons that a topology needs. Creates the directory that the system
    /// creates at boot, if it is missing.
    pub(crate) fn find(topology: &Topology, kaido: &Path) -> Result<Self, Error> {
        let programs = DIRECTORIES
            .iter()
            .map(PathBuf::from)
            .find(|directory| directory.join("zebra").exists())
            .ok_or_else(|| {
                Error::Machine(MachineError::NoFrr(Path::new(DIRECTORIES[0]).join("zebra")))
            })?;
        let routers = (0..topology.nodes.len()).filter(|&at| topology.nodes[at].runs_frr());
        for daemon in routers.flat_map(|at| daemons(topology, at)) {
            if !programs.join(daemon).exists() {
                return Err(Error::Machine(MachineError::NoFrr(programs.join(daemon))));
            }
        }
        let kaido = File::open(kaido).map(Arc::new).map_err(Error::file("open", kaido))?;
        let (owner, ids) = user::find()?;
        user::check_namespaces(std::fs::read_to_string("/proc/sys/user/max_user_namespaces"))?;
        if !Path::new(FRR_RUN).is_dir() {
            private::make(Path::new(FRR_RUN)).map_err(Error::file("create", FRR_RUN))?;
            owner.give_directory(Path::new(FRR_RUN)).map_err(Error::file("give away", FRR_RUN))?;
        }
        let [user, group] = [owner.user, owner.group].map(Ids::outside);
        Ok(Self { programs, kaido, ids, user: Owner { user, group } })
    }

    /// A command of `kaido`. Its path may be hidden where the command starts.
    fn kaido(&self) -> Command {
        let mut command = Command::new(format!("/proc/self/fd/{}", self.kaido.as_raw_fd()));
        command.arg0("kaido").current_dir("/");
        command
    }

    /// Starts a router's daemons and loads its configuration.
    pub(crate) fn start(
        &self,
        directory: &Path,
        topology: &Topology,
        at: usize,
        cancel: &Cancel,
    ) -> Result<Router, Error> {
        let node = &topology.nodes[at].name;
        self.write_files(directory, topology, at)?;
        let names = daemons(topology, at);
        let logs: Result<Vec<Log>, Error> =
            names.iter().map(|daemon| Log::open(directory, node, daemon)).collect();
        let logs = logs?;
        let start = || {
            enter(directory, node, true)?;
            hide_machine()?;
            let mut router = Router { daemons: Vec::new() };
            for (daemon, log) in names.into_iter().zip(logs) {
                let mut started = Daemon::start(self, node, daemon, log)?;
                started.wait(cancel)?;
                router.daemons.push(started);
            }
            Ok::<_, Error>(router)
        };
        let mut router = on_thread(start)?;
        // vtysh and users run as root: FRR's user must not replace the sockets to which they
        // connect.
        let run = node_directory(directory, node).join("run");
        self.user.take_back_directory(&run).map_err(Error::file("take back", &run))?;
        on_thread(|| {
            enter(directory, node, true)?;
            load::load(&mut router, topology, at, cancel)
        })?;
        Ok(router)
    }

    /// Creates a router's directories. FRR's user owns only the sockets' directory, until its
    /// daemons have started: vtysh reads the configuration as root.
    fn write_files(&self, directory: &Path, topology: &Topology, at: usize) -> Result<(), Error> {
        let files = node_directory(directory, &topology.nodes[at].name);
        for name in ["etc", "log", "run"] {
            let path = files.join(name);
            private::make(&path).map_err(Error::file("create", &path))?;
        }
        let written = [
            ("etc/frr.conf", config(topology, at)),
            ("etc/vtysh.conf", "service integrated-vtysh-config\n".into()),
        ];
        for (name, text) in written {
            let path = files.join(name);
            private::create(&path, text.as_bytes()).map_err(Error::file("write", &path))?;
        }
        let run = files.join("run");
        self.user.give_directory(&run).map_err(Error::file("give away", &run))
    }
}

/// The daemons of a router, in the order in which they were started.
#[derive(Debug)]
pub(crate) struct Router {
    daemons: Vec<Daemon>,
}

impl Router {
    /// Returns an error if one of the daemons has exited.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        self.daemons.iter_mut().try_for_each(Daemon::check)
    }
}

fn too_late() -> String {
    format!("not within {} s", TIMEOUT.as_secs())
}
