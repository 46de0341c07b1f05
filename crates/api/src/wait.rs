//! What a controller still lacks, and whether data planes and emulators are at work.

use std::path::Path;
use std::time::Duration;

use crate::v1::{self, State};

/// How long a look may take.
const LIMIT: Duration = Duration::from_secs(2);

/// What the controller still waits for, in words: those of `nodes` that are not alive, and the
/// applications that it has not decided on. It blocks: asynchronous code must not call it.
pub fn missing(socket: &Path, nodes: &[String]) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let looked = runtime.ok().and_then(|runtime| {
        runtime.block_on(async { tokio::time::timeout(LIMIT, look(socket, nodes)).await.ok() })
    });
    looked.and_then(Result::ok).unwrap_or_else(|| vec!["its first answer".into()])
}

/// Whether the data plane on a socket answers: it does once it has done what its file says. It
/// blocks: asynchronous code must not call it.
pub fn dataplane_is_at_work(socket: &Path) -> bool {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return false;
    };
    let asked = async {
        let mut client = crate::connect_dataplane(socket).await.ok()?;
        client.get_dataplane(v1::GetDataplaneRequest {}).await.ok()
    };
    runtime.block_on(async { tokio::time::timeout(LIMIT, asked).await }).is_ok_and(|a| a.is_some())
}

/// How an emulator is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It answers.
    There,
    /// It has a socket, and does not answer in time: it is stopped, or has too much to do.
    Silent,
    /// Nobody is there.
    Gone,
}

/// What an emulator answers a question that costs it nothing.
pub async fn emulator_presence(socket: &Path) -> Presence {
    const LIMIT: Duration = Duration::from_secs(1);
    let asked = async {
        let mut emulator = crate::connect_emulator(socket).await.ok()?;
        emulator.check_emulator(v1::CheckEmulatorRequest {}).await.ok()
    };
    match tokio::time::timeout(LIMIT, asked).await {
        Ok(Some(_)) => Presence::There,
        Ok(None) => Presence::Gone,
        Err(_) => Presence::Silent,
    }
}

/// Whether an emulator answers that has a socket. It blocks: asynchronous code must not call it.
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
