//! Counters for Prometheus: `GET /metrics`.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use serve::{Connection, Incoming, Limits};
use tokio::net::{TcpListener, TcpStream};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Any client may connect: a few scrapers, each for one answer. One that keeps its connection between scrapes connects
/// again.
const LIMITS: Limits =
    Limits { connections: 16, silence: Duration::from_secs(10), lifetime: Duration::from_secs(30) };

/// An address cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for Prometheus")]
pub struct NoListener {
    address: SocketAddr,
    #[source]
    source: io::Error,
}

/// Listens on `address`.
pub async fn listen(address: SocketAddr) -> Result<TcpListener, NoListener> {
    TcpListener::bind(address).await.map_err(|source| NoListener { address, source })
}

/// Answers each scrape with what `counted` returns: OpenMetrics' text, or why there is none.
pub async fn serve<F>(
    listener: TcpListener,
    counted: impl Fn() -> F + Clone + Send + Sync + 'static,
) -> io::Result<()>
where
    F: Future<Output = Result<String, String>> + Send + 'static,
{
    let answer = move || {
        let counted = counted();
        async move {
            match counted.await {
                Ok(text) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
                Err(why) => (StatusCode::SERVICE_UNAVAILABLE, why).into_response(),
            }
        }
    };
    let scrapers = Scrapers(Incoming::tcp(listener, LIMITS));
    axum::serve(scrapers, Router::new().route("/metrics", get(answer))).await
}

/// The listener, as axum takes it.
struct Scrapers(Incoming<TcpStream>);

impl axum::serve::Listener for Scrapers {
    type Io = Connection<TcpStream>;
    /// Answers are the same for all peers.
    type Addr = ();

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        (self.0.accept().await, ())
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok(())
    }
}
