//! `kaido network`: shows the nodes and the utilization of their links.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use api::v1;
use output::network::{Neighbor, NetworkInterface, NetworkNode, NodeFunction};

use super::app::{rate, socket};
use crate::cli::NetworkCommand;
use crate::failure::{Done, Failure};
use crate::output::{CLEAR, Output, table};
use crate::runtime::{block_on, nobody_watches};

const REFRESH: Duration = Duration::from_millis(500);

pub(crate) fn run(command: NetworkCommand, output: &Output) -> Done {
    let socket = socket(&command.which)?;
    block_on(async {
        if !command.watch {
            let nodes = nodes(&socket).await?;
            output.print(&all(&nodes), |_| text(&nodes))?;
            return Ok(());
        }
        let watching = async {
            loop {
                let nodes = nodes(&socket).await?;
                output.print(&all(&nodes), |_| format!("{CLEAR}{}", text(&nodes)))?;
                tokio::time::sleep(REFRESH).await;
            }
        };
        tokio::select! {
            ended = watching => ended,
            () = nobody_watches() => Ok(()),
        }
    })?
    .map(|()| ExitCode::SUCCESS)
}

async fn nodes(socket: &Path) -> Result<Vec<v1::NetworkNode>, Failure> {
    let mut client = api::connect(socket).await?;
    let mut nodes = client.get_network(v1::GetNetworkRequest {}).await?.into_inner().nodes;
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(nodes)
}

fn all(nodes: &[v1::NetworkNode]) -> Vec<NetworkNode> {
    nodes.iter().map(node_output).collect()
}

fn text(nodes: &[v1::NetworkNode]) -> String {
    let rows = nodes.iter().flat_map(|node| {
        let state = if node.alive { "alive" } else { "dead" };
        let interfaces = node.interfaces.iter().enumerate();
        interfaces.map(move |(number, interface)| {
            let (name, state) = if number == 0 { (node.name.as_str(), state) } else { ("", "") };
            row(name, state, interface)
        })
    });
    let header =
        ["NODE", "STATE", "INTERFACE", "TO", "LINK", "RATE", "CAPACITY", "", "RESERVED", "LOSS"];
    let interfaces = table(&header, rows);
    let functions = nodes.iter().flat_map(|node| {
        node.functions.iter().map(|function| {
            let state = if function.up { "up" } else { "down" };
            [&function.name, &node.name, &function.sid, state].map(Into::into).to_vec()
        })
    });
    let functions: Vec<Vec<String>> = functions.collect();
    if functions.is_empty() {
        return interfaces;
    }
    let functions = table(&["FUNCTION", "NODE", "SID", "STATE"], functions);
    format!("{interfaces}\n\n{functions}")
}

fn row(node: &str, state: &str, found: &v1::NetworkInterface) -> Vec<String> {
    let interface = found.interface.clone().unwrap_or_default();
    let load = found.load.clone().unwrap_or_default();
    let neighbors: Vec<String> =
        interface.adjacencies.into_iter().map(|adjacency| adjacency.neighbor).collect();
    let link = if interface.up { "up" } else { "down" };
    let congested = if load.congested { " congested" } else { "" };
    vec![
        node.into(),
        state.into(),
        interface.name,
        neighbors.join(", "),
        link.into(),
        rate(load.rate_bps),
        rate(interface.capacity_bps),
        gauge(load.rate_bps, interface.capacity_bps),
        rate(found.reserved_bps),
        format!("{:.1}%{congested}", load.loss * 100.0),
    ]
}

/// Formats the utilization of an interface in ten steps; empty if its rate is not limited.
fn gauge(rate: u64, capacity: u64) -> String {
    const WIDTH: usize = 10;
    if capacity == 0 {
        return String::new();
    }
    let full = (rate as f64 / capacity as f64 * WIDTH as f64).round() as usize;
    let full = full.min(WIDTH);
    format!("{}{}", "█".repeat(full), "·".repeat(WIDTH - full))
}

fn node_output(node: &v1::NetworkNode) -> NetworkNode {
    let function = |function: &v1::Function| NodeFunction {
        name: function.name.clone(),
        sid: function.sid.clone(),
        up: function.up,
    };
    NetworkNode {
        name: node.name.clone(),
        alive: node.alive,
        transit: node.transit,
        functions: node.functions.iter().map(function).collect(),
        end: node.sids.as_ref().map(|sids| sids.end.clone()),
        interfaces: node.interfaces.iter().map(interface_output).collect(),
    }
}

fn interface_output(found: &v1::NetworkInterface) -> NetworkInterface {
    let interface = found.interface.clone().unwrap_or_default();
    let load = found.load.clone().unwrap_or_default();
    let neighbor = |adjacency: v1::Adjacency| Neighbor {
        node: adjacency.neighbor,
        cost: adjacency.cost,
        end_x: adjacency.end_x,
    };
    NetworkInterface {
        name: interface.name,
        up: interface.up,
        capacity_bps: interface.capacity_bps,
        neighbors: interface.adjacencies.into_iter().map(neighbor).collect(),
        rate_bps: load.rate_bps,
        loss: load.loss,
        backlog_bytes: load.backlog_bytes,
        congested: load.congested,
        reserved_bps: found.reserved_bps,
    }
}
