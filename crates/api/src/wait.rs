//! Readiness checks for controllers, data planes and emulators.

use std::path::Path;
use std::time::Duration;

use crate::v1::{self, State};

/// The timeout of a check.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Descriptions of everything the controller still waits for: those of `nodes` that are not alive,
/// and applications without a decision. Blocking: do not call it from asynchronous code.
pub fn missing(socket: &Path, nodes: &[String]) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let looked = runtime.ok().and_then(|runtime| {
        runtime.block_on(async { tokio::time::timeout(TIMEOUT, look(socket, nodes)).await.ok() })
    });
    looked.and_then(Result::ok).unwrap_or_else(|| vec!["its first answer".into()])
}

/// Returns true if the data plane on a socket responds, which it does once it has applied its file.
/// Blocking: do not call it from asynchronous code.
pub fn dataplane_is_running(socket: &Path) -> bool {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return false;
    };
    let asked = async {
        let mut client = crate::connect_dataplane(socket).await.ok()?;
        client.get_dataplane(v1::GetDataplaneRequest {}).await.ok()
    };
    runtime
        .block_on(async { tokio::time::timeout(TIMEOUT, asked).await })
        .is_ok_and(|a| a.is_some())
}

/// The liveness of an emulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It responds.
    There,
    /// It has a socket, but does not respond in time: it is stopped or overloaded.
    Silent,
    /// There is no emulator.
    Gone,
}

/// Probes an emulator with a request that costs it nothing.
pub async fn emulator_presence(socket: &Path) -> Presence {
    const TIMEOUT: Duration = Duration::from_secs(1);
    let asked = async {
        let mut emulator = crate::connect_emulator(socket).await.ok()?;
        emulator.check_emulator(v1::CheckEmulatorRequest {}).await.ok()
    };
    match tokio::time::timeout(TIMEOUT, asked).await {
        Ok(Some(_)) => Presence::There,
        Ok(None) => Presence::Gone,
        Err(_) => Presence::Silent,
    }
}

/// Returns false if an emulator has a socket but does not respond. Blocking: do not call it from
/// asynchronous code.
pub fn emulator_answers(socket: &Path) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.is_ok_and(|runtime| runtime.block_on(emulator_presence(socket)) != Presence::Silent)
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
