//! Results of a read as a stream of messages, each of which is made when the client has room for
//! it.

use std::sync::Arc;

use prost::Message as _;
use tonic::Status;

use crate::error::Error;
use crate::found::Found;
use crate::pipeline::Pipeline;
use crate::read_memory::ANSWER_BYTES;
use crate::reply;
use crate::v1::ReadResponse;

/// Maximum number of entities of one read response.
const ANSWER_ENTITIES: usize = 4096;

/// Results that have not been sent.
pub(crate) struct Results {
    pipeline: Arc<Pipeline>,
    found: std::iter::Peekable<std::vec::IntoIter<Found>>,
    answers: Vec<Result<(), Error>>,
}

impl Results {
    pub(crate) fn new(
        pipeline: Arc<Pipeline>,
        found: Vec<Found>,
        answers: Vec<Result<(), Error>>,
    ) -> Self {
        Self { pipeline, found: found.into_iter().peekable(), answers }
    }
}

impl Iterator for Results {
    type Item = Result<ReadResponse, Status>;

    /// The next message of limited size; the status after all of them, if it is an error.
    fn next(&mut self) -> Option<Self::Item> {
        if self.found.peek().is_none() {
            let answers = std::mem::take(&mut self.answers);
            return reply::batch(&answers).err().map(Err);
        }
        let (mut entities, mut bytes) = (Vec::new(), 0);
        while bytes < ANSWER_BYTES
            && entities.len() < ANSWER_ENTITIES
            && let Some(one) = self.found.next()
        {
            let entity = reply::entity(&self.pipeline, &one);
            bytes += entity.encoded_len();
            entities.push(entity);
        }
        Some(Ok(ReadResponse { entities }))
    }
}
