//! States of a UMEM's frames: proves that each frame has one owner at a time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::UNALIGNED_ADDRESS;

/// Owner of a frame.
#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The client, which may fill or transmit it.
    Client = 0,
    /// The kernel, to receive into it.
    Receiving = 1,
    /// The kernel, to transmit it.
    Transmitting = 2,
    /// This side: a program judges the packet in it.
    Judging = 3,
}

/// A frame was not in the expected state, or does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongState;

/// States of all frames of a UMEM, changed by compare-and-swap: of two sides that both claim a
/// frame, one fails.
#[derive(Debug)]
pub struct Frames {
    states: States,
    bytes: u64,
    frame_size: u64,
}

#[derive(Debug)]
enum States {
    /// One for each frame.
    Aligned(Box<[AtomicU8]>),
    /// Frames by address, since frames may begin anywhere; those that are missing are the
    /// client's.
    Unaligned(Mutex<HashMap<u64, State>>),
}

impl Frames {
    /// Creates the states of a UMEM of `bytes`, whose frames belong to the client.
    pub fn new(bytes: u64, frame_size: u32, is_unaligned: bool) -> Self {
        let frame_size = u64::from(frame_size.max(1));
        let states = match is_unaligned {
            true => States::Unaligned(Mutex::default()),
            false => {
                let free = |_| AtomicU8::new(State::Client as u8);
                States::Aligned((0..bytes / frame_size).map(free).collect())
            }
        };
        Self { states, bytes, frame_size }
    }

    /// Moves the frame of a UMEM address from one state to another.
    ///
    /// # Errors
    ///
    /// The frame has another state, which it keeps, or does not exist.
    pub fn step(&self, address: u64, from: State, to: State) -> Result<(), WrongState> {
        match &self.states {
            States::Aligned(states) => {
                let frame = usize::try_from(address / self.frame_size).map_err(|_| WrongState)?;
                let (state, from, to) =
                    (states.get(frame).ok_or(WrongState)?, from as u8, to as u8);
                let swapped = state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
                swapped.map(drop).map_err(|_| WrongState)
            }
            States::Unaligned(states) => {
                let frame = address & UNALIGNED_ADDRESS;
                if frame >= self.bytes {
                    return Err(WrongState);
                }
                let mut states = states.lock().unwrap_or_else(PoisonError::into_inner);
                if states.get(&frame).copied().unwrap_or(State::Client) != from {
                    return Err(WrongState);
                }
                match to {
                    State::Client => states.remove(&frame),
                    to => states.insert(frame, to),
                };
                Ok(())
            }
        }
    }

    /// Number of frames in a state other than [`State::Client`].
    pub fn count(&self, state: State) -> usize {
        match &self.states {
            States::Aligned(states) => {
                let is = |one: &&AtomicU8| one.load(Ordering::Relaxed) == state as u8;
                states.iter().filter(is).count()
            }
            States::Unaligned(states) => {
                let states = states.lock().unwrap_or_else(PoisonError::into_inner);
                states.values().filter(|one| **one == state).count()
            }
        }
    }
}
