//! The ways of a packet through a node, and a node for each: what one has is not in another's.

use anyhow::{Context as _, ensure};
use bpf::Template;
use bpf::srv6::Sizes;
use netlink::{Batch, Handle, Route, add_route, replace_route, sysctl};

use super::super::bed::{Bed, OUT, Plane};
use super::super::daemon::Daemon;
use super::super::packets::{SID, SOURCE, What, plain};
use super::nft;
use crate::{Better, Context, Row};

/// The published measurement's frames: 126 bytes and 174 more each time.
pub(super) const SIZES: [usize; 9] = [126, 300, 474, 648, 822, 996, 1170, 1344, 1518];
/// An outer header with two segments, and the Ethernet header: what a frame has around its packet.
const AROUND: usize = 40 + 8 + 2 * 16 + 14;

/// How a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Function,
    End,
    DecapsulateAndEncapsulate,
    /// The same with a VRF (End.DT4), which not every kernel has.
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

    /// A frame of `size` bytes.
    pub(super) fn frame(self, size: usize) -> Vec<u8> {
        // What is given is the size on a wire of the packet's own frame, checksum included.
        let inner = size - AROUND + 18;
        match self {
            Self::Function | Self::End => What::End.frame(inner),
            Self::DecapsulateAndEncapsulate | Self::InVrf => What::EndDx4.frame(inner + 16),
            Self::Plain => plain(size + 4),
        }
    }
}

/// A node that does one thing.
pub(super) struct Node {
    way: Way,
    bed: Bed,
    /// Of the node with the function.
    _daemon: Option<Daemon>,
}

impl Node {
    fn new(context: &Context<'_>, way: Way) -> anyhow::Result<Self> {
        let mut bed = Bed::new(Sizes::default())?;
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

    /// What the generator alone takes for a packet, in ns.
    pub(super) fn generator(
        &self,
        template: &Template,
        frame: &[u8],
        count: u32,
    ) -> anyhow::Result<f64> {
        Ok(self.bed.send(Plane::Drop, template, frame, count)?.0)
    }

    /// What a packet takes with the generator, in ns.
    pub(super) fn forward(
        &self,
        template: &Template,
        frame: &[u8],
        count: u32,
    ) -> anyhow::Result<f64> {
        let (whole, arrived) = self.bed.send(Plane::Kernel, template, frame, count)?;
        let lost = u64::from(count).saturating_sub(arrived);
        ensure!(
            // More than the last batches that a run leaves behind.
            lost * 50 < u64::from(count),
            "{lost} of {count} packets were lost on the way of {}: is the machine busy?",
            self.way.name()
        );
        Ok(whole)
    }
}

/// A node for each way that is to be measured.
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

    /// Does something in each.
    pub(super) fn each(&self, work: impl Fn() -> anyhow::Result<()> + Sync) -> anyhow::Result<()> {
        self.0.iter().try_for_each(|node| node.bed.in_node(&work)?)
    }

    /// How many of the hooks an inner packet meets, or a plain one; and how many the outer one.
    pub(super) fn hooks(&self, way: Way) -> anyhow::Result<Vec<Row>> {
        const COUNT: u32 = 1000;
        let (node, frame) = (self.of(way), way.frame(SIZES[0]));
        let template = Template::of(&frame, 0);
        let send = || node.bed.send(Plane::Kernel, &template, &frame, COUNT).map(drop);
        let counts = node.bed.in_node(|| nft::count(send))??;
        let rows = ["", "-outer"].into_iter().zip(counts).map(|(what, counts)| {
            // Each time, and not now and then: the kernel itself sends packets too.
            let met = counts.iter().filter(|count| **count >= u64::from(COUNT)).count();
            let name = format!("hooks/{}{what}", way.name());
            Row::of(&name, "hooks", &[met as f64], Better::More, None)
        });
        Ok(rows.collect())
    }
}

/// Ends the chain, and begins another: the service function of a kernel that has no End.AN.NF.
fn decapsulate_and_encapsulate() -> anyhow::Result<()> {
    switch_hooks_on()?;
    let mut batch = Batch::new();
    batch.push("the end of a chain", add_route(&What::EndDx4.route(OUT)));
    let inner = "10.2.0.0/16".parse().expect("it is a prefix");
    let headend = Route { destination: inner, ..What::HEncaps.route(OUT) };
    batch.push("the beginning of another", replace_route(&headend));
    Ok(Handle::new()?.commit(batch)?)
}

/// The same, with the second look-up in a VRF's table: the published baseline.
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

/// Lets inner packets meet hooks where the kernel decapsulates and encapsulates. It stays so until the
/// machine starts again: the kernel does not switch it off.
fn switch_hooks_on() -> anyhow::Result<()> {
    const KEY: &str = "netfilter/nf_hooks_lwtunnel";
    if sysctl::read(KEY).is_err() {
        // Linux 6.1 keeps it in a module, which nothing that is here would load.
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
