//! A program with its maps, which serves packet queues in shared memory and requests of the switch.

use std::io;
use std::time::Duration;

use nix::errno::Errno;
use sandbox_queue::{Code, Descriptor, Mapping, ProcessEnd, Reply, Rings};
use serde_bytes::ByteBuf;

use super::channel::Channel;
use super::clock::Clock;
use super::message::{Answer, Hello, Request};
use super::readings::Readings;
use crate::control::{ControlError, Maps};
use crate::instance::Instance;
use crate::outcome::Outcome;
use crate::packet::PacketBuffer;
use crate::program::{Limits, Program};

/// Number of verdicts that are published together.
pub(super) const BATCH: u32 = 32;

/// Size of a packet's memory in a self-test.
const TEST_MEMORY: usize = 64 << 10;
const TEST_HEADROOM: usize = 512;

/// The shared memory of a switch that has sent its greeting.
pub(super) struct Greeted {
    pub(super) hello: Hello,
    rings: ProcessEnd,
    clock: Clock,
    frames: Frames,
}

#[derive(Debug)]
struct Frames {
    memory: Mapping,
    count: u32,
    size: u32,
}

/// A program with its packet queues.
pub(super) struct Server {
    pub(super) rings: ProcessEnd,
    clock: Clock,
    frames: Frames,
    instance: Instance,
    /// Number of lost digests of the instance already reported.
    lost_digests: u64,
}

pub(super) fn other(why: impl Into<String>) -> io::Error {
    io::Error::other(why.into())
}

impl Greeted {
    /// Receives the greeting. Its descriptors are closed; the mappings stay.
    pub(super) fn receive(channel: &mut Channel) -> io::Result<Self> {
        let (message, [rings_file, frames_file]) = channel.receive_with()?;
        let Some(Request::Hello(hello)) = Request::decode(&message) else {
            return Err(other("no greeting"));
        };
        let of_rings = |size| Mapping::new(&rings_file, size);
        Self::map(hello, of_rings, |size| Mapping::new(&frames_file, size))
    }

    /// Maps the memory of the rings and of the frames.
    pub(super) fn map(
        hello: Hello,
        map_rings: impl Fn(usize) -> Result<Mapping, Errno>,
        map_frames: impl FnOnce(usize) -> Result<Mapping, Errno>,
    ) -> io::Result<Self> {
        let Hello { places, queues, frames: count, frame_size: size, .. } = hello;
        hello.check_version().map_err(other)?;
        let rings = ProcessEnd::new(Rings::mapped(places, queues, &map_rings)?);
        let clock = Clock::new(Readings::mapped(map_rings)?);
        let all = (count as usize).checked_mul(size as usize).ok_or_else(|| other("too much"))?;
        let frames = Frames { memory: map_frames(all)?, count, size };
        Ok(Self { hello, rings, clock, frames })
    }

    /// Loads the program of a message. The second value is the answer to the switch. `arrived`: time
    /// at which the message began to arrive, if this machine's clock is not the switch's.
    pub(super) fn load(
        mut self,
        message: &[u8],
        arrived: Option<Duration>,
    ) -> io::Result<(Server, Answer)> {
        let Some(Request::Load { limits, now_ns, object }) = Request::decode(message) else {
            return Err(other("no program"));
        };
        if let Some(arrived) = arrived {
            self.clock.adjust(Duration::from_nanos(now_ns).saturating_sub(arrived));
        }
        let program = load(&object, &limits).map_err(other)?;
        let instance = Instance::new(&program).map_err(|why| other(why.to_string()))?;
        let ready = Answer::Ready {
            maps: program.maps().to_vec(),
            keys: program.keys().to_vec(),
            digests: program.digests().to_vec(),
            executor: program.executor(),
        };
        let Self { rings, clock, frames, .. } = self;
        Ok((Server { rings, clock, frames, instance, lost_digests: 0 }, ready))
    }
}

fn load(object: &[u8], limits: &Limits) -> Result<Program, String> {
    let loaded = std::panic::catch_unwind(|| {
        let object = p4_object::read(object).map_err(|why| why.to_string())?;
        Program::load(&object, limits).map_err(|why| why.to_string())
    });
    loaded.unwrap_or_else(|_| Err("the compiler gave up".to_owned()))
}

impl Server {
    /// Returns true if packets or a request wait.
    pub(super) fn has_work(&self) -> bool {
        self.rings.has_packets() || self.rings.has_message()
    }

    /// Runs a batch of each queue, and calls `ring` if the switch sleeps. Returns false if there
    /// were no packets.
    pub(super) fn serve_queues(&mut self, ring: impl Fn()) -> bool {
        let mut has_served = false;
        for queue in self.rings.queues() {
            let waiting = self.rings.waiting(queue);
            if waiting > 0 {
                self.packets(queue, waiting.min(BATCH));
                if self.rings.show(queue) {
                    ring();
                }
                has_served = true;
            }
        }
        has_served
    }

    fn packets(&mut self, queue: u32, count: u32) {
        self.clock.look();
        for _ in 0..count {
            let packet = self.rings.take(queue);
            let reply = self.packet(packet);
            self.rings.put(queue, reply);
        }
        self.count_lost_digests();
    }

