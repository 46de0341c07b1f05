//! A connection with an idle timeout and a maximum lifetime.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep};
use tonic::transport::server::Connected;

use crate::{Limits, Turns};

/// A connection that counts towards the server's limit.
pub struct Connection<S> {
    stream: Turns<S>,
    silence: Duration,
    end: Instant,
    until: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

impl<S> Connection<S> {
    pub(crate) fn new(stream: S, limits: &Limits, permit: OwnedSemaphorePermit) -> Self {
        let now = Instant::now();
        let end = now + limits.lifetime;
        let until = Box::pin(tokio::time::sleep_until(end.min(now + limits.silence)));
        let stream = Turns::new(stream);
        Self { stream, silence: limits.silence, end, until, _permit: permit }
    }

    /// Restarts the idle timeout.
    fn heard(&mut self) {
        let until = self.end.min(Instant::now() + self.silence);
        self.until.as_mut().reset(until);
    }

    /// Returns an operation's result, or an error if the connection has timed out.
    fn or_late<T>(
        &mut self,
        done: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if done.is_ready() && Instant::now() < self.end {
            return done;
        }
        self.until.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() {
            self.heard();
        }
        self.or_late(read, context)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.or_late(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.or_late(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.or_late(flushed, context)
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
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio::sync::Semaphore;

    use super::*;

    fn connection(stream: DuplexStream, limits: &Limits) -> Connection<DuplexStream> {
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        Connection::new(stream, limits, permit)
    }

    /// Returns the number of bytes read before reading fails, and the time of the failure in
    /// seconds, for a client that sends one byte every 15 s, `bytes` in total.
    async fn read_slowly(limits: Limits, bytes: usize) -> (usize, u64) {
        let (mut client, server) = tokio::io::duplex(16);
        let begun = Instant::now();
        let reader = tokio::spawn(async move {
            let mut connection = connection(server, &limits);
            let mut read = 0;
            loop {
                match connection.read_u8().await {
                    Ok(_) => read += 1,
                    Err(error) => {
                        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
                        return (read, begun.elapsed().as_secs());
                    }
                }
            }
        });
        for _ in 0..bytes {
            tokio::time::sleep(Duration::from_secs(15)).await;
            if client.write_u8(1).await.is_err() {
                break;
            }
        }
        reader.await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_connection_fails() {
        let limits = Limits { silence: Duration::from_secs(20), ..Limits::new(1) };
        assert_eq!(read_slowly(limits, 3).await, (3, 65));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_sends_a_byte_now_and_then_has_an_end() {
        let silence = Duration::from_secs(20);
        let limits = Limits { silence, lifetime: Duration::from_secs(50), ..Limits::new(1) };
        assert_eq!(read_slowly(limits, 10).await, (3, 50));
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_nothing_has_an_end() {
        let (_client, server) = tokio::io::duplex(1);
        let limits = Limits { lifetime: Duration::from_secs(50), ..Limits::new(1) };
        let error = connection(server, &limits).write_all(b"two").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
