//! Bringing a lab up.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::topology::{Node, NodeKind, RouterKind, Topology};
use netlink::{Handle, Namespace};
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use openvswitch::Installation;
use pathfinder::Routes;
use private::Lock;

use crate::attached;
use crate::daemons::control_plane;
use crate::daemons::emulated;
use crate::daemons::processes::processes;
use crate::daemons::programs;
use crate::daemons::supervised;
use crate::daemons::switch;
use crate::daemons::tenants::{self, has_client};
use crate::daemons::xdp;
use crate::error::MachineError;
use crate::life::journal;
use crate::life::state::{self, Lab, Labs, MARKER, Phase, SOCKET, State, UNNAMED};
use crate::node::build;
use crate::node::ends;
use crate::node::frr::{Frr, Router};
use crate::node::functions;
use crate::node::links::{self, Namespaces};
use crate::node::netem;
use crate::node::xdp_links;
use crate::parallel::in_parallel;
use crate::ready;
use crate::{Cancel, Error};

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

impl Labs {
    /// Brings up the lab that `text`, the content of `file`, describes. Returns once routing has
    /// converged and the controller, if there is one, knows its nodes and has decided on paths. On
    /// failure or cancellation everything is removed.
    pub fn up(
        &self,
        topology: Topology,
        text: &str,
        file: &Path,
        options: &Options,
        cancel: &Cancel,
        progress: Progress<'_>,
    ) -> Result<Lab, Error> {
        let name = options.name.as_deref().unwrap_or(&topology.name).to_owned();
        if !model::is_lab_name(&name) {
            return Err(Error::BadName(name));
        }
        let directory = self.directory(&name);
        check_path(&directory.join(SOCKET))?;
        if topology.has_emulated() {
            check_path(&state::emulator_socket(&directory))?;
        }
        let with_xdp = topology.nodes.iter().filter(|node| node.runs_xdp());
        for node in with_xdp {
            check_path(&xdp::socket(&directory, &node.name))?;
        }
        for node in topology.nodes.iter().filter(|node| has_client(node)) {
            check_path(&tenants::socket(&directory, &node.name))?;
        }
        let frr = check_machine(&topology, options.program.as_deref())?;
        let openvswitch = switch::find(&topology)?;
        let _turn = attached::turn(&topology, cancel)?;
        attached::check(&topology, self, options.attach_only_way_out)?;
        let queues = attached::queues(&topology, self)?;
        let (directory, lock, owner) = self.claim(&name, text, file, options.owned)?;
        let lab = Lab { name, directory, topology, owner };
        match lab.build((frr, openvswitch), file, (options, queues), cancel, progress) {
            Ok(()) => {
                drop(lock);
                Ok(lab)
            }
            Err(error) => {
                // Report the first error; `gc` retries the removal if it fails.
                let _ = self.remove(&lab.directory);
                // Ctrl-C also reaches daemons that are just starting: do not report that they did
                // not start.
                cancel.check()?;
                Err(error)
            }
        }
    }

    /// Creates the lab's directory. It is complete and locked from the moment at which it has its
    /// final name. The second lock is the owner's.
    fn claim(
        &self,
        name: &str,
        text: &str,
        file: &Path,
        owned: bool,
    ) -> Result<(PathBuf, Lock, Option<Lock>), Error> {
        let directory = self.directory(name);
        self.refuse_inside()?;
        let new_name = format!("{UNNAMED}{}", std::process::id());
        let new = self.directory(&new_name);
        if directory.exists() {
            return Err(self.exists(name));
        }
        let mut last = None;
        // Another command may be removing the empty parent directories at this moment.
        for _ in 0..10 {
            let made = self.make_directories(&new);
            let named = made.and_then(|()| self.lock(&new_name)).and_then(|lock| {
                let owner = if owned { Some(state::own(&new)?) } else { None };
                self.name_directory(&new, &directory, name, text, file)?;
                Ok((lock, owner))
            });
            match named {
                Ok((lock, owner)) => return Ok((directory, lock, owner)),
                Err(Error::File { source, .. } | Error::RunDirectory { source, .. })
                    if source.kind() == ErrorKind::NotFound =>
                {
                    last = Some(source);
                }
                Err(error) => {
                    self.remove_files(&new);
                    return Err(error);
                }
            }
        }
        let source = last.unwrap_or_else(|| ErrorKind::NotFound.into());
        Err(Error::RunDirectory { path: self.root().into(), source })
    }

    /// Creates the directory of all labs, and a new directory in it. The former is private to root,
    /// so that other users cannot replace, lock or read files of a lab.
    fn make_directories(&self, new: &Path) -> Result<(), Error> {
        let labs = self.root().join("labs");
        private::check(&labs)
            .and_then(|()| private::make(&labs))
            .map_err(|source| Error::RunDirectory { path: self.root().into(), source })?;
        private::make(&new.join("netns")).map_err(Error::file("create", new))
    }

