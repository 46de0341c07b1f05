//! Serves counters to Prometheus: `GET /metrics`.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serve::{Incoming, Limits};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Any client may connect: a few scrapers, each for one response. A scraper that keeps its
/// connection between scrapes has to reconnect.
const LIMITS: Limits =
    Limits { connections: 16, silence: Duration::from_secs(10), lifetime: Duration::from_secs(30) };

/// The address cannot be bound.
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

/// Answers each scrape with the result of `counted`: OpenMetrics text, or an error message. Only
/// HTTP/1 is accepted, in which a connection has one request at a time. Never returns.
pub async fn serve<F>(
    listener: TcpListener,
    counted: impl Fn() -> F + Clone + Send + Sync + 'static,
) -> Infallible
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
    let router = Router::new().route("/metrics", get(answer));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(LIMITS.silence);
    let mut incoming = Incoming::tcp(listener, LIMITS);
    let mut connections = JoinSet::new();
    loop {
        let connection = TokioIo::new(incoming.accept().await);
        // An error on one connection does not affect the others.
        connections
            .spawn(http.serve_connection(connection, TowerToHyperService::new(router.clone())));
        while connections.try_join_next().is_some() {}
    }
}
