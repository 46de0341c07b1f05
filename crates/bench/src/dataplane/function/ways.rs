//! Forwarding modes, and a separate node for each, so that their configurations do not mix.

use anyhow::{Context as _, ensure};
use bpf::Template;
use bpf::srv6::Sizes;
use netlink::{Batch, Handle, Route, add_route, replace_route, sysctl};

use super::super::bed::{Bed, OUT, Plane};
use super::super::daemon::Daemon;
use super::super::packets::{SID, SOURCE, What, plain};
use super::nft;
use crate::{Better, Context, Row, row};

/// Frame sizes of the published measurement: 126 bytes, then steps of 174.
pub(super) const SIZES: [usize; 9] = [126, 300, 474, 648, 822, 996, 1170, 1344, 1518];
/// Bytes around a packet: the outer header with two segments, and the Ethernet header.
const AROUND: usize = 40 + 8 + 2 * 16 + 14;

/// Forwarding mode of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Function,
    End,
    DecapsulateAndEncapsulate,
    /// The same with a VRF (End.DT4), which not every kernel supports.
    InVrf,
    Plain,
}

impl Way {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Function => "End.AN.NF",
            Self::End => "End",
            Self::DecapsulateAndEncapsulate => "End.DX4+H.Encaps",
            Self::InVrf => "End.DT4+H.Encaps",
            Self::Plain => "forwarding",
        }
    }

    /// Returns a frame of `size` bytes.
    pub(super) fn frame(self, size: usize) -> Vec<u8> {
        // The size is that of the packet's own frame on the wire, frame check sequence included.
        let inner = size - AROUND + 18;
        match self {
            Self::Function | Self::End => What::End.frame(inner),
            Self::DecapsulateAndEncapsulate | Self::InVrf => What::EndDx4.frame(inner + 16),
            Self::Plain => plain(size + 4),
        }
    }
}

/// A node that performs one action.
pub(super) struct Node {
    way: Way,
    bed: Bed,
    /// Only for the node with the function.
    _daemon: Option<Daemon>,
}

impl Node {
    fn new(context: &Context<'_>, way: Way) -> anyhow::Result<Self> {
        Self::with_queues(context, way, 1)
    }

    /// Creates a node whose interfaces have several queues.
    pub(super) fn with_queues(
        context: &Context<'_>,
        way: Way,
        queues: u32,
    ) -> anyhow::Result<Self> {
        let mut bed = Bed::with_queues(Sizes::default(), queues)?;
        bed.in_node(|| -> anyhow::Result<()> {
            nft::empty_chains("inet")?;
            Ok(sysctl::write("ipv4/ip_early_demux", "0")?)
        })??;
        let mut daemon = None;
        match way {
            Way::Function => {
                let started = Daemon::start(context, &bed)?;
                started.apply(&format!(
                    "source: \"{SOURCE}\"\nlocators: [\"fd00:1::/64\"]\n\
                     ports: {{in: {{}}, out: {{}}}}\nsids: {{\"{SID}\": End.AN.NF}}\n"
                ))?;
                daemon = Some(started);
            }
            Way::End => bed.set(What::End)?,
            Way::DecapsulateAndEncapsulate => bed.in_node(decapsulate_and_encapsulate)??,
            Way::InVrf => bed.in_node(in_vrf)??,
            Way::Plain => (),
        }
        Ok(Self { way, bed, _daemon: daemon })
    }

    pub(super) fn bed(&self) -> &Bed {
        &self.bed
    }

    /// Returns the cost of the generator alone per packet, in ns.
    pub(super) fn generator(
        &self,
        template: &Template,
        frame: &[u8],
        count: u32,
    ) -> anyhow::Result<f64> {
        Ok(self.bed.send(Plane::Drop, template, frame, count)?.0)
    }

