//! For callers whose own memory is not shared: packets are copied into frames, and back.

use super::sandbox::{Answer, Busy, Packet, Reason, Sandbox};

/// A sandbox whose packets are copied into frames and back: what the caller has is out of the process's
/// reach, and stays as it was unless the program has decided.
#[derive(Debug)]
pub struct CopyBack {
    sandbox: Sandbox,
    headroom: u32,
    free: Vec<u32>,
    /// What the caller knows each frame's packet by.
    tokens: Box<[u64]>,
    answers: Vec<Answer>,
    bytes: Vec<u8>,
}

impl CopyBack {
    /// All frames of a sandbox's arena, with so many bytes in front of each packet. Nothing may be on
    /// its way, and nobody else may use them.
    pub fn new(sandbox: Sandbox, headroom: u32) -> Self {
        let (frames, size) = (sandbox.arena().frames(), sandbox.arena().frame_size());
        Self {
            headroom: headroom.min(size),
            free: (0..frames).rev().collect(),
            tokens: vec![0; frames as usize].into(),
            answers: Vec::new(),
            bytes: vec![0; size as usize],
            sandbox,
        }
    }

    /// The sandbox: for its tables, its counters and its versions.
    pub fn sandbox(&mut self) -> &mut Sandbox {
        &mut self.sandbox
    }

    /// Gives a packet to the program; `token` comes back with the answer.
    ///
    /// # Errors
    ///
    /// There is no frame, or the packet does not fit into one.
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

    /// Shows the process what has been submitted.
    pub fn flush(&mut self) {
        self.sandbox.flush();
    }

    /// Fetches the answers that there are: each with its token, and the packet's bytes as the program
    /// left them. Where the policy has decided there are none: the packet is what was submitted.
    pub fn poll(&mut self, mut take: impl FnMut(u64, Answer, Option<&[u8]>)) {
        self.sandbox.poll(&mut self.answers);
        for answer in self.answers.drain(..) {
            let slot = answer.slot;
            let bytes = (answer.reason == Reason::Program).then(|| {
                // Copied before anybody looks: the process may still write to its frames.
                let bytes = &mut self.bytes[..answer.length as usize];
                self.sandbox.arena().read(slot, answer.start, bytes);
                &*bytes
            });
            self.free.push(slot);
            take(self.tokens[slot as usize], answer, bytes);
        }
    }
}
