//! Serves counters to Prometheus: `GET /metrics`.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serve::{Incoming, Limits};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Any client may connect: a few scrapers, each for one response.
const LIMITS: Limits =
    Limits { connections: 16, silence: Duration::from_secs(10), lifetime: Duration::from_secs(30) };

/// The time that an answer is reused: counting takes time of the data plane, or enters namespaces.
const FRESH: Duration = Duration::from_millis(500);

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

/// Answers each scrape with the result of `counted`, OpenMetrics text or an error message, or with that
/// of a recent scrape. A connection has one request, of HTTP/1, so that a client cannot keep its place
/// among [`LIMITS`]. Never returns.
pub async fn serve<F>(
    listener: TcpListener,
    counted: impl Fn() -> F + Clone + Send + Sync + 'static,
) -> Infallible
where
    F: Future<Output = Result<String, String>> + Send + 'static,
{
    let last = Arc::new(Mutex::new(None::<(Instant, Result<Bytes, String>)>));
    let answer = move || {
        let (counted, last) = (counted.clone(), Arc::clone(&last));
        async move {
            // Concurrent scrapes wait for one answer.
            let mut last = last.lock_owned().await;
            let fresh = last.as_ref().filter(|(at, _)| at.elapsed() < FRESH);
            let answer = match fresh {
                Some((_, answer)) => Ok(answer.clone()),
                // A task of its own: the count of a client that disconnects is for the next one. It
                // could not be stopped, and further ones would be started beside it.
                None => {
                    let count = async move {
                        let answer = counted().await.map(Bytes::from);
                        *last = Some((Instant::now(), answer.clone()));
                        answer
                    };
                    tokio::spawn(count).await
                }
            };
            match answer {
                Ok(Ok(text)) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
                Ok(Err(why)) => (StatusCode::SERVICE_UNAVAILABLE, why).into_response(),
                Err(failed) => {
                    (StatusCode::INTERNAL_SERVER_ERROR, failed.to_string()).into_response()
                }
            }
        }
    };
    let router = Router::new().route("/metrics", get(answer));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(LIMITS.silence).keep_alive(false);
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::Semaphore;

    use super::*;

    const SCRAPE: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

    /// Each count takes time of the daemon, and cannot be stopped.
    #[tokio::test]
    async fn clients_that_disconnect_start_one_count() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (begun, may_end) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        let (counts, gate) = (Arc::clone(&begun), Arc::clone(&may_end));
        let counted = move || {
            counts.fetch_add(1, Ordering::SeqCst);
            let gate = Arc::clone(&gate);
            async move {
                let _pass = gate.acquire().await;
                Ok("counted".to_owned())
            }
        };
        tokio::spawn(serve(listener, counted));
        for _ in 0..100 {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(SCRAPE).await.unwrap();
            tokio::task::yield_now().await;
            client.set_zero_linger().unwrap();
        }
        while begun.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        let mut honest = TcpStream::connect(address).await.unwrap();
        honest.write_all(SCRAPE).await.unwrap();
        may_end.add_permits(1000);
        let mut text = String::new();
        honest.read_to_string(&mut text).await.unwrap();
        assert!(text.ends_with("counted"), "{text}");
        assert_eq!(begun.load(Ordering::SeqCst), 1);
    }
}
