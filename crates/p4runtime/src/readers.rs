//! Limits of concurrent reads: those of primaries are apart, and no connection has all places.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use crate::handle::By;
use crate::peer::Peer;

/// Maximum number of concurrent reads of primaries, and of all other clients. Each holds its
/// results until they are sent.
const READERS: usize = 32;

/// Places for reads.
#[derive(Debug)]
pub(crate) struct Readers {
    primaries: Arc<Semaphore>,
    others: Arc<Semaphore>,
}

/// The place of a read, until dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _shared: OwnedSemaphorePermit,
    /// Part of the connection's share.
    _own: Option<OwnedSemaphorePermit>,
}

impl Readers {
    pub(crate) fn new() -> Self {
        let places = || Arc::new(Semaphore::new(READERS));
        Self { primaries: places(), others: places() }
    }

    /// Waits for a place for a read of the device's primary, or of another client.
    pub(crate) async fn place(&self, by: By, peer: &Peer) -> Result<Place, Status> {
        let (own, shared) = match by {
            By::Primary => (None, &self.primaries),
            By::Other => (Some(one_of(peer.readers()).await?), &self.others),
        };
        Ok(Place { _shared: one_of(shared).await?, _own: own })
    }
}

async fn one_of(places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Status> {
    let place = Arc::clone(places).acquire_owned().await;
    place.map_err(|_| Status::unavailable("the service is stopping"))
}
