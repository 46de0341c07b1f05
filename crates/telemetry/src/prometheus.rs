//! Counters for Prometheus: `GET /metrics`.

use std::net::SocketAddr;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// An address cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for Prometheus")]
pub struct NoListener {
    address: SocketAddr,
    #[source]
    source: std::io::Error,
}

/// Listens on `address`.
pub async fn listen(address: SocketAddr) -> Result<TcpListener, NoListener> {
    TcpListener::bind(address).await.map_err(|source| NoListener { address, source })
}

/// Answers with what `counted` returns whenever somebody asks: OpenMetrics' text, or why there is none.
pub async fn serve<F>(
    listener: TcpListener,
    counted: impl Fn() -> F + Clone + Send + Sync + 'static,
) -> std::io::Result<()>
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
    axum::serve(listener, Router::new().route("/metrics", get(answer))).await
}
