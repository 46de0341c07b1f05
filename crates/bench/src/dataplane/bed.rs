//! A node between a generator and a sink:
//!
//! ```text
//!  world: generator --- in | node | out --- sink :world
//!                 ^--- hole, which drops
//! ```
//! Everything runs on one CPU: a queue between two CPUs could overflow, and the run
//! would then count drops. When drops are the result, node and sink use a second CPU
//! ([`Bed::separate`]). Neighbor entries are permanent.

use std::collections::BTreeSet;
use std::net::IpAddr;

use anyhow::Context as _;
use bpf::attach::{Attached, Mode};
use bpf::measure::go_first;
use bpf::srv6::Sizes;
use bpf::{Measure, Srv6, Template};
use dataplane::forwarding::{
    Attachment, DomainVlan, Forwarding, Kernel, Owner, Port, TableTenants, Tags, import,
};
use dataplane::xdp::Tables;
use ipnet::IpNet;
use model::dataplane::Limits;
use netlink::{
    Address, Batch, GenericHandle, Handle, Mac, Namespace, NextHop, Offload, Route, VethEnd,
    add_address, add_neighbor, add_route, add_veth_with_queues, delete_route, set_offload, set_up,
    sysctl,
};

use super::bisection::Trial;
use super::napi;
use super::packets::{IN_MAC, NEXT4, NEXT6, SID, SOURCE, WORLD_IN_MAC, What};
use crate::processor::keep_on;

const OUT_MAC: Mac = Mac([2, 0, 0, 0, 0, 2]);
const WORLD_OUT_MAC: Mac = Mac([2, 0, 0, 0, 0, 0xb]);

pub(super) const IN: u32 = 10;
pub(super) const OUT: u32 = 11;
const WORLD_IN: u32 = 20;
const WORLD_OUT: u32 = 21;
const HOLE: u32 = 12;
const WORLD_HOLE: u32 = 22;
/// Stands, like [`HOLE`], for a VLAN interface.
const SPARE: u32 = 13;
const WORLD_SPARE: u32 = 23;
/// Accommodates 1500 bytes after an outer header.
const MTU: u32 = 2000;
/// CPU of the generator, and also of the node unless it is [`Bed::separate`].
const FIRST: usize = 0;
/// CPU of the node otherwise.
const OTHER: usize = 1;

/// Forwarding mode of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plane {
    Kernel,
    Xdp,
    /// The program that the daemon has attached to the ports.
    Daemon,
    /// Drop in the hole: measures the cost of the generator.
    Drop,
}

pub(super) struct Bed {
    node: Namespace,
    world: Namespace,
    /// The benchmark's BPF programs, loaded in the world namespace.
    pub(super) measure: Measure,
    pub(super) tables: Tables,
    _hole: Attached,
}

impl Bed {
    pub(super) fn new(sizes: Sizes) -> anyhow::Result<Self> {
        Self::with_queues(sizes, 1)
    }

    /// Creates a node whose interfaces have several queues. A CPU uses the queue of its number.
    pub(super) fn with_queues(sizes: Sizes, queues: u32) -> anyhow::Result<Self> {
        let (node, world) = (Namespace::unnamed()?, Namespace::unnamed()?);
        node.run(prepare)??;
        let mut batch = Batch::new();
        for (what, inner, outer) in [
            ("the way in", ("in", IN_MAC, IN), ("generator", WORLD_IN_MAC, WORLD_IN)),
            ("the way out", ("out", OUT_MAC, OUT), ("sink", WORLD_OUT_MAC, WORLD_OUT)),
            ("the hole", ("hole", IN_MAC, HOLE), ("world-hole", WORLD_IN_MAC, WORLD_HOLE)),
            ("the spare", ("spare", IN_MAC, SPARE), ("world-spare", WORLD_IN_MAC, WORLD_SPARE)),
        ] {
            let pair = add_veth_with_queues(&end(&node, inner), &end(&world, outer), queues);
            batch.push(what, pair);
        }
        Handle::new()?.commit(batch)?;
        node.run(connect_node)??;
        world.run(connect_world)??;
        let measure = world.run(|| Measure::load(SID))??;
        world.run(|| measure.sink_packets(WORLD_OUT))??;
        let tables = Tables::new(node.run(|| Srv6::load(sizes))??);
        let hole = node.run(|| Attached::new(measure.sink(), HOLE, Mode::Native))??;
        Ok(Self { node, world, measure, tables, _hole: hole })
    }

    /// Runs `work` in the node's namespace.
    pub(super) fn in_node<T: Send>(&self, work: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
        Ok(self.node.run(work)?)
    }

    /// Runs `work` in the generator's and sink's namespace.
    pub(super) fn in_world<T: Send>(&self, work: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
        Ok(self.world.run(work)?)
    }

    /// Sets the frame that the generator sends to the node.
    pub(super) fn to_node(&self, template: &Template) -> anyhow::Result<()> {
        Ok(self.measure.set_template(&Template { egress: WORLD_IN, ..*template })?)
    }

