//! A path between rings in memory, with programs that the tests answer for.

use sandbox::process::Hosted;
use sandbox_queue::{Accusation, Code, Policy, ProcessEnd, Reason, Reply, Rings, sealed};
use xsk::{Offsets, RingMemory};
use xsk_link::{Attach, Direction, Report};

use super::*;
use crate::area::Area;
use crate::attachment::Attachment;
use crate::longest::LongestFrame;

const SIZE: u32 = 8;
const CHUNK: u32 = 1024;
const CONTINUED: u32 = 1;
/// Sizes of a program's queue.
const PLACES: u32 = 4;
const FRAME: u32 = 4096;

/// A receive path with both ends of its rings.
struct Bed {
    path: Path,
    longest: LongestFrame,
    received: Producer<Descriptor>,
    taken: Consumer<Descriptor>,
    /// Rings and packet memory, to which the ends refer.
    _rings: [RingMemory; 4],
    _memory: Vec<u8>,
}

/// A program, for which the test writes verdicts.
struct Program {
    process: ProcessEnd,
    attachment: Option<Attachment>,
}

fn program(number: u64) -> Program {
    program_of(number, None, 1_000_000)
}

fn program_of(number: u64, host: Option<Arc<Hosted>>, deadline_us: u32) -> Program {
    let rings = sealed("rings", Rings::bytes(PLACES, 1)).unwrap();
    let frames = sealed("frames", (PLACES * FRAME) as usize).unwrap();
    let order = Attach {
        socket: 1,
        direction: Direction::Receive,
        attachment: number,
        port: 1,
        deadline_us,
        hold_us: 60_000_000,
        policy: Policy::Closed,
        number: 0,
        queues: 1,
        places: PLACES,
        frames: PLACES,
        frame_size: FRAME,
        host: None,
    };
    let process = ProcessEnd::new(Rings::new(&rings, PLACES, 1).unwrap());
    Program { process, attachment: Some(Attachment::new(&order, &rings, frames, host).unwrap()) }
}

impl Program {
    /// Passes all packets that have been submitted, unchanged, and returns their lengths.
    fn pass(&mut self) -> Vec<u32> {
        self.lengthen(0)
    }

    /// Does the same with packets that the program makes longer by a number of bytes.
    fn lengthen(&mut self, by: u32) -> Vec<u32> {
        let mut lengths = Vec::new();
        while self.process.waiting(0) > 0 {
            let sandbox_queue::Descriptor { slot, generation, start, length, .. } =
                self.process.take(0);
            let (verdict, port) = Code::Pass.encode();
            let (has_clone, clone_port) = (0, 0);
            lengths.push(length);
            let length = length + by;
            let reply =
                Reply { slot, generation, start, length, verdict, port, has_clone, clone_port };
            self.process.put(0, reply);
        }
        self.process.show(0);
        lengths
    }
}

impl Bed {
    fn new() -> Self {
        let offsets = Offsets::OWN;
        let [rx, client_rx, fill, client_fill] =
            [2, 2, 1, 1].map(|words| RingMemory::new(offsets, SIZE, words).unwrap());
        let mut memory = vec![0; (2 * SIZE * CHUNK) as usize];
        let bytes = memory.len() as u64;
        let frames = Arc::new(Frames::new(bytes, CHUNK, false));
        for chunk in 0..2 * SIZE {
            frames.step((chunk * CHUNK).into(), State::Client, State::Receiving).unwrap();
        }
        let longest = LongestFrame::default();
        let area = Area::new(memory.as_mut_ptr(), bytes, CHUNK, false);
        let mut judge = Judge::new(area, longest.clone());
        judge.open();
        // SAFETY: the rings live as long as the ends, of which there is one of each kind.
        unsafe {
            let path = Path {
                packets_in: Consumer::new(&rx.view()),
                packets_out: Producer::new(&client_rx.view()),
                chunks_in: Consumer::new(&client_fill.view()),
                chunks_out: Producer::new(&fill.view()),
                source: State::Receiving,
                sink: State::Client,
                frames,
                judge,
                dropped: Vec::new(),
                begun: Begun::default(),
            };
            let (received, taken) = (Producer::new(&rx.view()), Consumer::new(&client_rx.view()));
            Self {
                path,
                longest,
                received,
                taken,
                _rings: [rx, client_rx, fill, client_fill],
                _memory: memory,
            }
        }
    }

    /// Receives a descriptor in this chunk.
    fn receive(&mut self, chunk: u32, length: u32, is_continued: bool) {
        let options = if is_continued { CONTINUED } else { 0 };
        self.received.put(Descriptor { address: (chunk * CHUNK).into(), length, options });
        self.received.publish();
        self.path.advance();
    }

    /// Lengths of the descriptors that the client gets, negative if the packet continues.
    fn take(&mut self) -> Vec<i64> {
        self.path.advance();
        let count = self.taken.available();
        let sign = |one: Descriptor| if is_continued(one) { -1 } else { 1 };
        let mut next = || self.taken.take();
        let all = (0..count).map(|_| {
            let one = next();
            sign(one) * i64::from(one.length)
        });
        let all = all.collect();
        self.taken.release();
        all
    }
}

