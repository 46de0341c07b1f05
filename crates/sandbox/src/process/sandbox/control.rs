//! Control-plane access to a program's maps.

use std::sync::Arc;
use std::time::Instant;

use p4_object::{Entry, Key, Map};

use sandbox_queue::ProtocolViolation;
use serde_bytes::ByteBuf;

use super::failure::Failure;
use super::{Sandbox, State};
use crate::control::{ControlError, MAX_PIECE, Maps, Operation, Piece};
use crate::process::message::{Answer, Request};

/// Maximum number of entries per read. Packets wait during a read.
pub(in crate::process) const MAX_ENTRIES: u32 = MAX_PIECE as u32;

impl Sandbox {
    /// Sends a request. A process that does not respond is killed.
    fn ask(&mut self, request: &Request) -> Result<Answer, ControlError> {
        // This request's time does not count against packets in flight.
        let begin = Instant::now();
        // A host has no deadline, and may never answer a packet.
        if self.queue.since().is_some() && !self.is_hosted() {
            self.requests.push_back((begin, self.busy));
        }
        let peer = match &mut self.state {
            State::Running(peer) => peer,
            State::Evicted => return Err(ControlError::Evicted),
            _ => return Err(ControlError::Gone),
        };
        let answer = peer.ask(request, begin + self.config.answer_time);
        self.busy += begin.elapsed();
        if matches!(answer, Err(ControlError::Gone)) {
            let failure = peer.ending().map_or(Failure::Slow, Failure::Ended);
            self.fail(failure);
        }
        answer
    }

    fn invalid_answer<T>(&mut self) -> Result<T, ControlError> {
        self.fail(Failure::ProtocolViolation(ProtocolViolation::Answer));
        Err(ControlError::Gone)
    }
}

/// Returns true if an entry is valid for this map.
pub(in crate::process) fn fits(map: &Map, at: u32, entry: &Entry) -> bool {
    let key = match &entry.key {
        Key::Bytes(key) => key.len(),
        Key::Words(words, _) => words.len() * 8,
    };
    let is_ternary = map.kind == p4_object::MapKind::Ternary;
    entry.map == at
        && key == map.key_size as usize
        && entry.value.len() == map.value_size as usize
        && is_ternary == matches!(entry.key, Key::Words(..))
}

/// Returns true if entries can be those from slot `from` on. A piece that is not the last one has
/// `most` entries, in as many slots, so that all pieces together have no more than the map's.
fn is_piece(of: &Map, map: u32, from: u32, most: u32, piece: &Piece) -> bool {
    let end = piece.next.unwrap_or(of.max_entries);
    let is_full = piece.next.is_none() || piece.entries.len() == most as usize;
    let has_slots = piece.entries.len() <= end.saturating_sub(from) as usize;
    is_full
        && has_slots
        && end <= of.max_entries
        && piece.entries.len() <= most as usize
        && piece.entries.iter().all(|entry| fits(of, map, entry))
}

impl Maps for Sandbox {
    fn maps(&self) -> &[Map] {
        &self.maps
    }

    fn apply(&mut self, batch: &[Operation]) -> Result<(), ControlError> {
        match self.ask(&Request::Apply(batch.to_vec()))? {
            Answer::Done => {
                // A replay that has a copy has ended.
                let journal = Arc::make_mut(&mut self.journal);
                batch.iter().cloned().for_each(|operation| journal.note(operation));
                Ok(())
            }
            _ => self.invalid_answer(),
        }
    }

    fn read(&mut self, map: u32, from: u32, most: u32) -> Result<Piece, ControlError> {
        let most = most.clamp(1, MAX_ENTRIES);
        let answer = self.ask(&Request::Read { map, from, most })?;
        let Answer::Piece(piece) = answer else { return self.invalid_answer() };
        let of = self.maps.get(map as usize);
        if of.is_some_and(|of| is_piece(of, map, from, most, &piece)) {
            Ok(piece)
        } else {
            self.invalid_answer()
        }
    }

    fn get_all(&mut self, map: u32, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, ControlError> {
        let size = self.maps.get(map as usize).map(|map| map.value_size as usize);
        let mut all = Vec::with_capacity(keys.len());
        for keys in keys.chunks(MAX_PIECE) {
            let answer = self.ask(&Request::Get { map, keys: keys.to_vec() })?;
            let Answer::Values(values) = answer else { return self.invalid_answer() };
            let fits = |value: &ByteBuf| Some(value.len()) == size;
            if values.len() != keys.len() || !values.iter().flatten().all(fits) {
                return self.invalid_answer();
            }
            all.extend(values.into_iter().map(|value| value.map(ByteBuf::into_vec)));
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use p4_object::MapKind;

    use super::*;

    #[test]
    fn all_pieces_together_have_no_more_entries_than_the_map() {
        let name = "map".to_owned();
        let kind = MapKind::Array;
        let map = Map { name, kind, key_size: 4, value_size: 4, max_entries: 8 };
        let entry = |at| Entry { map: 0, key: Key::index(at), value: vec![0; 4] };
        let is = |from, entries: u32, next| {
            let piece = Piece { entries: (0..entries).map(entry).collect(), next };
            is_piece(&map, 0, from, 4, &piece)
        };
        assert!(is(0, 4, Some(4)) && is(4, 4, None) && is(0, 0, None));
        // More entries than slots, or than asked for.
        assert!(!is(0, 4, Some(1)) && !is(6, 4, None) && !is(0, 5, None));
        // A piece that ends early, does not advance, or is followed by one beyond the map.
        assert!(!is(0, 3, Some(4)) && !is(0, 0, Some(1)) && !is(4, 4, Some(4)));
        assert!(!is(4, 4, Some(9)));
    }
}