    /// Configures one action as a route in the node's kernel, and lets the program take it over.
    pub(super) fn set(&mut self, what: What) -> anyhow::Result<()> {
        self.node.run(|| set_kernel(what))??;
        self.take_over()
    }

    /// Configures the program with the one action of the node's kernel.
    pub(super) fn take_over(&mut self) -> anyhow::Result<()> {
        let kernel = self.node.run(kernel)??;
        let mut wanted = with_ports(Forwarding::default());
        let imported =
            import(&mut wanted, &kernel, &mut TableTenants::default(), &Limits::default());
        anyhow::ensure!(imported.taken == 1, "the route was not taken over: {:?}", imported.left);
        self.apply(wanted)
    }

    /// Configures the program with this forwarding state and the node's ports.
    pub(super) fn apply(&mut self, wanted: Forwarding) -> anyhow::Result<()> {
        let (wanted, tables) = (with_ports(wanted), &mut self.tables);
        self.node.run(|| tables.change_to(wanted))??;
        self.tables.program().begin_generation();
        Ok(())
    }

    /// Sends `count` frames. Returns the time per frame in ns and the number of frames that
    /// arrived.
    pub(super) fn send(
        &self,
        plane: Plane,
        template: &Template,
        frame: &[u8],
        count: u32,
    ) -> anyhow::Result<(f64, u64)> {
        let _at_work = self.engage(plane)?;
        let egress = if plane == Plane::Drop { WORLD_HOLE } else { WORLD_IN };
        self.measure.set_template(&Template { egress, ..*template })?;
        let measure = &self.measure;
        let work = move || -> anyhow::Result<(f64, u64)> {
            pin()?;
            // Warm up: neighbor entries and caches.
            measure.generate(0, frame, count / 20 + 64)?;
            let before = measure.received()?;
            let started = std::time::Instant::now();
            measure.generate(0, frame, count)?;
            let elapsed = started.elapsed().as_nanos() as f64;
            Ok((elapsed / f64::from(count), measure.received()? - before))
        };
        self.world.run(work)?
    }

    /// Sends `count` frames at `rate` frames per second.
    pub(super) fn send_paced(
        &self,
        template: &Template,
        frame: &[u8],
        count: u32,
        rate: f64,
    ) -> anyhow::Result<Trial> {
        self.measure.set_template(&Template { egress: WORLD_IN, ..*template })?;
        let measure = &self.measure;
        let work = move || -> anyhow::Result<Trial> {
            pin()?;
            go_first(0)?;
            let before = measure.received()?;
            let rate = measure.generate_paced(frame, count, rate)?;
            let arrived = settled(measure)? - before;
            let lost = u64::from(count).saturating_sub(arrived);
            Ok(Trial { rate, lost: lost as f64 / f64::from(count) })
        };
        self.world.run(work)?
    }

    /// Sends `count` frames singly at `rate` frames per second. Returns the latencies in ns of
    /// those that arrived.
    pub(super) fn send_stamped(
        &self,
        template: &Template,
        frame: &[u8],
        count: u32,
        rate: f64,
    ) -> anyhow::Result<Vec<f64>> {
        self.measure.set_template(&Template { egress: WORLD_IN, ..*template })?;
        let measure = &self.measure;
        let work = move || -> anyhow::Result<Vec<f64>> {
            pin()?;
            // Warm up: neighbor entries and caches.
            measure.generate_singly(frame, count / 20 + 64, rate)?;
            measure.forget_delays()?;
            measure.generate_singly(frame, count, rate)?;
            Ok(measure.delays()?.into_iter().map(f64::from).collect())
        };
        self.world.run(work)?
    }

    /// Moves the node to another CPU than the generator. The sink then runs where the node
    /// transmits: a separate sink thread would compete with the node's, and its ring would
    /// overflow.
    pub(super) fn separate(&self) -> anyhow::Result<()> {
        let processors = std::thread::available_parallelism()?;
        anyhow::ensure!(processors.get() > OTHER, "it takes two CPUs, and here is one");
        napi::keep_on(&self.node, "in", OTHER)
    }

    /// Attaches the programs that the forwarding mode needs. Dropping the value detaches them.
    pub(super) fn engage(&self, plane: Plane) -> anyhow::Result<Vec<Attached>> {
        let attach = |namespace: &Namespace, program, interface| {
            let attached = namespace.run(|| Attached::new(program, interface, Mode::Native))?;
            attached.context("cannot attach the benchmark's programs")
        };
        let sink = self.measure.sink();
        Ok(match plane {
            // Use the sink after XDP: a sink in XDP would require a copy of the packets.
            Plane::Kernel => Vec::new(),
            Plane::Drop => Vec::new(),
            Plane::Daemon => vec![attach(&self.world, sink, WORLD_OUT)?],
            Plane::Xdp => vec![
                attach(&self.node, self.tables.program().program(), IN)?,
                attach(&self.world, sink, WORLD_OUT)?,
            ],
        })
    }
}

