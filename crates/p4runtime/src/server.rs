//! Serves P4Runtime on a socket, with resource limits.

use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use grpc_bounds::{Budget, Layer, Shapes};
use serve::{Incoming, Limits};
use tokio::net::{TcpListener, UnixStream};
use tokio_rustls::rustls::ServerConfig;
use tokio_stream::StreamExt as _;
use tonic::transport::Server;

use crate::device::Device;
use crate::handshakes::handshakes;
use crate::peer::{Known, OTHERS_MEMORY, PRIMARIES_MEMORY, Peer};
use crate::service::Service;

/// Maximum number of connections; further ones wait. A peer that speaks HTTP/2 answers a ping every
/// 10 s, so it counts as alive. A silent connection is closed.
const LIMITS: Limits = Limits { silence: Duration::from_secs(20), ..Limits::new(256) };

/// Maximum number of concurrent calls per connection.
const CALLS: u32 = 32;

/// Flow-control windows of a stream and of a connection in bytes. The HTTP/2 library closes a
/// connection with too many small frames queued: each is charged 256 bytes minus its length, and
/// the limit is half of the connection window. The smallest message has 5 bytes, so a full stream
/// window is charged at most 52 times its size. With these values, all streams of a connection
/// together stay below the limit, and a client waits instead of being disconnected.
const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 256 << 20;
const _: () =
    assert!(STREAM_WINDOW as u64 / 5 * 251 * (CALLS as u64) < CONNECTION_WINDOW as u64 / 2);

/// A socket for serving P4Runtime.
pub struct Listener(Kind);

enum Kind {
    Tcp(TcpListener),
    Tls(TcpListener, Arc<ServerConfig>),
    Unix(Box<Incoming<UnixStream>>),
}

impl Listener {
    /// TCP without encryption or client authentication.
    pub fn insecure(listener: TcpListener) -> Self {
        Self(Kind::Tcp(listener))
    }

    /// TLS over TCP, for clients with certificates ([`Files::server`](crate::Files::server)).
    pub fn tls(listener: TcpListener, config: Arc<ServerConfig>) -> Self {
        Self(Kind::Tls(listener, config))
    }

    /// Creates a Unix socket, accessible to root and this process's user. Requires a tokio runtime.
    ///
    /// # Errors
    ///
    /// Fails if the socket cannot be created.
    pub fn unix(path: &Path) -> io::Result<Self> {
        Incoming::unix(path, LIMITS).map(|incoming| Self(Kind::Unix(Box::new(incoming))))
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::insecure(listener)
    }
}

/// Error that ended a server.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// The transport failed.
    #[error(transparent)]
    Transport(#[from] tonic::transport::Error),
    /// A device's thread panicked, so the device is unusable.
    #[error("the thread of device {0} has panicked")]
    Panicked(u64),
}

/// Descriptor set of the protocol, from which the build generated the types.
static DESCRIBED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/p4runtime.bin"));

/// Decoded sizes of the protocol's messages.
pub(crate) static SHAPES: LazyLock<Arc<Shapes>> =
    LazyLock::new(|| Arc::new(Shapes::new(DESCRIBED).expect("the description is the build's own")));

