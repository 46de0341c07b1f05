//! Concurrent TLS handshakes, so that a slow client does not delay others.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serve::{Connection, Incoming};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;

/// Time limit of a handshake.
const PATIENCE: Duration = Duration::from_secs(10);

type Done = io::Result<TlsStream<Connection<TcpStream>>>;

/// Connections that have completed the TLS handshake. Ends when the receiver is dropped.
pub(crate) fn handshakes(
    mut incoming: Incoming<TcpStream>,
    config: Arc<ServerConfig>,
) -> ReceiverStream<Done> {
    let acceptor = TlsAcceptor::from(config);
    let (done, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            let connection = tokio::select! {
                connection = incoming.accept() => connection,
                () = done.closed() => return,
            };
            let (acceptor, done) = (acceptor.clone(), done.clone());
            tokio::spawn(async move {
                match tokio::time::timeout(PATIENCE, acceptor.accept(connection)).await {
                    // Fails after the server has stopped accepting.
                    Ok(Ok(stream)) => drop(done.send(Ok(stream)).await),
                    Ok(Err(why)) => tracing::warn!("refused a client: {why}"),
                    Err(_) => tracing::warn!("refused a client: its handshake takes too long"),
                }
            });
        }
    });
    ReceiverStream::new(receiver)
}