fn prepare() -> anyhow::Result<()> {
    for key in [
        "ipv4/ip_forward",
        "ipv6/conf/all/forwarding",
        "ipv6/conf/all/seg6_enabled",
        "ipv6/conf/default/seg6_enabled",
    ] {
        sysctl::write(key, "1")?;
    }
    Ok(GenericHandle::new()?.set_tunnel_source(SOURCE)?)
}

fn end<'a>(namespace: &'a Namespace, (name, mac, index): (&'a str, Mac, u32)) -> VethEnd<'a> {
    VethEnd { name, namespace, mtu: MTU, mac: Some(mac), index: Some(index) }
}

fn connect_node() -> anyhow::Result<()> {
    // Lets the port receive frames from the generator's XDP program without an XDP program of its
    // own.
    set_offload("in", Offload::Gro, true)?;
    let mut batch = Batch::new();
    for index in [IN, OUT, HOLE, SPARE] {
        batch.push("up", set_up(index));
    }
    for net in ["fd00:b::1/64", "10.0.2.1/24"] {
        let address = Address { interface: OUT, net: net.parse()? };
        batch.push("address", add_address(address));
    }
    for next in [IpAddr::V6(NEXT6), IpAddr::V4(NEXT4)] {
        batch.push("neighbor", add_neighbor(OUT, next, WORLD_OUT_MAC));
    }
    let via = |net: &str, via| -> anyhow::Result<Route> {
        let hop = NextHop { via: Some(via), interface: OUT };
        Ok(Route::new(net.parse::<IpNet>()?, vec![hop]))
    };
    batch.push("route", add_route(&via("fd00:2::/32", NEXT6.into())?));
    batch.push("route", add_route(&via("10.2.0.0/16", NEXT4.into())?));
    Ok(Handle::new()?.commit(batch)?)
}

fn connect_world() -> anyhow::Result<()> {
    let mut batch = Batch::new();
    for index in [WORLD_IN, WORLD_OUT, WORLD_HOLE, WORLD_SPARE] {
        batch.push("up", set_up(index));
    }
    Ok(Handle::new()?.commit(batch)?)
}

/// Adds the node's two ports, unless they have an owner, and VLANs 100 and 101 of the first one. Other
/// interfaces stand for theirs, so that a machine without VLAN devices can measure.
fn with_ports(forwarding: Forwarding) -> Forwarding {
    let port = |name: &str, mac| Port {
        name: name.into(),
        mac,
        owner: Owner::Nobody,
        exit: None,
        closed: false,
        edge: false,
        requires_hmac: false,
    };
    let mut ports = forwarding.ports;
    ports.entry(IN).or_insert(port("in", IN_MAC));
    ports.entry(OUT).or_insert(port("out", OUT_MAC));
    let vlan = |outer: u16| {
        let frames = Attachment { port: IN, tags: Tags { outer, inner: 0 } };
        let (name, closed, requires_hmac) = (format!("in.{outer}"), false, false);
        DomainVlan { name, frames, mac: IN_MAC, closed, requires_hmac }
    };
    let domain_vlans = [(HOLE, vlan(100)), (SPARE, vlan(101))].into();
    Forwarding { ports, domain_vlans, ..forwarding }
}

fn set_kernel(what: What) -> anyhow::Result<()> {
    let mut handle = Handle::new()?;
    let mut batch = Batch::new();
    for route in handle.routes(None, None)?.iter().filter(|route| route.encap.is_some()) {
        batch.push("remove", delete_route(route));
    }
    batch.push("set", add_route(&what.route(OUT)));
    Ok(handle.commit(batch)?)
}

/// Reads the state of the calling thread's namespace.
fn kernel() -> anyhow::Result<Kernel> {
    let mut handle = Handle::new()?;
    Ok(Kernel {
        routes: handle.all_routes()?.routes,
        sids: BTreeSet::new(),
        links: handle.links()?,
        addresses: handle.addresses()?.iter().map(|address| address.net.addr()).collect(),
        addresses_of: Vec::new(),
        source: Some(SOURCE),
        has_rules: false,
        finds_tables: true,
    })
}

/// Returns the sink's count once no more frames arrive.
fn settled(measure: &Measure) -> anyhow::Result<u64> {
    let mut last = measure.received()?;
    loop {
        crate::wait_for(std::time::Duration::from_millis(4));
        let now = measure.received()?;
        if now == last {
            return Ok(now);
        }
        last = now;
    }
}

/// Pins the calling thread to one CPU.
pub(super) fn pin() -> anyhow::Result<()> {
    keep_on(0, FIRST)
}

/// Returns the total cost of `count` packets.
pub(super) fn span(
    bed: &Bed,
    plane: Plane,
    template: &Template,
    frame: &[u8],
    count: u32,
) -> anyhow::Result<f64> {
    let (cost, arrived) = bed.send(plane, template, frame, count)?;
    let lost = u64::from(count).saturating_sub(arrived);
    // More than the last batches of a run, which may not have arrived yet.
    anyhow::ensure!(
        plane == Plane::Drop || lost * 50 < u64::from(count),
        "{lost} of {count} packets were lost ({plane:?})"
    );
    Ok(cost * f64::from(count))
}