/// Serves until `until` completes. Closes a connection that does not respond for 20 s, so that a
/// dead primary loses its role.
///
/// # Errors
///
/// Fails if the transport fails, or if a device's thread panics.
pub async fn serve<D: Device>(
    service: Service<D>,
    listener: impl Into<Listener>,
    until: impl Future<Output = ()>,
) -> Result<(), Ended> {
    let mut panicked = service.panicked.clone();
    let panicked = async {
        match panicked.wait_for(Option::is_some).await.ok().and_then(|one| *one) {
            Some(device) => device,
            None => std::future::pending().await,
        }
    };
    let budget = Budget::new(PRIMARIES_MEMORY, OTHERS_MEMORY);
    let mut layer = Layer::<Peer>::new(Arc::clone(&SHAPES), budget);
    if let Some(waits) = service.waits {
        layer = layer.reader_waits(waits);
    }
    let mut builder = Server::builder()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(CALLS)
        .http2_keepalive_interval(Some(Duration::from_secs(10)))
        .http2_keepalive_timeout(Some(Duration::from_secs(10)))
        .layer(layer);
    let service = service.server();
    let served = async {
        match listener.into().0 {
            Kind::Tcp(listener) => {
                let incoming = Incoming::tcp(listener, LIMITS).map(|one| one.map(Known::new));
                builder.add_service(service).serve_with_incoming_shutdown(incoming, until).await
            }
            Kind::Tls(listener, config) => {
                let incoming = handshakes(listener, config, LIMITS);
                builder.add_service(service).serve_with_incoming_shutdown(incoming, until).await
            }
            Kind::Unix(incoming) => {
                let incoming = incoming.map(|one| one.map(Known::new));
                builder.add_service(service).serve_with_incoming_shutdown(incoming, until).await
            }
        }
    };
    tokio::select! {
        done = served => Ok(done?),
        device = panicked => Err(Ended::Panicked(device)),
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::SHAPES;
    use crate::v1;

    /// Counted memory of an empty message: the size of its struct.
    fn counted(name: &str) -> usize {
        usize::try_from(SHAPES.memory(name, &[]).unwrap()).unwrap()
    }

    #[test]
    fn structs_fit_into_the_counted_size() {
        macro_rules! hold {
            ($($name:ident),*) => {
                $(
                    let (is, of) = (size_of::<v1::$name>(), counted(concat!("p4.v1.", stringify!($name))));
                    assert!(is <= of, "{}: {is} of {of}", stringify!($name));
                    assert!(of <= 3 * is + 64, "{}: {is}, not {of}", stringify!($name));
                )*
            };
        }
        hold!(
            WriteRequest,
            Update,
            Entity,
            TableEntry,
            FieldMatch,
            TableAction,
            Action,
            ActionProfileActionSet,
            ActionProfileMember,
            ActionProfileGroup,
            MeterEntry,
            DirectMeterEntry,
            CounterEntry,
            PacketReplicationEngineEntry,
            Replica,
            ValueSetEntry,
            ValueSetMember,
            RegisterEntry,
            DigestEntry,
            ReadRequest,
            StreamMessageRequest,
            PacketOut,
            PacketMetadata,
            P4Data,
            P4StructLike,
            P4Header,
            DigestList,
            DigestListAck,
            SetForwardingPipelineConfigRequest,
            ForwardingPipelineConfig
        );
    }

    /// Typical batches up to the maximum message size stay within the memory limit.
    #[test]
    fn batches_of_entries_are_within_the_primary_s_bounds() {
        let exact = |value: &[u8]| v1::FieldMatch {
            field_id: 1,
            field_match_type: Some(v1::field_match::FieldMatchType::Exact(
                v1::field_match::Exact { value: value.to_vec() },
            )),
        };
        let param = |value: &[u8]| v1::action::Param { param_id: 1, value: value.to_vec() };
        let action = v1::Action { action_id: 1, params: vec![param(&[1, 2]), param(&[3])] };
        let entry = v1::TableEntry {
            table_id: 1,
            r#match: vec![exact(&[10, 0, 0, 1]), exact(&[80])],
            action: Some(v1::TableAction { r#type: Some(v1::table_action::Type::Action(action)) }),
            ..Default::default()
        };
        let entity = Some(v1::entity::Entity::TableEntry(entry));
        let update = v1::Update { r#type: 1, entity: Some(v1::Entity { entity }) };
        let updates = vec![update; 200_000];
        let bytes = v1::WriteRequest { updates, ..Default::default() }.encode_to_vec();
        let memory = SHAPES.memory("p4.v1.WriteRequest", &bytes).unwrap();
        eprintln!("{} bytes, {memory} of memory", bytes.len());
        assert!(memory < crate::peer::LARGEST_MEMORY, "{memory}");
    }
}
