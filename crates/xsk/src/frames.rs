//! States of a UMEM's frames: proves that each frame has one owner at a time.

use std::sync::atomic::{AtomicU8, Ordering};

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

/// A frame was not in the expected state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongState {
    /// Number of the frame, or `None` if the address is outside of the UMEM.
    pub frame: Option<usize>,
}

/// States of all frames of a UMEM, changed by compare-and-swap: of two sides that both claim a
/// frame, one fails.
#[derive(Debug)]
pub struct Frames {
    states: Box<[AtomicU8]>,
    frame_size: u64,
}

impl Frames {
    /// Creates the states of a UMEM of `bytes`, whose frames belong to the client.
    pub fn new(bytes: u64, frame_size: u32) -> Self {
        let frame_size = u64::from(frame_size.max(1));
        let states = (0..bytes / frame_size).map(|_| AtomicU8::new(State::Client as u8)).collect();
        Self { states, frame_size }
    }

    /// Moves the frame of a UMEM address from one state to another.
    ///
    /// # Errors
    ///
    /// The frame has another state, which it keeps, or does not exist.
    pub fn step(&self, address: u64, from: State, to: State) -> Result<(), WrongState> {
        let frame = usize::try_from(address / self.frame_size).ok();
        let found = frame.and_then(|frame| self.states.get(frame));
        let Some(state) = found else { return Err(WrongState { frame: None }) };
        let (from, to) = (from as u8, to as u8);
        let swapped = state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
        swapped.map(drop).map_err(|_| WrongState { frame })
    }

    /// Number of frames in a state.
    pub fn count(&self, state: State) -> usize {
        let is = |one: &&AtomicU8| one.load(Ordering::Relaxed) == state as u8;
        self.states.iter().filter(is).count()
    }
}
