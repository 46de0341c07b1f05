//! TLS handshakes, beside each other: a slow client keeps no other waiting.

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

/// The time that a handshake may take.
const PATIENCE: Duration = Duration::from_secs(10);

type Done = io::Result<TlsStream<Connection<TcpStream>>>;

/// The connections whose clients have shown a certificate. Ends with the receiver.
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
                    // A server that has ended takes no more.
                    Ok(Ok(stream)) => drop(done.send(Ok(stream)).await),
                    Ok(Err(why)) => tracing::warn!("refused a client: {why}"),
                    Err(_) => tracing::warn!("refused a client: its handshake takes too long"),
                }
            });
        }
    });
    ReceiverStream::new(receiver)
}
