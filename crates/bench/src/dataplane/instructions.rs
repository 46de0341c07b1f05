//! `kaido bench instructions`: instructions that a node executes per packet, in a guest with an
//! instruction-counting clock (`make bench-guest`). Elsewhere the same figures are nanoseconds.
//!
//! The guest has VRF and VLAN devices, so this benchmark covers the cases that need them: End.DT4,
//! and the layout of the published system's kernel side, in which packets traverse a tenant's VRF,
//! a cluster's VRF and a VLAN. Service functions are in `function/instructions.rs`.

use std::process::Command;

use anyhow::Context as _;
use bpf::Template;
use bpf::srv6::Sizes;
use dataplane::forwarding::{
    Attachment, Behavior, Endpoint, Forwarding, Owner, Policy, PolicyId, Tags, Upper, Weighted,
};
use srv6::{Form, LookUp, SegmentList, Sid};

use super::bed::{Bed, IN, OUT, Plane, span};
use super::packets::{FAR, SID, SOURCE, STEERED, What};
use crate::{Better, Context, Row, median, row};

/// Size of the packets' inner frames.
const SIZE: usize = 64;
/// Few runs suffice, because the instructions are the same each time. A run ends with a tick of the
/// kernel's clock (4 ms), so it must last many ticks.
const ROUNDS: usize = 2;
const COUNT: u32 = 160_000;
const KERNEL_COUNT: u32 = 40_000;
const VLAN: u16 = 10;
const TENANT: u32 = 1;

/// Runs the benchmark.
pub(super) fn bench(context: &Context<'_>) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for what in What::ALL {
        let mut bed = Bed::new(Sizes::default())?;
        bed.set(what)?;
        rows.extend(measure(context, &bed, what.name(), &what.frame(SIZE))?);
    }
    let mut bed = Bed::new(Sizes::default())?;
    make(&bed, &in_vrf())?;
    bed.take_over()?;
    rows.extend(measure(context, &bed, "End.DT4", &What::EndDx4.frame(SIZE))?);

    let mut bed = Bed::new(Sizes::default())?;
    make(&bed, &layout())?;
    let index = |name| nix::net::if_::if_nametoindex(name);
    let (cluster, vlan) = bed.in_node(|| (index("cluster"), index("out.10")))?;
    bed.apply(layout_in_xdp(cluster?, vlan?))?;
    rows.extend(measure(context, &bed, "layout-in", &What::EndDx4.frame(SIZE))?);
    let mut tagged = What::HEncaps.frame(SIZE);
    tagged.splice(12..12, [0x81, 0, 0, VLAN as u8]);
    rows.extend(measure(context, &bed, "layout-out", &tagged)?);
    rows.extend(super::function::instructions(context)?);
    Ok(rows)
}

/// Commands for the kernel's End.DT4: a VRF with routes to the next hop.
fn in_vrf() -> Vec<String> {
    [
        "ip link add red type vrf table 300",
        "ip link set red up",
        "sysctl -q -w net.vrf.strict_mode=1",
        "ip route add 10.2.0.0/16 via 10.0.2.2 dev out onlink table 300",
        "ip -6 route add fd00:1::1/128 encap seg6local action End.DT4 vrftable 300 dev out",
    ]
    .map(String::from)
    .to_vec()
}