    /// Returns the cost of a packet including the generator, in ns.
    pub(super) fn forward(
        &self,
        template: &Template,
        frame: &[u8],
        count: u32,
    ) -> anyhow::Result<f64> {
        let (whole, arrived) = self.bed.send(Plane::Kernel, template, frame, count)?;
        let lost = u64::from(count).saturating_sub(arrived);
        ensure!(
            // More than the last batches of a run, which may not have arrived yet.
            lost * 50 < u64::from(count),
            "{lost} of {count} packets were lost on the way of {}: is the machine busy?",
            self.way.name()
        );
        Ok(whole)
    }
}

/// A node for each mode to be measured.
pub(super) struct Nodes(Vec<Node>);

impl Nodes {
    pub(super) fn new(
        context: &Context<'_>,
        ways: impl IntoIterator<Item = Way>,
    ) -> anyhow::Result<Self> {
        Ok(Self(ways.into_iter().map(|way| Node::new(context, way)).collect::<Result<_, _>>()?))
    }

    pub(super) fn of(&self, way: Way) -> &Node {
        self.0.iter().find(|node| node.way == way).expect("each way that is asked for has a node")
    }

    /// Runs a closure in each node's namespace.
    pub(super) fn each(&self, work: impl Fn() -> anyhow::Result<()> + Sync) -> anyhow::Result<()> {
        self.0.iter().try_for_each(|node| node.bed.in_node(&work)?)
    }

    /// Counts the hooks that an inner (or plain) packet traverses, and those of the outer packet.
    pub(super) fn hooks(&self, way: Way) -> anyhow::Result<Vec<Row>> {
        const COUNT: u32 = 1000;
        let (node, frame) = (self.of(way), way.frame(SIZES[0]));
        let template = Template::new(&frame, 0);
        let send = || node.bed.send(Plane::Kernel, &template, &frame, COUNT).map(drop);
        let counts = node.bed.in_node(|| nft::count(send))??;
        let rows = ["", "-outer"].into_iter().zip(counts).map(|(what, counts)| {
            // Only hooks traversed by every packet count: the kernel itself sends packets as well.
            let met = counts.iter().filter(|count| **count >= u64::from(COUNT)).count();
            let name = format!("hooks/{}{what}", way.name());
            row(&name, "hooks", &[met as f64], Better::More, None)
        });
        Ok(rows.collect())
    }
}

/// Terminates the chain and starts another one: the service function of a kernel without End.AN.NF.
fn decapsulate_and_encapsulate() -> anyhow::Result<()> {
    switch_hooks_on()?;
    let mut batch = Batch::new();
    batch.push("the end of a chain", add_route(&What::EndDx4.route(OUT)));
    let inner = "10.2.0.0/16".parse().expect("it is a prefix");
    let headend = Route { destination: inner, ..What::HEncaps.route(OUT) };
    batch.push("the beginning of another", replace_route(&headend));
    Ok(Handle::new()?.commit(batch)?)
}

/// The same with the second lookup in a VRF's table: the published baseline.
fn in_vrf() -> anyhow::Result<()> {
    switch_hooks_on()?;
    for line in [
        "link add red type vrf table 300",
        "link set red up",
        "route add 10.2.0.0/16 encap seg6 mode encap segs fd00:2::1 dev out table 300",
    ] {
        ip(line)?;
    }
    sysctl::write("vrf/strict_mode", "1")?;
    ip("-6 route add fd00:1::1/128 encap seg6local action End.DT4 vrftable 300 dev out")
}

/// Enables netfilter hooks for inner packets when the kernel decapsulates and encapsulates. The
/// kernel cannot disable them again until a reboot.
fn switch_hooks_on() -> anyhow::Result<()> {
    const KEY: &str = "netfilter/nf_hooks_lwtunnel";
    if sysctl::read(KEY).is_err() {
        // In Linux 6.1 the key belongs to a module that is not loaded automatically.
        std::process::Command::new("modprobe").arg("nf_conntrack").status().context("modprobe")?;
    }
    Ok(sysctl::write(KEY, "1")?)
}

fn ip(line: &str) -> anyhow::Result<()> {
    let output = std::process::Command::new("ip").args(line.split(' ')).output();
    let output = output.context("cannot start ip (package iproute2)")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {line}: {}", said.trim());
    Ok(())
}
