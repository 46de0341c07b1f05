//! How clients reach a server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tonic::transport::{Channel, Endpoint, Uri};

/// The address of a server.
#[derive(Debug, Clone)]
pub enum Address {
    /// At a Unix socket.
    Unix(PathBuf),
    /// At an address, in the clear.
    Insecure(SocketAddr),
    /// At a host and port, by TLS.
    Tls {
        /// `HOST:PORT`.
        address: String,
        /// The name that its certificate has.
        name: ServerName<'static>,
        /// This side.
        config: Arc<ClientConfig>,
    },
}

/// Connects to a server, which has this long for it and for each answer to begin.
///
/// # Errors
///
/// It does not answer.
pub async fn connect(
    address: Address,
    patience: Duration,
) -> Result<Channel, tonic::transport::Error> {
    // The URI is never resolved: each connector knows where to go.
    let endpoint = Endpoint::from_static("http://p4runtime");
    let endpoint = endpoint.connect_timeout(patience).timeout(patience);
    match address {
        Address::Unix(path) => {
            let connector = tower::service_fn(move |_: Uri| {
                let path = path.clone();
                async move { UnixStream::connect(path).await.map(TokioIo::new) }
            });
            endpoint.connect_with_connector(connector).await
        }
        Address::Insecure(address) => {
            let connector = tower::service_fn(move |_: Uri| async move {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                std::io::Result::Ok(TokioIo::new(stream))
            });
            endpoint.connect_with_connector(connector).await
        }
        Address::Tls { address, name, config } => {
            let connector = tower::service_fn(move |_: Uri| {
                let (address, name) = (address.clone(), name.clone());
                let tls = TlsConnector::from(Arc::clone(&config));
                async move {
                    let stream = TcpStream::connect(address).await?;
                    stream.set_nodelay(true)?;
                    tls.connect(name, stream).await.map(TokioIo::new)
                }
            });
            endpoint.connect_with_connector(connector).await
        }
    }
}
