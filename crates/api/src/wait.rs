//! Waiting for a controller to know its domain.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::v1::{self, State};

/// What a controller still lacks when patience ends.
#[derive(Debug, thiserror::Error)]
#[error("after {} s the controller still waits for {}", limit.as_secs(), missing.join(", "))]
pub struct Incomplete {
    /// How long it was waited for.
    pub limit: Duration,
    /// Nodes that are not alive, applications that are not placed.
    pub missing: Vec<String>,
}

/// Waits until all of `nodes` are alive and every application has been decided on.
pub async fn wait_until_complete(
    socket: &Path,
    nodes: &[String],
    limit: Duration,
) -> Result<(), Incomplete> {
    let started = Instant::now();
    loop {
        let missing = match look(socket, nodes).await {
            Ok(missing) => missing,
            Err(_) => vec!["its first answer".into()],
        };
        if missing.is_empty() {
            return Ok(());
        }
        if started.elapsed() > limit {
            return Err(Incomplete { limit, missing });
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn look(
    socket: &Path,
    nodes: &[String],
) -> Result<Vec<String>, Box<dyn std::error::Error + Send + Sync>> {
    let mut client = crate::connect(socket).await?;
    let network = client.get_network(v1::GetNetworkRequest {}).await?.into_inner();
    let alive = |name: &&String| network.nodes.iter().any(|n| n.alive && n.name == **name);
    let absent = nodes.iter().filter(|name| !alive(name));
    let mut missing: Vec<String> = absent.map(|name| format!("node {name}")).collect();
    let list = client.list_applications(v1::ListApplicationsRequest {}).await?.into_inner();
    for status in list.applications {
        if status.state() == State::Pending {
            let name = status.application.unwrap_or_default().name;
            missing.push(format!("application {name}"));
        }
    }
    Ok(missing)
}
