//! Main loop of the sandbox process: runs the program on packets in shared memory.

use std::io;
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use sandbox_queue::{Descriptor, Mapping, ProcessEnd, Reply, Rings};

use super::channel::Channel;
use super::clock::Clock;
use super::filter::{self, Stage};
use super::isolation::isolate;
use super::message::{Answer, Hello, Request, VERSION};
use crate::control::{ControlError, Maps};
use crate::instance::Instance;
use crate::outcome::Outcome;
use crate::packet::PacketBuffer;
use crate::program::{Limits, Program};

/// Number of verdicts that are published together.
const BATCH: u32 = 32;
/// Interval of the check for the switch when there are no packets.
const LOOK: Duration = Duration::from_secs(1);
/// Ring polls between two reads of the clock.
const LOOKS: u32 = 64;
/// Descriptors of the control socket and of the doorbell that wakes the switch.
const CONTROL: i32 = 0;
const BELL: i32 = 1;

/// Size of a packet's memory in a self-test.
const TEST_MEMORY: usize = 64 << 10;
const TEST_HEADROOM: usize = 512;

/// Entry point of the sandbox process. [`Sandbox`](super::Sandbox) starts it with the control
/// socket as standard input and an `eventfd` as standard output. Returns when the switch closes the
/// socket.
///
/// The process isolates itself before it receives a program. Call this first in `main`, while the
/// process is single-threaded.
pub fn run_child() -> ExitCode {
    // Errors are reported on the control socket; standard error is not available.
    std::panic::set_hook(Box::new(|_| {}));
    // SAFETY: the parent has opened the socket as descriptor 0, and it has no other user: the
    // process does not read standard input.
    let mut channel = Channel::new(unsafe { UnixStream::from_raw_fd(CONTROL) });
    match serve(&mut channel) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // The switch may have exited.
            let _ = channel.send(&Answer::Failed(why.to_string()).encode());
            ExitCode::FAILURE
        }
    }
}

fn other(why: impl Into<String>) -> io::Error {
    io::Error::other(why.into())
}

fn serve(channel: &mut Channel) -> io::Result<()> {
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
    let (message, [rings_file, frames_file]) = channel.receive_with()?;
    let Some(Request::Hello(hello)) = Request::decode(&message) else {
        return Err(other("no greeting"));
    };
    let Hello { places, queues, frames: count, frame_size, .. } = hello;
    if hello.version != VERSION {
        let (its, mine) = (hello.version, VERSION);
        return Err(other(format!("the process speaks version {mine}, the switch version {its}")));
    }
    let rings = ProcessEnd::new(Rings::new(&rings_file, places, queues)?);
    let clock = Clock::new(&rings_file)?;
    let size =
        (count as usize).checked_mul(frame_size as usize).ok_or_else(|| other("too much"))?;
    let frames = Frames { memory: Mapping::new(&frames_file, size)?, count, size: frame_size };
    // Close the descriptors now; the mappings stay. Once close(2) is filtered, dropping them would
    // kill the process.
    drop((rings_file, frames_file));
    let isolation = isolate(hello.memory).map_err(other)?;
    channel.send(&Answer::Isolated(isolation).encode())?;
    let message = channel.receive()?;
    let Some(Request::Load(limits, object)) = Request::decode(&message) else {
        return Err(other("no program"));
    };
    let program = load(&object, &limits).map_err(other)?;
    let instance = Instance::new(&program).map_err(|why| other(why.to_string()))?;
    drop((object, message));
    filter::install(Stage::Run).map_err(other)?;
    let ready = Answer::Ready {
        maps: program.maps().to_vec(),
        keys: program.keys().to_vec(),
        digests: program.digests().to_vec(),
        executor: program.executor(),
    };
    channel.send(&ready.encode())?;
    let spin = Duration::from_micros(u64::from(hello.spin_us));
    Server { channel, rings, clock, frames, instance, lost_digests: 0, spin }.run()
}

fn load(object: &[u8], limits: &Limits) -> Result<Program, String> {
    let loaded = std::panic::catch_unwind(|| {
        let object = p4_object::read(object).map_err(|why| why.to_string())?;
        Program::load(&object, limits).map_err(|why| why.to_string())
    });
    loaded.unwrap_or_else(|_| Err("the compiler gave up".to_owned()))
}