    /// Fills the new directory and renames it to its final name atomically.
    fn name_directory(
        &self,
        new: &Path,
        directory: &Path,
        name: &str,
        text: &str,
        file: &Path,
    ) -> Result<(), Error> {
        let (marker, yaml) = (new.join(MARKER), new.join("lab.yaml"));
        private::create(&marker, b"").map_err(Error::file("write", marker))?;
        private::create(&yaml, text.as_bytes()).map_err(Error::file("write", yaml))?;
        State::new(file).write(new)?;
        match renameat2(AT_FDCWD, new, AT_FDCWD, directory, RenameFlags::RENAME_NOREPLACE) {
            Err(nix::errno::Errno::EEXIST) => Err(self.exists(name)),
            done => done.map_err(|errno| Error::file("create", directory)(errno.into())),
        }
    }

    /// Removes the directory of a lab that never had its final name: it is this process's own.
    fn remove_files(&self, new: &Path) {
        // Report the error that led here.
        let _ = fs::remove_dir_all(new);
        self.remove_empty_directories();
    }

    /// Rejects bringing up a lab from a node of another one: its mounts would be invisible
    /// elsewhere.
    fn refuse_inside(&self) -> Result<(), Error> {
        let own = std::process::id() as i32;
        match self.names()?.into_iter().find(|name| processes(&self.directory(name)).contains(&own))
        {
            Some(name) => Err(Error::Inside(name)),
            None => Ok(()),
        }
    }

    fn exists(&self, name: &str) -> Error {
        Error::Exists { name: name.into(), phase: self.phase(name).word() }
    }
}

impl Lab {
    fn build(
        &self,
        (frr, openvswitch): (Option<Frr>, Option<Installation>),
        file: &Path,
        (options, queues): (&Options, attached::Queues),
        cancel: &Cancel,
        progress: Progress<'_>,
    ) -> Result<(), Error> {
        let topology = &self.topology;
        let total = topology.nodes.len();
        attached::keep_machine(topology, &self.directory)?;
        let infrastructure = build::infrastructure(&self.directory)?;
        let nodes = topology.nodes.iter().enumerate();
        let with: Vec<usize> = nodes.filter(|(_, n)| n.has_namespace()).map(|(at, _)| at).collect();
        let make = |at: usize| {
            cancel.check()?;
            Ok((
                with[at],
                build::namespace(&self.directory, &topology.nodes[with[at]], frr.as_ref())?,
            ))
        };
        let made = in_parallel(with.len(), make, |at| progress(Stage::Namespaces, at, with.len()))?;
        let namespaces: BTreeMap<usize, Namespace> = made.into_iter().collect();
        progress(Stage::Links, 0, topology.segments.len());
        let programs = ends::namespaces(&self.directory, topology)?;
        links::links(
            topology,
            Namespaces { nodes: &namespaces, programs: &programs, infrastructure: &infrastructure },
        )?;
        self.configure_all(&namespaces, cancel, progress)?;
        if topology.has_emulated() {
            let program = options.program.as_ref().ok_or(Error::NoProgram)?;
            // Emulated links do not forward packets before the emulator runs.
            let files = &options.files;
            emulated::start(&self.directory, files, (topology, queues), program, cancel)?;
        }
        if supervised::is_needed(topology) {
            let program = options.program.as_ref().ok_or(Error::NoProgram)?;
            supervised::start(&self.name, &self.directory, program, cancel)?;
        }
        for (&at, namespace) in &namespaces {
            functions::load_rules(&topology.nodes[at], namespace, file, cancel)?;
        }
        if !programs.is_empty() {
            let program = options.program.as_ref().ok_or(Error::NoProgram)?;
            progress(Stage::Programs, 0, total);
            programs::start_all(&self.directory, topology, file, program, cancel)?;
        }
        if let Some(program) = &options.program
            && topology.nodes.iter().any(Node::runs_xdp)
        {
            progress(Stage::Dataplanes, 0, total);
            // Before there is traffic: attaching to a port may lose packets.
            xdp::start_all(&self.directory, topology, program, cancel)?;
        }
        if let Some(installation) = &openvswitch {
            let program = options.program.as_ref().ok_or(Error::NoProgram)?;
            progress(Stage::Switches, 0, total);
            switch::start_all(&self.directory, topology, file, (installation, program), cancel)?;
        }
        if let Some(frr) = &frr {
            let mut routers = self.start_frr(frr, cancel, progress)?;
            let mut converging =
                |done: usize, total: usize| progress(Stage::Convergence, done, total);
            let limit = options.limit;
            ready::wait(topology, &mut routers, &namespaces, limit, cancel, &mut converging)?;
        }
        if let Some(program) = &options.program
            && topology.controller
        {
            progress(Stage::Daemons, 0, total);
            let started = control_plane::start_all(&self.directory, topology, program, cancel)?;
            control_plane::wait(&self.directory, topology, started, cancel)?;
        }
        cancel.check()?;
        let mut state = State::read(&self.directory)
            .ok_or_else(|| Error::Damaged { name: self.name.clone() })?;
        state.phase = Phase::Ready;
        state.ready_ns = u64::try_from(journal::now().as_nanos()).ok();
        state.write(&self.directory)
    }

