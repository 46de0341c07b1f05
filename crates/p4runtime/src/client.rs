//! Client connections to a server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tonic::transport::{Channel, Endpoint, Uri};

/// Address of a server.
#[derive(Debug, Clone)]
pub enum Address {
    /// Unix socket.
    Unix(PathBuf),
    /// TCP without encryption.
    Insecure(SocketAddr),
    /// TCP with TLS.
    Tls {
        /// `HOST:PORT`.
        address: String,
        /// Host name to verify against the server's certificate.
        name: ServerName<'static>,
        /// TLS configuration of the client.
        config: Arc<ClientConfig>,
    },
}

/// Connects to a server. `patience` limits the time for connecting, and for each response to begin.
///
/// # Errors
///
/// Fails if the server does not respond.
pub async fn connect(
    address: Address,
    patience: Duration,
) -> Result<Channel, tonic::transport::Error> {
    // The URI is not resolved: each connector has its own address.
    let endpoint = Endpoint::from_static("http://p4runtime");
    let endpoint = endpoint.connect_timeout(patience).timeout(patience);
    match address {
        Address::Unix(path) => {
            let connector = tower::service_fn(move |_: Uri| {
                let path = path.clone();
                async move { serve::connect(&path).await.map(TokioIo::new) }
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