/// Inbound: End.DX4 to the tenant's VRF with a default route to the cluster's VRF, which leads to a
/// VLAN. Outbound: from the VLAN into the cluster's VRF, then into the tenant's, which
/// encapsulates.
fn layout() -> Vec<String> {
    let tenant = ["tenant", "cluster"].into_iter().zip([301, 302]).flat_map(|(name, table)| {
        [format!("ip link add {name} type vrf table {table}"), format!("ip link set {name} up")]
    });
    let vlans = ["in", "out"].into_iter().flat_map(|port| {
        [
            format!("ip link add link {port} name {port}.10 type vlan id {VLAN}"),
            format!("ip link set {port}.10 master cluster up"),
        ]
    });
    let routes = [
        "ip addr add 10.0.3.1/24 dev out.10",
        "ip neigh add 10.0.3.2 lladdr 02:00:00:00:00:0b dev out.10 nud permanent",
        "ip route add 10.99.0.1/32 dev tenant",
        "ip -6 route add fd00:1::1/128 encap seg6local action End.DX4 nh4 10.99.0.1 dev out",
        "ip route add default dev cluster table 301",
        "ip route add 10.2.0.0/16 via 10.0.3.2 dev out.10 table 302",
        "ip route add 10.3.0.0/16 dev tenant table 302",
        "ip route add 10.3.0.0/16 encap seg6 mode encap segs fd00:2::1 dev out table 301",
    ];
    tenant.chain(vlans).chain(routes.map(String::from)).collect()
}

/// The same for the program. Inbound: one lookup in the cluster's table, and the SID's tag.
/// Outbound: a tenant selected by its tag, and the policy of the prefix.
fn layout_in_xdp(cluster: u32, vlan: u32) -> Forwarding {
    let tags = Tags { outer: VLAN, inner: 0 };
    let table = LookUp { table: 302, vrf: Some(cluster) };
    let endpoint = Endpoint { tags, in_kernel: true, ..Endpoint::new(Behavior::EndDt4 { table }) };
    let id = PolicyId::Of(Some(TENANT), STEERED.into());
    let lists = vec![Weighted { segments: SegmentList(vec![Sid(FAR)]), weight: 1 }];
    let policy = Policy { lists, form: Form::Encaps, session: None, in_kernel: true };
    Forwarding {
        source: SOURCE,
        uppers: [(vlan, Upper { port: OUT, tags })].into(),
        attachments: [(Attachment { port: IN, tags }, Owner::Tenant(TENANT))].into(),
        sids: [(SID.into(), endpoint)].into_iter().collect(),
        prefixes: [((TENANT, STEERED.into()), id.clone())].into_iter().collect(),
        policies: [(id, policy)].into_iter().collect(),
        ..Forwarding::default()
    }
}

/// Runs commands in the node's namespace.
fn make(bed: &Bed, lines: &[String]) -> anyhow::Result<()> {
    bed.in_node(|| {
        for line in lines {
            let mut words = line.split(' ');
            let program = words.next().unwrap_or_default();
            let output = Command::new(program).args(words).output().context(line.clone())?;
            let said = String::from_utf8_lossy(&output.stderr);
            anyhow::ensure!(output.status.success(), "{line}: {}", said.trim());
        }
        Ok(())
    })?
}

fn measure(context: &Context<'_>, bed: &Bed, name: &str, frame: &[u8]) -> anyhow::Result<[Row; 2]> {
    context.cancel.check()?;
    (context.say)(name);
    let template = Template::new(frame, 0);
    let mut runs: [Vec<f64>; 3] = Default::default();
    for _ in 0..ROUNDS {
        for (plane, runs) in [Plane::Drop, Plane::Kernel, Plane::Xdp].into_iter().zip(&mut runs) {
            let count = if plane == Plane::Kernel { KERNEL_COUNT } else { COUNT };
            // The difference of two runs removes the fixed cost of a run.
            let (short, long) = (count / 4, count);
            let spent = span(bed, plane, &template, frame, long)?
                - span(bed, plane, &template, frame, short)?;
            runs.push(spent / f64::from(long - short));
        }
    }
    let [drop, kernel, xdp] = runs;
    let generator = median(&drop);
    let net = |runs: &[f64]| runs.iter().map(|run| run - generator).collect::<Vec<_>>();
    let row = |name: &str, ours: &[f64], theirs: &[f64]| {
        row(name, "instructions", ours, Better::Less, Some(median(theirs)))
    };
    Ok([
        row(&format!("{name}/{SIZE}"), &net(&xdp), &net(&kernel)),
        row(&format!("raw/{name}/{SIZE}"), &xdp, &kernel),
    ])
}
