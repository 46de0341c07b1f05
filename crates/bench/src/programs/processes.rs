//! Cost of running a program in a separate process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use p4_object::{Instruction, Object, opcode};
use sandbox::process::{Answer, Arena, Config, Launcher, Packet, Sandbox};
use sandbox::{Instance, Limits, PacketBuffer, Program};

use crate::row::{Better, Row};
use crate::{Context, median, row};

const FRAMES: u32 = 512;
const FRAME: u32 = 2048;
/// Packets submitted to the process per batch.
const BATCH: u32 = 64;
/// Packets in flight of a tenant that never terminates, as a switch port would have.
const HOSTILE: u32 = 8;

/// Runs per figure, single packets per run, and duration of a rate measurement.
struct Effort {
    rounds: usize,
    singles: usize,
    time: Duration,
}

const FULL: Effort = Effort { rounds: 21, singles: 20_000, time: Duration::from_millis(500) };
const QUICK: Effort = Effort { rounds: 7, singles: 5_000, time: Duration::from_millis(200) };

/// Measures processes: `sandbox/round-trip`, compared with the same program in this process;
/// `sandbox/throughput`; and `sandbox/neighbor`, compared with a run without a hostile tenant.
pub(super) fn bench(context: &Context<'_>, quick: bool) -> Result<Vec<Row>> {
    let effort = if quick { QUICK } else { FULL };
    let launcher = Launcher::installed().context("a sandbox cannot start")?;
    let bed = Bed { launcher };
    context.cancel.check()?;
    (context.say)("a program in a process of its own: packet by packet");
    let mut rows = vec![bed.round_trip(&effort)?];
    context.cancel.check()?;
    (context.say)("a program in a process of its own: packets in batches");
    rows.push(bed.throughput(&effort)?);
    context.cancel.check()?;
    (context.say)("a program beside one without end");
    rows.push(bed.neighbor(&effort)?);
    Ok(rows)
}

fn one(opcode: u8, destination: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction { opcode, destination, offset, immediate, ..Instruction::default() }
}

fn object(code: Vec<Instruction>) -> Object {
    let functions = [(0, p4_object::ENTRY.to_owned())].into();
    Object { code, functions, ..Object::default() }
}

/// Program: r0 = 1; exit.
fn pass_all() -> Object {
    object(vec![one(0xb7, 0, 0, 1), one(opcode::EXIT, 0, 0, 0)])
}

/// Program: an endless loop.
fn endless() -> Object {
    object(vec![one(opcode::JUMP, 0, -1, 0), one(opcode::EXIT, 0, 0, 0)])
}

struct Bed {
    launcher: Launcher,
}

/// A tenant and its frames that are not in flight.
struct Tenant {
    sandbox: Sandbox,
    free: Vec<u32>,
    answers: Vec<Answer>,
}

impl Bed {
    fn tenant(&self, object: &Object) -> Result<Tenant> {
        let arena = Arc::new(Arena::new(FRAMES, FRAME).context("memory for packets")?);
        let config = Config {
            spin: Duration::from_millis(5),
            deadline: Duration::from_secs(1),
            ..Config::default()
        };
        let object = p4_object::write(object)?;
        let sandbox = Sandbox::start(self.launcher.clone(), config, arena, &object)?;
        let free = (0..FRAMES).rev().collect();
        Ok(Tenant { sandbox, free, answers: Vec::with_capacity(FRAMES as usize) })
    }

    fn round_trip(&self, effort: &Effort) -> Result<Row> {
        let mut tenant = self.tenant(&pass_all())?;
        let mut here = Here::new()?;
        let (mut away, mut inside) = (Vec::new(), Vec::new());
        for _ in 0..effort.rounds {
            let mut times = Vec::with_capacity(effort.singles);
            for _ in 0..effort.singles {
                let begin = Instant::now();
                tenant.single()?;
                times.push(begin.elapsed().as_nanos() as f64);
            }
            away.push(median(&times));
            inside.push(here.time(effort.singles));
        }
        let baseline = Some(median(&inside));
        Ok(row("sandbox/round-trip", "ns", &away, Better::Less, baseline))
    }