/// Otherwise packets that wait for it would wait forever after a detachment.
#[test]
fn a_host_that_has_ended_is_late() {
    let host = Arc::new(Hosted::default());
    let (mut bed, mut program) = (Bed::new(), program_of(1, Some(Arc::clone(&host)), 1000));
    bed.path.judge.attach(program.attachment.take());
    bed.receive(0, 100, false);
    let mut reports = || {
        std::thread::park_timeout(std::time::Duration::from_millis(2));
        bed.path.advance();
        bed.path.judge.take_reports()
    };
    assert_eq!(reports(), [], "this process's own threads judge the packets");
    host.end();
    let late = Report::Accused { attachment: 1, accusation: Accusation::Late };
    assert_eq!(reports(), [late]);
}

#[test]
fn a_packet_that_began_without_a_program_passes_without_one() {
    let (mut bed, mut program) = (Bed::new(), program(1));
    bed.receive(0, 1000, true);
    assert_eq!(bed.take(), [-1000]);
    bed.path.judge.attach(program.attachment.take());
    bed.receive(1, 500, false);
    bed.receive(2, 60, false);
    assert_eq!((bed.take(), program.pass()), (vec![500], vec![60]));
    assert_eq!(bed.take(), [60]);
    assert_eq!(bed.path.judge.tally().unjudged, 1);
}

#[test]
fn a_packet_whose_program_is_detached_passes_as_a_whole() {
    let (mut bed, mut program) = (Bed::new(), program(1));
    bed.path.judge.attach(program.attachment.take());
    bed.receive(0, 1000, true);
    assert_eq!(bed.take(), [0; 0]);
    bed.path.judge.attach(None);
    assert_eq!(bed.take(), [-1000]);
    bed.receive(1, 500, false);
    assert_eq!(bed.take(), [500]);
    assert_eq!(bed.path.judge.tally().unjudged, 1);
}

/// The last descriptor arrives while no packet can be submitted.
#[test]
fn a_packet_waits_for_the_packets_of_a_replaced_program() {
    let (mut bed, [mut old, mut new]) = (Bed::new(), [1, 2].map(program));
    bed.path.judge.attach(old.attachment.take());
    bed.receive(0, 60, false);
    bed.receive(1, 1000, true);
    bed.path.judge.attach(new.attachment.take());
    bed.receive(2, 500, false);
    bed.receive(3, 61, false);
    assert_eq!((bed.take(), new.pass()), (vec![], vec![]), "the old program has a packet");
    assert_eq!(old.pass(), [60]);
    assert_eq!(bed.take(), [60]);
    assert_eq!(new.pass(), [1500, 61]);
    assert_eq!(bed.take(), [-1000, 500, 61]);
    assert_eq!((bed.path.judge.tally().unfit, bed.path.judge.flying()), (0, 0));
}

#[test]
fn a_packet_waits_for_the_process_after_the_one_that_has_ended() {
    let (mut bed, [mut old, mut new]) = (Bed::new(), [1, 2].map(program));
    bed.path.judge.attach(old.attachment.take());
    bed.receive(0, 1000, true);
    bed.path.judge.end(1, Reason::Crashed, Reason::Restarting);
    bed.receive(1, 500, false);
    assert_eq!(bed.take(), [0; 0]);
    bed.path.judge.attach(new.attachment.take());
    assert_eq!(bed.take(), [0; 0]);
    assert_eq!(new.pass(), [1500]);
    assert_eq!(bed.take(), [-1000, 500]);
    assert_eq!(bed.path.judge.tally().policy, 0);
}

#[test]
fn a_packet_that_fills_the_ring_of_its_client_is_dropped() {
    let (mut bed, mut program) = (Bed::new(), program(1));
    bed.path.judge.attach(program.attachment.take());
    for chunk in 0..SIZE {
        bed.receive(chunk, 100, chunk + 1 < SIZE);
    }
    bed.receive(SIZE, 60, false);
    assert_eq!(program.pass(), [60]);
    assert_eq!(bed.take(), [60]);
    assert_eq!(bed.path.judge.tally().unfit, 1);
}

#[test]
fn a_program_makes_no_packet_longer_than_the_interface_sends() {
    let (mut bed, mut program) = (Bed::new(), program(1));
    bed.path.judge.attach(program.attachment.take());
    // 100 bytes, an Ethernet header and two tags.
    bed.longest.set_mtu(100);
    let mut passes = |chunk, length, by| {
        bed.receive(chunk, length, false);
        assert_eq!(program.lengthen(by), [length]);
        bed.take()
    };
    assert_eq!(passes(0, 118, 4), [122]);
    assert_eq!(passes(1, 118, 5), [0; 0]);
    // Not by the program.
    assert_eq!(passes(2, 500, 0), [500]);
    assert_eq!(passes(3, 500, 1), [0; 0]);
    assert_eq!(bed.path.judge.tally().unfit, 2);
}
