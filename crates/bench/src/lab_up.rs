//! Time to bring a lab up, compared with a shell script of equivalent `ip` commands, and the time
//! for a large lab.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use lab::Options;
use model::topology::Topology;
use pathfinder::Routes;

use crate::{Better, Context, Row, row};

const NODES: usize = 100;
const LAB: &str = "bench-lab";
/// A fabric of 1,000 nodes.
const FABRIC: &str = include_str!("../../../labs/leaf-spine-1000.yaml");
/// The kernel destroys a lab's namespaces after `down` has returned, which delays other operations.
const SETTLING: Duration = Duration::from_secs(30);

/// Brings a ring of 100 static routers up and down, alternating with the script, and then a large
/// fabric.
pub fn bench(context: &Context<'_>, quick: bool) -> Result<Vec<Row>> {
    let mut rows = ring_and_script(context, quick)?;
    rows.extend(fabric(context, if quick { 1 } else { 5 })?);
    Ok(rows)
}

/// Measures a leaf-spine fabric of 1,000 nodes: time, and memory used meanwhile.
fn fabric(context: &Context<'_>, runs: usize) -> Result<Vec<Row>> {
    let topology = topology_file::parse("leaf-spine-1000", FABRIC)?;
    let (mut up, mut down, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for number in 1..=runs {
        (context.say)("the kernel destroys namespaces");
        context.cancel.wait(SETTLING)?;
        (context.say)(&format!("a fabric of 1,000 nodes, run {number} of {runs}"));
        let before = available_memory()?;
        let started = Instant::now();
        bring_up(context, &topology, FABRIC)?;
        up.push(started.elapsed().as_secs_f64());
        memory.push(before - available_memory()?);
        let started = Instant::now();
        context.labs.down(LAB)?;
        down.push(started.elapsed().as_secs_f64());
    }
    Ok(vec![
        row("up/1000", "s", &up, Better::Less, None),
        row("down/1000", "s", &down, Better::Less, None),
        row("memory/1000", "MiB", &memory, Better::Less, None),
    ])
}

/// Returns the kernel's available memory in MiB.
fn available_memory() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/meminfo").context("cannot read /proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kib.context("/proc/meminfo does not say what is available")? / 1024.0)
}

fn ring_and_script(context: &Context<'_>, quick: bool) -> Result<Vec<Row>> {
    let runs = if quick { 3 } else { 7 };
    let text = ring(NODES);
    let topology = topology_file::parse("ring", &text)?;
    let script = Script::new(&topology);
    let (mut up, mut down, mut shell) = (Vec::new(), Vec::new(), Vec::new());
    for number in 1..=runs {
        context.cancel.check()?;
        (context.say)(&format!("a ring of {NODES} nodes, run {number} of {runs}"));
        let started = Instant::now();
        bring_up(context, &topology, &text)?;
        up.push(started.elapsed().as_secs_f64());
        let started = Instant::now();
        context.labs.down(LAB)?;
        down.push(started.elapsed().as_secs_f64());
        // The script takes many times longer, so fewer runs suffice.
        if number <= if quick { 1 } else { 3 } {
            (context.say)(&format!("the same by a script of {} commands", script.commands));
            shell.push(script.run()?);
        }
    }
    let baseline = crate::median(&shell);
    Ok(vec![
        row("up/100", "s", &up, Better::Less, Some(baseline)),
        row("down/100", "s", &down, Better::Less, None),
    ])
}

fn bring_up(context: &Context<'_>, topology: &Topology, text: &str) -> Result<()> {
    let options = Options { name: Some(LAB.into()), ..Options::default() };
    let mut silent = |_: lab::Stage, _: usize, _: usize| {};
    let (file, cancel) = (Path::new("ring.yaml"), &context.cancel);
    context.labs.up(topology.clone(), text, file, &options, cancel, &mut silent)?;
    Ok(())
}

