//! Splits a request body into gRPC messages, each of which is walked.
//!
//! ```text
//!  0        1                                       5
//! +--------+---------------------------------------+----------------+
//! | 0 or 1 |  length of the message (big-endian)   |  message ...
//! +--------+---------------------------------------+----------------+
//! ```

use std::sync::Arc;

use tonic::Status;

use crate::Bounds;
use crate::budget::Reservation;
use crate::shapes::{Method, Shapes};
use crate::walk::Walk;

const HEAD: usize = 5;

/// The messages of one request.
#[derive(Debug)]
pub(crate) struct Frames {
    shapes: Arc<Shapes>,
    method: Method,
    pub(crate) reservation: Reservation,
    head: Vec<u8>,
    /// Message being received.
    message: Option<Message>,
    /// Memory of the received messages that the server may still hold.
    arrived: u64,
    /// Number of completely received messages.
    ended: u64,
}

#[derive(Debug)]
struct Message {
    walk: Walk,
    length: u64,
    left: u64,
}

impl Message {
    fn memory(&self) -> u64 {
        self.length.saturating_add(self.walk.memory())
    }
}

impl Frames {
    pub(crate) fn new(shapes: Arc<Shapes>, method: Method, reservation: Reservation) -> Self {
        Self { shapes, method, reservation, head: Vec::new(), message: None, arrived: 0, ended: 0 }
    }

    /// Index of the message being received, if there is one.
    pub(crate) fn within(&self) -> Option<u64> {
        let is_within = self.message.is_some() || !self.head.is_empty();
        is_within.then_some(self.ended)
    }

    /// The server requests the next message of a stream, so it has released all complete ones.
    pub(crate) fn asked(&mut self) {
        if self.method.is_streaming && self.arrived > 0 {
            self.arrived = 0;
            self.reservation.shrink(self.message.as_ref().map_or(0, Message::memory));
        }
    }

    /// Processes the next bytes.
    pub(crate) fn take(&mut self, bytes: &[u8], bounds: &Bounds) -> Result<(), Status> {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = match &mut self.message {
                None => self.head(rest, bounds)?,
                Some(message) => {
                    let count = usize::try_from(message.left).unwrap_or(usize::MAX).min(rest.len());
                    let (part, others) = rest.split_at(count);
                    let walked = message.walk.take(&self.shapes, part);
                    walked
                        .map_err(|why| Status::invalid_argument(format!("the message: {why}")))?;
                    message.left -= count as u64;
                    self.hold(bounds)?;
                    self.end();
                    others
                }
            };
        }
        Ok(())
    }

    fn head<'b>(&mut self, bytes: &'b [u8], bounds: &Bounds) -> Result<&'b [u8], Status> {
        let (head, rest) = bytes.split_at(bytes.len().min(HEAD - self.head.len()));
        self.head.extend(head);
        let Ok([compressed, length @ ..]) = <[u8; HEAD]>::try_from(&self.head[..]) else {
            return Ok(rest);
        };
        let length = u64::from(u32::from_be_bytes(length));
        self.head.clear();
        if compressed != 0 {
            return Err(Status::unimplemented("compressed messages are not taken"));
        }
        if length > bounds.length {
            return Err(Status::resource_exhausted(format!(
                "a message of {length} bytes: this client may send {} at most{}",
                bounds.length,
                hint(bounds)
            )));
        }
        let walk = Walk::new(&self.shapes, self.method.input, length);
        self.message = Some(Message { walk, length, left: length });
        self.hold(bounds)?;
        self.end();
        Ok(rest)
    }

    /// Reserves the memory of the message, as far as it is known.
    fn hold(&self, bounds: &Bounds) -> Result<(), Status> {
        let Some(message) = &self.message else { return Ok(()) };
        let memory = message.memory();
        if memory > bounds.memory {
            return Err(Status::resource_exhausted(format!(
                "a message of {} bytes takes more than {} bytes of memory once it is read, which is all \
                 that this client may use: send it in parts{}",
                message.length,
                bounds.memory,
                hint(bounds)
            )));
        }
        if self.reservation.grow(self.arrived.saturating_add(memory), bounds.is_privileged) {
            return Ok(());
        }
        Err(Status::resource_exhausted(
            "the memory for requests is used up by others: try again, or send it in parts",
        ))
    }

    fn end(&mut self) {
        if let Some(message) = self.message.take_if(|message| message.left == 0) {
            self.ended += 1;
            self.arrived = self.arrived.saturating_add(message.memory());
        }
    }
}

fn hint(bounds: &Bounds) -> &'static str {
    if bounds.is_privileged { "" } else { " (the primary may send more)" }
}
