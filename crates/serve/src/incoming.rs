//! Accepts a server's connections, up to a limit.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_stream::Stream;

use crate::{Connection, socket};

/// Retry interval after a failed accept, for example without free descriptors.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// An unlimited time, compared to a process's lifetime.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Limits on a server's connections.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum number of concurrent connections; others wait in the kernel's backlog.
    pub connections: usize,
    /// Idle timeout of the peer.
    pub silence: Duration,
    /// Maximum lifetime of a connection.
    pub lifetime: Duration,
}

impl Limits {
    /// Limits the number of connections, without timeouts.
    pub const fn new(connections: usize) -> Self {
        Self { connections, silence: FOR_EVER, lifetime: FOR_EVER }
    }
}

type Next<S> = Pin<Box<dyn Future<Output = Connection<S>> + Send>>;
type Accept<S> = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = io::Result<S>> + Send>> + Send + Sync>;

/// The connections of a listener, as an infinite stream.
pub struct Incoming<S> {
    accept: Accept<S>,
    permits: Arc<Semaphore>,
    limits: Limits,
    next: Next<S>,
}

impl Incoming<TcpStream> {
    /// Accepts connections from any address.
    pub fn tcp(listener: TcpListener, limits: Limits) -> Self {
        let listener = Arc::new(listener);
        Self::new(limits, move || {
            let listener = Arc::clone(&listener);
            Box::pin(async move {
                let (stream, _) = listener.accept().await?;
                // Responses are small, so disable Nagle's algorithm. A dead connection reports its
                // error later.
                let _ = stream.set_nodelay(true);
                Ok(stream)
            })
        })
    }
}

impl Incoming<UnixStream> {
    /// Listens on a new socket of mode 0600 and accepts connections of root and this process's user
    /// (SO_PEERCRED). Must be called in a tokio runtime.
    pub fn unix(path: &Path, limits: Limits) -> io::Result<Self> {
        let listener = socket::listen(path)?;
        listener.set_nonblocking(true)?;
        let listener = Arc::new(UnixListener::from_std(listener)?);
        Ok(Self::new(limits, move || {
            let listener = Arc::clone(&listener);
            Box::pin(async move {
                loop {
                    let (stream, _) = listener.accept().await?;
                    // The stream is dropped, which closes it.
                    match stream.peer_cred() {
                        Ok(peer) if socket::may_order(peer.uid()) => return Ok(stream),
                        Ok(peer) => tracing::warn!("refused a connection of user {}", peer.uid()),
                        Err(error) => tracing::warn!("refused an unknown peer: {error}"),
                    }
                }
            })
        }))
    }
}

impl<S: Send + 'static> Incoming<S> {
    fn new(
        limits: Limits,
        accept: impl Fn() -> Pin<Box<dyn Future<Output = io::Result<S>> + Send>> + Send + Sync + 'static,
    ) -> Self {
        let accept: Accept<S> = Arc::new(accept);
        let permits = Arc::new(Semaphore::new(limits.connections));
        let next = Box::pin(next(Arc::clone(&accept), limits, Arc::clone(&permits)));
        Self { accept, permits, limits, next }
    }

    /// Waits for the next connection and for a free slot.
    pub async fn accept(&mut self) -> Connection<S> {
        std::future::poll_fn(|context| self.poll_accept(context)).await
    }

    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<Connection<S>> {
        let connection = ready!(self.next.as_mut().poll(context));
        let (accept, permits) = (Arc::clone(&self.accept), Arc::clone(&self.permits));
        self.next = Box::pin(next(accept, self.limits, permits));
        Poll::Ready(connection)
    }
}

impl<S: Send + 'static> Stream for Incoming<S> {
    type Item = io::Result<Connection<S>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_accept(context).map(|connection| Some(Ok(connection)))
    }
}

async fn next<S>(accept: Accept<S>, limits: Limits, permits: Arc<Semaphore>) -> Connection<S> {
    let permit = permit(permits).await;
    let stream = retried(|| accept()).await;
    Connection::new(stream, &limits, permit)
}

async fn permit(permits: Arc<Semaphore>) -> OwnedSemaphorePermit {
    match permits.acquire_owned().await {
        Ok(permit) => permit,
        // The semaphore is never closed.
        Err(_) => std::future::pending().await,
    }
}

/// Accepts a connection, and retries on errors.
async fn retried<T, F: Future<Output = io::Result<T>>>(accept: impl Fn() -> F) -> T {
    let mut is_logged = false;
    loop {
        match accept().await {
            Ok(taken) => return taken,
            Err(error) if !is_logged => tracing::warn!("no connection can be taken: {error}"),
            Err(_) => {}
        }
        is_logged = true;
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::io::AsyncReadExt;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_cannot_be_taken_is_tried_again_after_a_pause() {
        let (begun, tried) = (Instant::now(), Cell::new(0));
        retried(|| {
            tried.set(tried.get() + 1);
            let failed = tried.get() <= 5;
            std::future::ready(if failed { Err(io::ErrorKind::Other.into()) } else { Ok(()) })
        })
        .await;
        assert_eq!((tried.get(), begun.elapsed()), (6, 5 * RETRY_INTERVAL));
    }

    #[tokio::test]
    async fn connections_beyond_the_limit_wait() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut incoming = Incoming::tcp(listener, Limits::new(2));
        let mut clients = Vec::new();
        for _ in 0..3 {
            clients.push(TcpStream::connect(address).await.unwrap());
        }
        let first = incoming.accept().await;
        let _second = incoming.accept().await;
        // The third connection is not accepted until another one is closed.
        let early = tokio::time::timeout(Duration::from_millis(200), incoming.accept()).await;
        assert!(early.is_err());
        drop(first);
        incoming.accept().await;
    }

    /// Connects as an unprivileged user, and prints the number of bytes received before the end:
    /// zero.
    const STRANGER: &str = "import socket, sys; s = socket.socket(socket.AF_UNIX); \
        s.connect(sys.argv[1]); print(len(s.recv(1)))";

    async fn stranger(path: &Path) -> std::process::Output {
        let mut command = tokio::process::Command::new("/usr/bin/python3");
        command.args(["-c", STRANGER]).arg(path).uid(65534).gid(65534);
        command.output().await.unwrap()
    }

    #[tokio::test]
    async fn root_peers_of_other_users_are_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let open = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let root = tempfile::tempdir().unwrap();
        open(root.path(), 0o755);
        let path = root.path().join("a.sock");
        let mut incoming = Incoming::unix(&path, Limits::new(2)).unwrap();
        let refused = stranger(&path).await;
        assert!(String::from_utf8_lossy(&refused.stderr).contains("PermissionError"));
        // The peer's user is checked even if the mode permits the connection.
        open(&path, 0o666);
        let client = async {
            let closed = stranger(&path).await;
            assert_eq!(String::from_utf8_lossy(&closed.stdout), "0\n");
            UnixStream::connect(&path).await.unwrap()
        };
        let (own, mut taken) = tokio::join!(client, incoming.accept());
        drop(own);
        assert_eq!(taken.read(&mut [0]).await.unwrap(), 0);
    }
}