#[derive(Debug)]
struct Frames {
    memory: Mapping,
    count: u32,
    size: u32,
}

struct Server<'c> {
    channel: &'c mut Channel,
    rings: ProcessEnd,
    clock: Clock,
    frames: Frames,
    instance: Instance,
    /// Number of lost digests of the instance already reported.
    lost_digests: u64,
    spin: Duration,
}

impl Server<'_> {
    fn run(&mut self) -> io::Result<()> {
        loop {
            if self.rings.has_message() {
                self.rings.took_message();
                self.answer()?;
            }
            if !self.serve_queues() {
                self.wait()?;
            }
        }
    }

    /// Runs a batch of each queue. Returns false if there were no packets.
    fn serve_queues(&mut self) -> bool {
        let mut has_served = false;
        for queue in self.rings.queues() {
            let waiting = self.rings.waiting(queue);
            if waiting > 0 {
                self.packets(queue, waiting.min(BATCH));
                has_served = true;
            }
        }
        has_served
    }

    /// Waits for a packet or a message: spins, then sleeps.
    fn wait(&mut self) -> io::Result<()> {
        let begin = Instant::now();
        loop {
            for _ in 0..LOOKS {
                if self.rings.has_packets() || self.rings.has_message() {
                    return Ok(());
                }
                std::hint::spin_loop();
            }
            if begin.elapsed() >= self.spin {
                break;
            }
        }
        self.rings.sleep(LOOK);
        let is_new = self.rings.has_packets() || self.rings.has_message();
        if is_new || !is_gone() {
            return Ok(());
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    }

    fn packets(&mut self, queue: u32, count: u32) {
        self.clock.look();
        for _ in 0..count {
            let packet = self.rings.take(queue);
            let reply = self.packet(packet);
            self.rings.put(queue, reply);
        }
        // Digests dropped because a single packet emitted too many.
        let lost = self.instance.lost_digests();
        let new = lost.wrapping_sub(self.lost_digests);
        if new > 0 {
            self.lost_digests = lost;
            self.rings.lose_digests(u32::try_from(new).unwrap_or(u32::MAX));
        }
        if self.rings.show(queue) {
            ring();
        }
    }

    fn packet(&mut self, packet: Descriptor) -> Reply {
        let Descriptor { slot, generation, start, length, port, at_ns } = packet;
        self.clock.set(&mut self.instance, at_ns);
        let size = self.frames.size as usize;
        assert!(slot < self.frames.count, "the switch names frames that there are");
        let memory = self.frames.memory.at(slot as usize * size, size);
        // SAFETY: the frame is in the mapping, to which this process has no references.
        let buffer =
            unsafe { PacketBuffer::from_raw(memory, size, start as usize, length as usize) };
        let mut buffer = buffer.expect("the switch's packets lie in their frames");
        let outcome = self.instance.run(&mut buffer, port);
        self.instance.take_digests(|id, data| self.rings.put_digest(id, data));
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

    fn answer(&mut self) -> io::Result<()> {
        let message = self.channel.receive()?;
        let answer = match Request::decode(&message) {
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
            Some(Request::Get { map, key }) => {
                self.instance.get(map, &key).map_or_else(refusal, Answer::Value)
            }
            Some(Request::Test { setup, port, packet }) => self.test(&setup, port, &packet),
            _ => Answer::Failed("no such request".to_owned()),
        };
        self.channel.send(&answer.encode())
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

/// True if the switch has closed the control socket.
fn is_gone() -> bool {
    let mut byte = 0_u8;
    let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
    // SAFETY: the buffer is one byte, which is writable.
    let got = unsafe { libc::recv(CONTROL, (&raw mut byte).cast(), 1, flags) };
    got == 0
}

/// Rings the doorbell of the switch.
fn ring() {
    let one = 1_u64.to_ne_bytes();
    // The counter overflows only if this process rings without end; the doorbell is pending then
    // anyway.
    // SAFETY: the buffer is eight bytes, which are readable.
    unsafe { libc::write(BELL, one.as_ptr().cast(), one.len()) };
}
