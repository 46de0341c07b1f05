//! Streams that give way: a peer that sends without end does not keep a thread from other tasks.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;

/// Bytes that a stream reads before other tasks run. tokio's own limit is 128 reads of any size: 240
/// connections that sent empty HTTP/2 frames delayed other clients by 6 s, and 8 with frames of 13 bytes by
/// 3 s at 32 KiB.
const TURN: usize = 4 << 10;

/// A stream whose reads end after a turn. It has to be the outermost one: TLS reads on from a stream that
/// gives way, because it holds more data itself.
pub struct Turns<S> {
    stream: S,
    /// Bytes read since it last gave way.
    read: usize,
}

impl<S> Turns<S> {
    /// Wraps a stream.
    pub fn new(stream: S) -> Self {
        Self { stream, read: 0 }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Turns<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read >= TURN {
            self.read = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.read = match read {
            Poll::Ready(_) => self.read + buffer.filled().len() - before,
            Poll::Pending => 0,
        };
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Turns<S> {
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
        slices: &[IoSlice<'_>],
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

impl<S: Connected> Connected for Turns<S> {
    type ConnectInfo = S::ConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.stream.connect_info()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn a_stream_that_sends_without_end_gives_way() {
        let (mut client, server) = tokio::io::duplex(4 * TURN);
        client.write_all(&[0; 4 * TURN]).await.unwrap();
        let mut stream = Turns::new(server);
        let mut bytes = [0; TURN / 2];
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut reads = || {
            let mut buffer = ReadBuf::new(&mut bytes);
            Pin::new(&mut stream).poll_read(&mut context, &mut buffer).is_ready()
        };
        let turns = [(); 6].map(|()| reads());
        assert_eq!(turns, [true, true, false, true, true, false], "two reads make a turn");
    }
}
