//! Connections: so many at most, and none that says nothing.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};
use tokio_stream::Stream;
use tonic::transport::server::Connected;

/// The connections that there are at most: further ones wait.
const MOST_CONNECTIONS: usize = 256;

/// How long a connection may send nothing. One that is alive answers HTTP/2's pings, which come every
/// 10 s once it has begun to speak HTTP/2.
const SILENCE: Duration = Duration::from_secs(20);

/// Until it is tried again when no connection can be taken, as when there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

type Next = Pin<Box<dyn Future<Output = Connection<TcpStream>> + Send>>;

/// What listens, as a stream of connections.
pub(crate) struct Incoming {
    listener: Arc<TcpListener>,
    permits: Arc<Semaphore>,
    next: Next,
}

impl Incoming {
    pub(crate) fn new(listener: TcpListener) -> Self {
        Self::limited(listener, MOST_CONNECTIONS)
    }

    fn limited(listener: TcpListener, most: usize) -> Self {
        let (listener, permits) = (Arc::new(listener), Arc::new(Semaphore::new(most)));
        let next = Box::pin(next(Arc::clone(&listener), Arc::clone(&permits)));
        Self { listener, permits, next }
    }
}

impl Stream for Incoming {
    type Item = io::Result<Connection<TcpStream>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let connection = ready!(self.next.as_mut().poll(context));
        self.next = Box::pin(next(Arc::clone(&self.listener), Arc::clone(&self.permits)));
        Poll::Ready(Some(Ok(connection)))
    }
}

async fn next(listener: Arc<TcpListener>, permits: Arc<Semaphore>) -> Connection<TcpStream> {
    // Nobody closes the semaphore.
    let permit = permits.acquire_owned().await.ok();
    let (stream, _) = retried(|| listener.accept()).await;
    // Answers are small: they do not wait for more. A connection that is gone already says so later.
    let _ = stream.set_nodelay(true);
    Connection::new(stream, SILENCE, permit)
}

/// Takes a connection, sooner or later.
async fn retried<T, F: Future<Output = io::Result<T>>>(mut accept: impl FnMut() -> F) -> T {
    let mut told = false;
    loop {
        match accept().await {
            Ok(taken) => return taken,
            Err(error) if !told => tracing::warn!("no connection can be taken: {error}"),
            Err(_) => {}
        }
        told = true;
        tokio::time::sleep(PAUSE).await;
    }
}

/// A connection that fails when nothing has come for too long.
pub(crate) struct Connection<S> {
    stream: S,
    silence: Duration,
    until: Pin<Box<Sleep>>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl<S> Connection<S> {
    fn new(stream: S, silence: Duration, permit: Option<OwnedSemaphorePermit>) -> Self {
        let until = Box::pin(tokio::time::sleep(silence));
        Self { stream, silence, until, _permit: permit }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(context, buffer) {
            let until = Instant::now() + self.silence;
            self.until.as_mut().reset(until);
            return Poll::Ready(read);
        }
        ready!(self.until.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: Connected> Connected for Connection<S> {
    type ConnectInfo = S::ConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.stream.connect_info()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_stream::StreamExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_sends_nothing_fails() {
        let (mut client, server) = tokio::io::duplex(16);
        let begun = Instant::now();
        let reader = tokio::spawn(async move {
            let mut connection = Connection::new(server, Duration::from_secs(20), None);
            let mut read = 0;
            loop {
                match connection.read_u8().await {
                    Ok(_) => read += 1,
                    Err(error) => return (read, error.kind(), begun.elapsed().as_secs()),
                }
            }
        });
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(15)).await;
            client.write_u8(1).await.unwrap();
        }
        assert_eq!(reader.await.unwrap(), (3, io::ErrorKind::TimedOut, 65));
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_taken_is_tried_again_after_a_pause() {
        let (begun, mut tried) = (Instant::now(), 0);
        retried(|| {
            tried += 1;
            std::future::ready(if tried <= 5 { Err(io::ErrorKind::Other.into()) } else { Ok(()) })
        })
        .await;
        assert_eq!((tried, begun.elapsed()), (6, 5 * PAUSE));
    }

    #[tokio::test]
    async fn more_connections_than_there_may_be_wait() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut incoming = Incoming::limited(listener, 2);
        let mut clients = Vec::new();
        for _ in 0..3 {
            clients.push(TcpStream::connect(address).await.unwrap());
        }
        let first = incoming.next().await.unwrap().unwrap();
        let _second = incoming.next().await.unwrap().unwrap();
        // The third one is there, and is not taken before another one goes.
        let early = tokio::time::timeout(Duration::from_millis(200), incoming.next()).await;
        assert!(early.is_err());
        drop(first);
        incoming.next().await.unwrap().unwrap();
    }
}
