//! A client's connection: the devices that it is primary of, and its message limits.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use grpc_bounds::{Bounds, Caller};
use http::Extensions;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::transport::server::Connected;

/// Maximum message size for a primary: a batch of a few 100,000 entries, or a program.
pub const LARGEST_MESSAGE: usize = 64 << 20;
/// Maximum memory of one decoded message of a primary.
pub(crate) const LARGEST_MEMORY: u64 = 512 << 20;
/// Maximum message size for clients that are not primary of any device: arbitration, reads and
/// errors are small.
const SMALL_MESSAGE: u64 = 4 << 20;
const SMALL_MEMORY: u64 = 16 << 20;
/// Total memory for messages of all primaries, and for those of all other clients.
pub(crate) const PRIMARIES_MEMORY: u64 = 768 << 20;
pub(crate) const OTHERS_MEMORY: u64 = 64 << 20;

/// Total memory for answers that have not been sent, to primaries and to all other clients.
pub(crate) const PRIMARIES_ANSWERS: u64 = 768 << 20;
pub(crate) const OTHERS_ANSWERS: u64 = 256 << 20;

/// Maximum number of concurrent reads of a connection without a primary.
const READS: usize = 8;

/// A client's connection.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// Devices whose primary is on this connection. A device is listed twice while the primary role
    /// moves between two streams of the connection.
    primaries: Arc<Mutex<Vec<u64>>>,
    /// The connection's share of concurrent reads.
    readers: Arc<Semaphore>,
}

impl Default for Peer {
    fn default() -> Self {
        Self { primaries: Arc::default(), readers: Arc::new(Semaphore::new(READS)) }
    }
}

/// Marks a connection as that of a device's primary until dropped.
#[derive(Debug)]
pub(crate) struct Primary {
    peer: Peer,
    device: u64,
}

impl Peer {
    /// Marks the client as primary of a device.
    pub(crate) fn mark_primary(&self, device: u64) -> Primary {
        self.primaries().push(device);
        Primary { peer: self.clone(), device }
    }

    /// Returns true if the primary of this device is on the connection.
    pub(crate) fn is_primary(&self, device: u64) -> bool {
        self.primaries().contains(&device)
    }

    fn primaries(&self) -> MutexGuard<'_, Vec<u64>> {
        self.primaries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection's share of concurrent reads.
    pub(crate) fn readers(&self) -> &Arc<Semaphore> {
        &self.readers
    }
}

impl Drop for Primary {
    fn drop(&mut self) {
        let mut primaries = self.peer.primaries();
        if let Some(at) = primaries.iter().position(|device| *device == self.device) {
            primaries.swap_remove(at);
        }
    }
}

impl Caller for Peer {
    fn of(extensions: &Extensions) -> Self {
        // A request without a peer has the small limits.
        extensions.get().cloned().unwrap_or_default()
    }

    /// The device of a message is unknown before it is read, so the limits are those of the
    /// connection.
    fn bounds(&self) -> Bounds {
        if self.primaries().is_empty() {
            return Bounds { length: SMALL_MESSAGE, memory: SMALL_MEMORY, is_privileged: false };
        }
        let length = LARGEST_MESSAGE as u64;
        Bounds { length, memory: LARGEST_MEMORY, is_privileged: true }
    }
}

/// A byte stream with its connection.
pub(crate) struct Known<S> {
    stream: S,
    peer: Peer,
    /// Counts towards the server's limit of connections.
    _permit: Option<OwnedSemaphorePermit>,
}

impl<S> Known<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, peer: Peer::default(), _permit: None }
    }

    /// Holds a permit while the connection lives.
    pub(crate) fn with(stream: S, permit: OwnedSemaphorePermit) -> Self {
        Self { _permit: Some(permit), ..Self::new(stream) }
    }
}

impl<S> Connected for Known<S> {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Known<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Known<S> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_primary_of_the_devices_that_it_is_marked_with() {
        let peer = Peer::default();
        let [one, again, other] = [1, 1, 2].map(|device| peer.mark_primary(device));
        drop(one);
        assert!(peer.is_primary(1) && peer.is_primary(2) && !peer.is_primary(3));
        drop(again);
        assert!(!peer.is_primary(1) && peer.is_primary(2));
        assert!(peer.bounds().is_privileged, "its messages may be large");
        drop(other);
        assert!(!peer.is_primary(2) && !peer.bounds().is_privileged);
    }
}
