//! Copying front end for callers with packets outside of shared memory.

use sandbox_queue::{Answer, Busy, Packet, Reason};

use super::sandbox::Sandbox;

/// A sandbox that copies packets into frames and back. The sandbox process cannot access the
/// caller's packets, which stay unmodified unless the program returns a verdict.
#[derive(Debug)]
pub struct CopyBack {
    sandbox: Sandbox,
    headroom: u32,
    free: Vec<u32>,
    /// Caller's token for the packet in each frame.
    tokens: Box<[u64]>,
    answers: Vec<Answer>,
    bytes: Vec<u8>,
}

impl CopyBack {
    /// Uses all frames of the sandbox's own queue, with `headroom` bytes before each packet. No packet
    /// may be in flight, and the frames may not have other users.
    pub fn new(sandbox: Sandbox, headroom: u32) -> Self {
        let (frames, size) = (sandbox.frames(), sandbox.arena().frame_size());
        Self {
            headroom: headroom.min(size),
            tokens: vec![0; frames.len()].into(),
            free: frames.rev().collect(),
            answers: Vec::new(),
            bytes: vec![0; size as usize],
            sandbox,
        }
    }

    /// The sandbox, for access to its tables, counters and versions.
    pub fn sandbox(&mut self) -> &mut Sandbox {
        &mut self.sandbox
    }

    /// Submits a packet; its answer carries `token`.
    ///
    /// # Errors
    ///
    /// Fails if no frame is free, or if the packet does not fit into a frame.
    pub fn submit(&mut self, token: u64, packet: &[u8], port: u32) -> Result<(), Busy> {
        let room = self.sandbox.arena().frame_size() - self.headroom;
        let length = u32::try_from(packet.len()).ok().filter(|length| *length <= room);
        let length = length.ok_or(Busy::NoPacket)?;
        let slot = *self.free.last().ok_or(Busy::Full)?;
        let start = self.headroom;
        self.sandbox.arena().write(slot, start, packet);
        self.sandbox.submit(Packet { slot, start, length, port, at: None })?;
        self.free.pop();
        self.tokens[slot as usize] = token;
        Ok(())
    }

    /// Publishes submitted packets to the sandbox process.
    pub fn flush(&mut self) {
        self.sandbox.flush();
    }

    /// Takes available answers, each with its token and the packet as modified by the program. The
    /// packet is `None` if the policy decided: it is the submitted one.
    pub fn poll(&mut self, mut take: impl FnMut(u64, Answer, Option<&[u8]>)) {
        self.sandbox.poll(&mut self.answers);
        for answer in self.answers.drain(..) {
            let slot = answer.slot;
            let bytes = (answer.reason == Reason::Program).then(|| {
                // Copy before use, because the process may still write to its frames.
                let bytes = &mut self.bytes[..answer.length as usize];
                self.sandbox.arena().read(slot, answer.start, bytes);
                &*bytes
            });
            self.free.push(slot);
            take(self.tokens[slot as usize], answer, bytes);
        }
    }
}
