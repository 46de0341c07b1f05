//! Creates the links of a lab, down.

use std::collections::BTreeMap;

use model::topology::{Segment, SegmentKind, Topology};
use netlink::{Batch, Handle, Namespace, VethEnd};

use crate::Error;
use crate::daemons::emulated;
use crate::node::ends;
use crate::node::index::interface_index;
use crate::node::xdp_links;

/// First interface index of the links' far ends. Linux before 6.13 checks a new device's index
/// against those of the requester's namespace: start above every index that a node uses.
const FIRST_PORT: u32 = 1 << 20;

/// The namespaces of a lab.
#[derive(Clone, Copy)]
pub(crate) struct Namespaces<'n> {
    /// Namespaces of nodes, by index.
    pub(crate) nodes: &'n BTreeMap<usize, Namespace>,
    /// Namespaces of the programs of nodes, by index.
    pub(crate) programs: &'n BTreeMap<usize, Namespace>,
    /// Namespace of bridges and of emulated links' devices.
    pub(crate) infrastructure: &'n Namespace,
}

/// Creates all links, down.
pub(crate) fn links(topology: &Topology, namespaces: Namespaces<'_>) -> Result<(), Error> {
    let mut links = Links::new(topology, namespaces)?;
    for (number, segment) in topology.segments.iter().enumerate() {
        links.add(number, segment)?;
    }
    links.commit()
}

/// An interface in a namespace.
type Interface<'n> = (&'n Namespace, String);

/// Links that are not created yet.
struct Links<'n> {
    topology: &'n Topology,
    namespaces: Namespaces<'n>,
    bridges: Handle,
    batch: Batch,
    /// Requests after the links exist, in the infrastructure's namespace.
    plugged: Batch,
    /// Index of the next far end. It has to be known before.
    port: u32,
    /// Interfaces whose far ends run XDP.
    behind_xdp: Vec<Interface<'n>>,
    /// Interfaces whose far ends have AF_XDP sockets.
    behind_sockets: Vec<Interface<'n>>,
    /// Devices of emulated links.
    emulated: Vec<String>,
    /// Ports of switches and of programs, which are set up.
    ports: Vec<(&'n Namespace, String, u32)>,
}

/// The ends of a segment.
#[derive(Clone, Copy)]
struct Ends<'n> {
    topology: &'n Topology,
    segment: &'n Segment,
    namespaces: Namespaces<'n>,
}

impl<'n> Ends<'n> {
    /// The node's own interface.
    fn own(&self, at: usize) -> VethEnd<'n> {
        let end = self.segment.ends[at];
        let interface = &self.topology.nodes[end.node].interfaces[end.interface];
        VethEnd {
            name: &interface.name,
            namespace: &self.namespaces.nodes[&end.node],
            mtu: u32::from(interface.mtu),
            mac: None,
            index: Some(interface_index(end.interface)),
        }
    }

    /// The interface that leads to the link: the node's own, or one beside its program.
    fn end(&self, at: usize) -> VethEnd<'n> {
        let own = self.own(at);
        match self.is_judged(at) {
            true => {
                let namespace = &self.namespaces.programs[&self.segment.ends[at].node];
                VethEnd { namespace, ..own }
            }
            false => own,
        }
    }

    fn is_judged(&self, at: usize) -> bool {
        let end = self.segment.ends[at];
        let node = &self.topology.nodes[end.node];
        node.is_judged(&node.interfaces[end.interface].name)
    }

    fn has_namespace(&self, at: usize) -> bool {
        self.topology.nodes[self.segment.ends[at].node].has_namespace()
    }

    fn runs_xdp(&self, at: usize) -> bool {
        self.topology.nodes[self.segment.ends[at].node].runs_xdp()
    }
}

impl<'n> Links<'n> {
    fn new(topology: &'n Topology, namespaces: Namespaces<'n>) -> Result<Self, Error> {
        Ok(Self {
            topology,
            namespaces,
            bridges: Handle::within(namespaces.infrastructure)?,
            batch: Batch::new(),
            plugged: Batch::new(),
            port: FIRST_PORT,
            behind_xdp: Vec::new(),
            behind_sockets: Vec::new(),
            emulated: Vec::new(),
            ports: Vec::new(),
        })
    }