    fn configure_all(
        &self,
        namespaces: &BTreeMap<usize, Namespace>,
        cancel: &Cancel,
        progress: Progress<'_>,
    ) -> Result<(), Error> {
        let topology = &self.topology;
        let routes = [Routes::of_all(topology, false), Routes::of_all(topology, true)];
        let devices = |(at, namespace): (usize, &Namespace)| {
            cancel.check()?;
            let mut handle = Handle::within(namespace)?;
            build::devices(topology, at, &mut handle)?;
            if topology.has_srv6() {
                build::tunnel_source(&topology.nodes[at], namespace)?;
            }
            if topology.nodes[at].runs_xdp() {
                xdp_links::make_exits(&topology.nodes[at], namespace)?;
            }
            Ok(())
        };
        let all: Vec<(usize, &Namespace)> = namespaces.iter().map(|(&at, n)| (at, n)).collect();
        let total = all.len();
        in_parallel(total, |at| devices(all[at]), |at| progress(Stage::Nodes, at / 2, total))?;
        // A route needs its neighbor's link to be up at both ends.
        let install = |(at, namespace): (usize, &Namespace)| {
            cancel.check()?;
            let mut handle = Handle::within(namespace)?;
            build::install_routes(topology, at, &mut handle, &routes, |_| true)
        };
        in_parallel(
            total,
            |at| install(all[at]),
            |at| progress(Stage::Nodes, (total + at) / 2, total),
        )?;
        Ok(())
    }

    fn start_frr(
        &self,
        frr: &Frr,
        cancel: &Cancel,
        progress: Progress<'_>,
    ) -> Result<Vec<Router>, Error> {
        let nodes = self.topology.nodes.iter().enumerate();
        let routers: Vec<usize> =
            nodes.filter(|(_, node)| node.runs_frr()).map(|(at, _)| at).collect();
        let start = |at: usize| {
            cancel.check()?;
            frr.start(&self.directory, &self.topology, routers[at], cancel)
        };
        let total = routers.len();
        in_parallel(total, start, |done| progress(Stage::Routers, done, total))
    }
}

/// Checks that a socket can have this path, and that a configuration can contain it.
fn check_path(socket: &Path) -> Result<(), Error> {
    // `sun_path` of `sockaddr_un` has 108 bytes, including the terminating NUL.
    const MAX_PATH: usize = 107;
    if socket.to_str().is_none() {
        return Err(Error::NotUtf8(socket.into()));
    }
    if socket.as_os_str().len() > MAX_PATH {
        return Err(Error::PathTooLong { path: socket.into(), most: MAX_PATH });
    }
    Ok(())
}

/// Checks the machine's prerequisites for this topology. Returns FRR if a router runs it.
fn check_machine(topology: &Topology, program: Option<&Path>) -> Result<Option<Frr>, Error> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Error::Machine(MachineError::NotRoot));
    }
    if !Path::new("/proc/sys/net/ipv6").is_dir() {
        return Err(Error::Machine(MachineError::NoIpv6("the kernel has none")));
    }
    let disabled = fs::read_to_string("/sys/module/ipv6/parameters/disable");
    if disabled.is_ok_and(|value| value.trim() == "1") {
        return Err(Error::Machine(MachineError::NoIpv6(
            "ipv6.disable=1 on the kernel's command line",
        )));
    }
    functions::check_machine(topology)?;
    netem::check(topology)?;
    let needs_frr =
        topology.nodes.iter().any(|node| node.kind == NodeKind::Router(RouterKind::Frr));
    let find = || Frr::find(topology, program.ok_or(Error::NoProgram)?);
    needs_frr.then(find).transpose()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_controllers_socket_has_a_path_that_sockets_can_have() {
        let of_length = |length: usize| check_path(Path::new(&"x".repeat(length)));
        assert!(of_length(107).is_ok());
        let error = of_length(108).unwrap_err();
        assert!(error.is_usage());
        assert!(error.to_string().contains("108 bytes long"), "{error}");
        let odd = Path::new(OsStr::from_bytes(b"/run/\xff/labs"));
        assert!(matches!(check_path(odd), Err(Error::NotUtf8(_))));
    }
}