    fn throughput(&self, effort: &Effort) -> Result<Row> {
        let mut tenant = self.tenant(&pass_all())?;
        let rates: Result<Vec<f64>> =
            (0..effort.rounds).map(|_| tenant.rate(effort.time, None)).collect();
        Ok(row("sandbox/throughput", "Mverdicts/s", &rates?, Better::More, None))
    }

    /// Measures a tenant next to a hostile one on the same switch. The hostile one has a packet in
    /// every batch.
    fn neighbor(&self, effort: &Effort) -> Result<Row> {
        let mut tenant = self.tenant(&pass_all())?;
        let (mut alone, mut beside) = (Vec::new(), Vec::new());
        for _ in 0..effort.rounds {
            alone.push(tenant.rate(effort.time, None)?);
            let mut hostile = self.tenant(&endless())?;
            beside.push(tenant.rate(effort.time, Some(&mut hostile))?);
            ensure!(
                hostile.sandbox.counters().packets.policy > 0,
                "the neighbor's packets had no answer"
            );
        }
        let baseline = Some(median(&alone));
        Ok(row("sandbox/neighbor", "Mverdicts/s", &beside, Better::More, baseline))
    }
}

impl Tenant {
    fn submit(&mut self, most: u32) -> Result<()> {
        for _ in 0..most {
            let Some(slot) = self.free.pop() else { break };
            self.sandbox.submit(Packet { slot, start: 256, length: 64, port: 1, at: None })?;
        }
        self.sandbox.flush();
        Ok(())
    }

    /// Collects the available answers.
    fn take(&mut self) -> usize {
        self.answers.clear();
        self.sandbox.poll(&mut self.answers);
        self.free.extend(self.answers.iter().map(|answer| answer.slot));
        self.answers.len()
    }

    /// Runs the round trip of a single packet.
    fn single(&mut self) -> Result<()> {
        self.submit(1)?;
        while self.take() == 0 {
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Returns the rate in millions of verdicts per second.
    fn rate(&mut self, time: Duration, mut beside: Option<&mut Self>) -> Result<f64> {
        let before = self.sandbox.counters().packets.passed;
        let begin = Instant::now();
        while begin.elapsed() < time {
            for _ in 0..16 {
                self.submit(BATCH)?;
                if self.take() == 0 {
                    // If this core is contended, the tenant's process may be waiting for it.
                    std::thread::yield_now();
                }
                if let Some(hostile) = beside.as_deref_mut() {
                    hostile.take();
                    let room = HOSTILE.saturating_sub(FRAMES - hostile.free.len() as u32);
                    if room > 0 {
                        hostile.submit(room)?;
                    }
                }
            }
        }
        let taken = begin.elapsed();
        while self.free.len() < FRAMES as usize {
            self.take();
        }
        let counters = self.sandbox.counters();
        ensure!(counters.packets.policy == 0, "packets without a verdict: {counters:?}");
        Ok((counters.packets.passed - before) as f64 / taken.as_secs_f64() / 1e6)
    }
}

/// The same program in this process.
struct Here {
    instance: Instance,
    memory: Vec<u8>,
}

impl Here {
    fn new() -> Result<Self> {
        let program = Program::load(&pass_all(), &Limits::default())?;
        Ok(Self { instance: Instance::new(&program)?, memory: vec![0; FRAME as usize] })
    }

    /// Returns the time per packet in nanoseconds.
    fn time(&mut self, packets: usize) -> f64 {
        let begin = Instant::now();
        for _ in 0..packets {
            if let Some(mut packet) = PacketBuffer::new(&mut self.memory, 256, 64) {
                std::hint::black_box(self.instance.run(&mut packet, 1));
            }
        }
        begin.elapsed().as_nanos() as f64 / packets as f64
    }
}