    /// Adds the links of a segment.
    fn add(&mut self, number: usize, segment: &'n Segment) -> Result<(), Error> {
        let ends = Ends { topology: self.topology, segment, namespaces: self.namespaces };
        let label = format!("link {}", segment.name);
        let all = 0..segment.ends.len();
        for at in all.clone().filter(|at| ends.has_namespace(*at) && ends.is_judged(*at)) {
            self.add_program(&label, ends, at);
        }
        match segment.kind {
            _ if self.topology.is_emulated(segment) => {
                for at in all.filter(|at| ends.has_namespace(*at)) {
                    let name = emulator_daemon::device_name(number, at);
                    self.plug(&label, ends, at, &name);
                    self.plugged.push(&label, netlink::set_up(self.port));
                    self.port += 1;
                    self.emulated.push(name);
                }
            }
            SegmentKind::PointToPoint => {
                self.batch.push(label, netlink::add_veth(&ends.end(0), &ends.end(1)));
                for far in [0, 1] {
                    let end = ends.end(far);
                    self.prepare(ends, 1 - far, (end.namespace, end.name.to_owned()));
                }
            }
            SegmentKind::Lan if let Some(switch) = segment.switch => {
                let switch = &self.namespaces.nodes[&switch];
                for at in all {
                    let name = &*self.topology.nodes[segment.ends[at].node].name;
                    let (end, index) = (ends.end(at), interface_index(at));
                    let far = VethEnd { name, namespace: switch, index: Some(index), ..end };
                    self.batch.push(&label, netlink::add_veth(&end, &far));
                    self.ports.push((switch, name.to_owned(), index));
                    self.behind_sockets.push((end.namespace, end.name.to_owned()));
                    self.prepare(ends, at, (switch, name.to_owned()));
                }
            }
            SegmentKind::Lan => {
                self.bridges.request(&label, netlink::add_bridge(&segment.name, None))?;
                let bridge = self.bridges.link(&segment.name)?.index;
                for at in all {
                    // Two LANs may share a node, so the port is named after its number.
                    self.plug(&label, ends, at, &format!("port{}", self.port));
                    self.plugged.push(&label, netlink::set_master(self.port, Some(bridge)));
                    self.plugged.push(&label, netlink::set_up(self.port));
                    self.port += 1;
                }
                self.plugged.push(label, netlink::set_up(bridge));
            }
        }
        Ok(())
    }

    /// Connects an end with a device of the infrastructure, whose index is the next one.
    fn plug(&mut self, label: &str, ends: Ends<'n>, at: usize, name: &str) {
        let namespace = self.namespaces.infrastructure;
        let end = ends.end(at);
        let far = VethEnd { name, namespace, index: Some(self.port), ..end };
        self.batch.push(label, netlink::add_veth(&end, &far));
        self.prepare(ends, at, (namespace, name.to_owned()));
    }

    /// Connects a node's own interface with the namespace of its programs.
    fn add_program(&mut self, label: &str, ends: Ends<'n>, at: usize) {
        let name = ends::users_end(ends.segment.ends[at].interface);
        let own = ends.own(at);
        // Indexes of nodes and of ports are smaller.
        let index = own.index.map(|index| 2 * FIRST_PORT + index);
        let outward = ends.end(at);
        let users = VethEnd { name: &name, index, ..outward };
        self.batch.push(label, netlink::add_veth(&own, &users));
        for (name, index) in [(name.clone(), index), (outward.name.to_owned(), outward.index)] {
            self.ports.extend(index.map(|index| (outward.namespace, name, index)));
        }
        self.behind_sockets.push((own.namespace, own.name.to_owned()));
    }

    /// Notes what the far end of an end needs.
    fn prepare(&mut self, ends: Ends<'n>, at: usize, far: Interface<'n>) {
        if ends.runs_xdp(at) {
            self.behind_xdp.push(far);
        } else if ends.is_judged(at) {
            self.behind_sockets.push(far);
        }
    }

    /// Creates all links.
    fn commit(mut self) -> Result<(), Error> {
        self.bridges.commit(self.batch)?;
        emulated::disable_ipv6(self.namespaces.infrastructure, &self.emulated)?;
        self.bridges.commit(self.plugged)?;
        for (namespace, name, index) in self.ports {
            Handle::within(namespace)?.request(format!("port {name}"), netlink::set_up(index))?;
        }
        for (namespace, name) in &self.behind_sockets {
            xdp_links::prepare_socket_peer(namespace, name)?;
        }
        let mut behind_xdp = self.behind_xdp.iter();
        behind_xdp.try_for_each(|(namespace, name)| xdp_links::prepare_far_end(namespace, name))
    }
}
