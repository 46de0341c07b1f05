//! Value that is kept with a response body.

use std::any::Any;
use std::sync::Arc;

/// Extension of a response with a [`Reservation`](crate::Reservation): a value that is dropped when the last byte of the body
/// has been handed to the connection, or when the client's time is over. A body's own stream ends
/// earlier: once all messages are encoded.
#[derive(Debug, Clone)]
pub struct HeldUntilSent {
    _value: Arc<dyn Any + Send + Sync>,
}

impl HeldUntilSent {
    /// Keeps a value.
    pub fn new(value: impl Any + Send + Sync) -> Self {
        Self { _value: Arc::new(value) }
    }
}
