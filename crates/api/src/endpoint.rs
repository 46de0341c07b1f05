//! Connections to daemons.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper_util::rt::TokioIo;
use tonic::transport::{Channel, Endpoint, Uri};

use crate::v1::controller_client::ControllerClient;
use crate::v1::dataplane_client::DataplaneClient;
use crate::v1::emulator_client::EmulatorClient;
use crate::v1::xsk_client::XskClient;

/// Maximum size of a message to or from a data plane in bytes: a file with a million entries, and the
/// response that lists them.
pub const LARGEST_MESSAGE: usize = 1 << 30;

/// A daemon is not reachable.
#[derive(Debug, thiserror::Error)]
#[error("no {peer} answers on {}: is it running?{}", path.display(), start(peer))]
pub struct ConnectError {
    /// The kind of daemon.
    pub peer: &'static str,
    /// The socket.
    pub path: PathBuf,
    /// The cause.
    #[source]
    pub source: tonic::transport::Error,
}

const EMULATOR: &str = "emulator";
const DATAPLANE: &str = "data plane";

/// The command that starts the daemon. An emulator always belongs to a lab.
fn start(peer: &str) -> &'static str {
    match peer {
        EMULATOR => " `kaido lab start emulator` starts it again",
        DATAPLANE => {
            " `kaido dataplane run` starts it, and `kaido lab start NODE` that of a lab's node"
        }
        _ => "",
    }
}

/// Connects to the controller on the Unix socket `path`.
pub async fn connect(path: &Path) -> Result<ControllerClient<Channel>, ConnectError> {
    Ok(ControllerClient::new(channel("controller", path, Duration::from_secs(10)).await?))
}

/// Connects to the data plane on the Unix socket `path`.
pub async fn connect_dataplane(path: &Path) -> Result<DataplaneClient<Channel>, ConnectError> {
    // Applying a file with a million entries takes time.
    let client = DataplaneClient::new(channel(DATAPLANE, path, Duration::from_secs(600)).await?);
    Ok(client.max_decoding_message_size(LARGEST_MESSAGE).max_encoding_message_size(LARGEST_MESSAGE))
}

/// Connects to the emulator on the Unix socket `path`.
pub async fn connect_emulator(path: &Path) -> Result<EmulatorClient<Channel>, ConnectError> {
    Ok(EmulatorClient::new(channel(EMULATOR, path, Duration::from_secs(10)).await?))
}

/// Connects to the programs of an AF_XDP client on the Unix socket `path`.
pub async fn connect_xsk(path: &Path) -> Result<XskClient<Channel>, ConnectError> {
    Ok(XskClient::new(channel("`kaido xsk run`", path, Duration::from_secs(10)).await?))
}

async fn channel(
    peer: &'static str,
    path: &Path,
    limit: Duration,
) -> Result<Channel, ConnectError> {
    let socket = path.to_path_buf();
    // The URI is never resolved: the connector below connects to the socket.
    Endpoint::from_static("http://peer")
        .connect_timeout(Duration::from_secs(2))
        // Timeout until the response starts. A stream after that has no limit.
        .timeout(limit)
        .connect_with_connector(tower::service_fn(move |_: Uri| {
            let socket = socket.clone();
            async move { serve::connect(&socket).await.map(TokioIo::new) }
        }))
        .await
        .map_err(|source| ConnectError { peer, path: path.into(), source })
}

/// The current time in nanoseconds since the Unix epoch, the clock of every `_ns` field.
pub fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // 64 bits last until the year 2554.
    since.as_nanos() as u64
}

/// An error with its causes in one line, as in messages and logs.
pub fn in_one_line(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