    /// Begins a batch of packets that are in no queue.
    pub(super) fn begin(&mut self) {
        self.clock.look();
    }

    /// Judges a packet of the batch.
    pub(super) fn judge(&mut self, packet: &mut PacketBuffer<'_>, port: u32) -> Code {
        self.run(packet, port, None).verdict.code()
    }

    /// Ends the batch, and calls `ring` if the switch sleeps and has to read digests.
    pub(super) fn finish(&mut self, ring: impl FnOnce()) {
        self.count_lost_digests();
        if self.rings.show_digests() {
            ring();
        }
    }

    /// Counts digests dropped because a single packet emitted too many.
    fn count_lost_digests(&mut self) {
        let lost = self.instance.lost_digests();
        let new = lost.wrapping_sub(self.lost_digests);
        if new > 0 {
            self.lost_digests = lost;
            self.rings.lose_digests(u32::try_from(new).unwrap_or(u32::MAX));
        }
    }

    fn packet(&mut self, packet: Descriptor) -> Reply {
        let Descriptor { slot, generation, start, length, port, at_ns } = packet;
        let size = self.frames.size as usize;
        assert!(slot < self.frames.count, "the switch names frames that there are");
        let memory = self.frames.memory.at(slot as usize * size, size);
        // SAFETY: the frame is in the mapping, to which this process has no references.
        let buffer =
            unsafe { PacketBuffer::from_raw(memory, size, start as usize, length as usize) };
        let mut buffer = buffer.expect("the switch's packets lie in their frames");
        let outcome = self.run(&mut buffer, port, at_ns);
        let (verdict, port) = outcome.verdict.code().encode();
        Reply {
            slot,
            generation,
            // The cast does not truncate: offsets are below the frame size.
            start: buffer.start() as u32,
            length: buffer.len() as u32,
            verdict,
            port,
            has_clone: u32::from(outcome.clone.is_some()),
            clone_port: outcome.clone.unwrap_or_default(),
        }
    }

    /// Runs the program on a packet, at its own time or at that of the batch.
    fn run(&mut self, packet: &mut PacketBuffer<'_>, port: u32, at_ns: Option<u64>) -> Outcome {
        self.clock.set(&mut self.instance, at_ns);
        let outcome = self.instance.run(packet, port);
        self.instance.take_digests(|id, data| self.rings.put_digest(id, data));
        outcome
    }

    /// Executes a request, which has been taken from the socket.
    pub(super) fn answer(&mut self, message: &[u8]) -> Answer {
        self.rings.took_message();
        match Request::decode(message) {
            Some(Request::Apply(batch)) => match self.instance.apply(&batch) {
                Ok(()) => {
                    self.instance.settle();
                    Answer::Done
                }
                Err(why) => refusal(why),
            },
            Some(Request::Read { map, from, most }) => {
                // Keep match order current, so that a piece does not search for its start by
                // counting.
                self.instance.settle();
                self.instance.read(map, from, most).map_or_else(refusal, Answer::Piece)
            }
            Some(Request::Get { map, keys }) => match self.instance.get_all(map, &keys) {
                Ok(values) => {
                    Answer::Values(values.into_iter().map(|one| one.map(ByteBuf::from)).collect())
                }
                Err(why) => refusal(why),
            },
            Some(Request::Test { setup, port, packet }) => self.test(&setup, port, &packet),
            _ => Answer::Failed("no such request".to_owned()),
        }
    }

    /// Runs a self-test packet on a fresh instance with the given changes applied.
    fn test(&mut self, setup: &[crate::Operation], port: u32, packet: &[u8]) -> Answer {
        let mut fresh = match Instance::new(self.instance.program()) {
            Ok(fresh) => fresh,
            Err(why) => return Answer::Failed(why.to_string()),
        };
        if let Err(why) = fresh.apply(setup) {
            return refusal(why);
        }
        let mut memory = vec![0; TEST_MEMORY];
        let Some(place) = memory.get_mut(TEST_HEADROOM..TEST_HEADROOM + packet.len()) else {
            return Answer::Failed("a packet of more than a frame".to_owned());
        };
        place.copy_from_slice(packet);
        self.clock.look();
        self.clock.set(&mut fresh, None);
        let Some(mut buffer) = PacketBuffer::new(&mut memory, TEST_HEADROOM, packet.len()) else {
            return Answer::Failed("a packet of more than a frame".to_owned());
        };
        let Outcome { verdict, clone, .. } = fresh.run(&mut buffer, port);
        let (verdict, port) = verdict.code().encode();
        Answer::Tested { verdict, port, clone, packet: buffer.bytes() }
    }
}

fn refusal(why: ControlError) -> Answer {
    match why {
        ControlError::Operation { at, why } => {
            Answer::Refused { at: u32::try_from(at).unwrap_or(u32::MAX), why }
        }
        ControlError::Map(why) => Answer::Refused { at: 0, why },
        other => Answer::Failed(other.to_string()),
    }
}
