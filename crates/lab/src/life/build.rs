//! Making the nodes and links of a lab, and starting its daemons.

use std::collections::BTreeMap;
use std::path::Path;

use model::topology::{Node, Topology};
use netlink::{Handle, Namespace};
use openvswitch::Installation;
use pathfinder::Routes;

use crate::attached;
use crate::daemons::control_plane;
use crate::daemons::emulated;
use crate::daemons::programs;
use crate::daemons::recorded;
use crate::daemons::supervised;
use crate::daemons::switch;
use crate::daemons::xdp;
use crate::life::journal;
use crate::life::options::{Options, Progress, Stage};
use crate::life::state::{Lab, Phase, State};
use crate::node::build;
use crate::node::ends;
use crate::node::frr::{Frr, Router};
use crate::node::functions;
use crate::node::links::{self, Namespaces};
use crate::node::xdp_links;
use crate::parallel::in_parallel;
use crate::ready;
use crate::{Cancel, Error};

/// The programs and options with which a lab is built.
pub(crate) struct Build<'b> {
    pub(crate) frr: Option<Frr>,
    pub(crate) openvswitch: Option<Installation>,
    pub(crate) queues: attached::Queues,
    /// The topology file, to which paths are relative.
    pub(crate) file: &'b Path,
    pub(crate) options: &'b Options,
    pub(crate) cancel: &'b Cancel,
}

impl Build<'_> {
    /// Builds a lab whose directory exists, up to its readiness.
    pub(crate) fn run(&self, lab: &Lab, progress: Progress<'_>) -> Result<(), Error> {
        let topology = &lab.topology;
        attached::keep_machine(topology, &lab.directory)?;
        let infrastructure = build::infrastructure(&lab.directory)?;
        let nodes = topology.nodes.iter().enumerate();
        let with_namespace: Vec<usize> =
            nodes.filter(|(_, n)| n.has_namespace()).map(|(at, _)| at).collect();
        let make = |at: usize| {
            self.cancel.check()?;
            let node = &topology.nodes[with_namespace[at]];
            Ok((with_namespace[at], build::namespace(&lab.directory, node, self.frr.as_ref())?))
        };
        let made = in_parallel(with_namespace.len(), make, |done| {
            progress(Stage::Namespaces, done, with_namespace.len())
        })?;
        let namespaces: BTreeMap<usize, Namespace> = made.into_iter().collect();
        progress(Stage::Links, 0, topology.segments.len());
        let programs = ends::namespaces(&lab.directory, topology)?;
        recorded::write(&lab.directory, &attached::machine(&lab.directory))?;
        links::links(
            topology,
            Namespaces { nodes: &namespaces, programs: &programs, infrastructure: &infrastructure },
        )?;
        self.configure(topology, &namespaces, progress)?;
        self.start(lab, &namespaces, progress)?;
        self.cancel.check()?;
        let mut state =
            State::read(&lab.directory).ok_or_else(|| Error::Damaged { name: lab.name.clone() })?;
        state.phase = Phase::Ready;
        // The owner of a lab holds a lock as long as the lab exists.
        state.holder = state.holder.filter(|_| lab.owner.is_some());
        state.ready_ns = u64::try_from(journal::now().as_nanos()).ok();
        state.write(&lab.directory)
    }

    /// Configures devices and routes of all nodes.
    fn configure(
        &self,
        topology: &Topology,
        namespaces: &BTreeMap<usize, Namespace>,
        progress: Progress<'_>,
    ) -> Result<(), Error> {
        let routes = [Routes::of_all(topology, false), Routes::of_all(topology, true)];
        let devices = |(at, namespace): (usize, &Namespace)| {
            self.cancel.check()?;
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
        in_parallel(total, |at| devices(all[at]), |done| progress(Stage::Nodes, done / 2, total))?;
        // A route needs its neighbor's link to be up at both ends.
        let install = |(at, namespace): (usize, &Namespace)| {
            self.cancel.check()?;
            let mut handle = Handle::within(namespace)?;
            build::install_routes(topology, at, &mut handle, &routes, |_| true)
        };
        in_parallel(
            total,
            |at| install(all[at]),
            |done| progress(Stage::Nodes, (total + done) / 2, total),
        )?;
        Ok(())
    }

    /// Starts all daemons, those that packets need first.
    fn start(
        &self,
        lab: &Lab,
        namespaces: &BTreeMap<usize, Namespace>,
        progress: Progress<'_>,
    ) -> Result<(), Error> {
        let Lab { name, directory, topology, .. } = lab;
        let (cancel, file, total) = (self.cancel, self.file, topology.nodes.len());
        let has = |of: fn(&Node) -> bool| topology.nodes.iter().any(of);
        let program = || self.options.program.as_ref().ok_or(Error::NoProgram);
        if topology.has_emulated() {
            // Emulated links do not forward packets before the emulator runs.
            let files = &self.options.files;
            emulated::start(directory, files, (topology, self.queues.clone()), program()?, cancel)?;
        }
        if supervised::is_needed(topology) {
            supervised::start(name, directory, program()?, cancel)?;
        }
        for (&at, namespace) in namespaces {
            functions::load_rules(&topology.nodes[at], namespace, file, cancel)?;
        }
        if has(Node::has_programs) {
            progress(Stage::Programs, 0, total);
            programs::start_all(directory, topology, file, program()?, cancel)?;
        }
        if let Some(program) = &self.options.program
            && has(Node::runs_xdp)
        {
            progress(Stage::Dataplanes, 0, total);
            // Before there is traffic: attaching to a port may lose packets.
            xdp::start_all(directory, topology, program, cancel)?;
        }
        if let Some(installation) = &self.openvswitch {
            progress(Stage::Switches, 0, total);
            switch::start_all(directory, topology, file, (installation, program()?), cancel)?;
        }
        if let Some(frr) = &self.frr {
            let mut routers = self.start_frr(lab, frr, progress)?;
            let mut converging =
                |done: usize, total: usize| progress(Stage::Convergence, done, total);
            let limit = self.options.limit;
            ready::wait(topology, &mut routers, namespaces, limit, cancel, &mut converging)?;
        }
        if let Some(program) = &self.options.program
            && topology.controller
        {
            progress(Stage::Daemons, 0, total);
            let started = control_plane::start_all(directory, topology, program, cancel)?;
            control_plane::wait(directory, topology, started, cancel)?;
        }
        Ok(())
    }

    fn start_frr(
        &self,
        lab: &Lab,
        frr: &Frr,
        progress: Progress<'_>,
    ) -> Result<Vec<Router>, Error> {
        let nodes = lab.topology.nodes.iter().enumerate();
        let routers: Vec<usize> =
            nodes.filter(|(_, node)| node.runs_frr()).map(|(at, _)| at).collect();
        let start = |at: usize| {
            self.cancel.check()?;
            frr.start(&lab.directory, &lab.topology, routers[at], self.cancel)
        };
        let total = routers.len();
        in_parallel(total, start, |done| progress(Stage::Routers, done, total))
    }
}