fn ring(nodes: usize) -> String {
    let mut text = String::from("name: ring\nnodes:\n");
    // Writing to a string cannot fail.
    for n in 1..=nodes {
        let _ = writeln!(text, "  r{n}: {{router: linux, srv6: false}}");
    }
    text.push_str("links:\n");
    for n in 1..=nodes {
        let _ = writeln!(text, "  - r{n}-r{}", n % nodes + 1);
    }
    text
}

/// A shell script that creates a topology's namespaces, links, addresses and routes, and another
/// one to remove them.
struct Script {
    up: String,
    down: String,
    commands: usize,
}

impl Script {
    fn new(topology: &Topology) -> Self {
        // Unique names: the script stops at the first name that already exists.
        let prefix = format!("kaido-bench-{}-", std::process::id());
        let name = |node: usize| format!("{prefix}{}", topology.nodes[node].name);
        let (mut up, mut down) = (String::from("set -e\n"), String::new());
        for (at, _) in topology.nodes.iter().enumerate() {
            let _ = writeln!(up, "ip netns add {}", name(at));
            let _ = writeln!(down, "ip netns del {}", name(at));
            let _ = writeln!(
                up,
                "ip netns exec {} sysctl -qw net.ipv4.ip_forward=1 \
                 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0",
                name(at)
            );
        }
        for segment in &topology.segments {
            let end = |at: usize| {
                let end = segment.ends[at];
                let interface = &topology.nodes[end.node].interfaces[end.interface];
                format!("name {} netns {}", interface.name, name(end.node))
            };
            let _ = writeln!(up, "ip link add {} type veth peer {}", end(0), end(1));
        }
        for (at, node) in topology.nodes.iter().enumerate() {
            let namespace = name(at);
            let _ = writeln!(up, "ip -n {namespace} link set lo up");
            let loopbacks = [node.loopback4.map(IpAddr::V4), node.loopback6.map(IpAddr::V6)];
            for address in loopbacks.into_iter().flatten() {
                let _ = writeln!(up, "ip -n {namespace} addr add {address} dev lo");
            }
            for interface in &node.interfaces {
                let device = &interface.name;
                let _ = writeln!(up, "ip -n {namespace} link set {device} up");
                let _ = writeln!(up, "ip -n {namespace} addr add {} dev {device}", interface.ipv4);
                let ipv6 = interface.ipv6;
                let _ = writeln!(up, "ip -n {namespace} addr add {ipv6} dev {device} nodad");
            }
        }
        for ipv6 in [false, true] {
            let routes = Routes::of_all(topology, ipv6);
            for at in 0..topology.nodes.len() {
                for (prefix, interfaces) in routes.aggregated(at) {
                    let hops: String =
                        interfaces.iter().map(|&i| hop(topology, at, i, ipv6)).collect();
                    let _ = writeln!(up, "ip -n {} route add {prefix}{hops}", name(at));
                }
            }
        }
        let commands = up.lines().count() - 1;
        Self { up, down, commands }
    }

    /// Runs the script, returns the time that it took, and removes its namespaces.
    fn run(&self) -> Result<f64> {
        let started = Instant::now();
        let done = shell(&self.up);
        let elapsed = started.elapsed().as_secs_f64();
        // Only namespaces created by this script have these names.
        shell(&self.down)?;
        done.map(|()| elapsed)
    }
}

/// Pipes a script to a shell, which executes it as it reads.
fn shell(script: &str) -> Result<()> {
    let mut shell = Command::new("sh");
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = shell.spawn().context("cannot run sh")?;
    let written = child.stdin.take().context("a pipe was asked for")?.write_all(script.as_bytes());
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("the script failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(written?)
}

fn hop(topology: &Topology, node: usize, interface: usize, ipv6: bool) -> String {
    let interface = &topology.nodes[node].interfaces[interface];
    let peer = interface.adjacencies[0];
    let peer = &topology.nodes[peer.node].interfaces[peer.interface];
    let address = if ipv6 { peer.ipv6.addr().to_string() } else { peer.ipv4.addr().to_string() };
    format!(" nexthop via {address} dev {}", interface.name)
}
