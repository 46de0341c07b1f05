//! A measured program.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use p4::stf::{Cell, Command, Line};
use p4_ebpf::Compiled;
use p4_object::cells::Rates;
use p4_object::{Entry, Object};
use sandbox::{Instance, Limits, Outcome, PacketBuffer, Program, Tested};

/// Size of a packet buffer, and its headroom.
const FRAME: usize = 2048;
const HEADROOM: usize = 256;
/// Packets prepared per batch, so that copies are not timed.
const BATCH: usize = 64;

/// Packets with their ports.
pub(super) struct Packets(Vec<(u32, Vec<u8>)>);

impl Packets {
    /// Returns the packets of a test.
    pub(super) fn load(test: &str) -> Result<Self> {
        let lines = p4::stf::parse(test)?;
        let packet = |line: Line| match line.command {
            Command::Packet(port, bytes) => Some((port, bytes)),
            _ => None,
        };
        let all: Vec<_> = lines.into_iter().filter_map(packet).collect();
        ensure!(!all.is_empty(), "a test without packets");
        Ok(Self(all))
    }
}

/// One of the two implementations.
pub(super) struct Side {
    object: Object,
    instance: Instance,
    memory: Vec<u8>,
}

impl Side {
    /// Compiles a program from P4, with the entries of its test.
    pub(super) fn compiled(name: &str, program: &str, test: &str) -> Result<Self> {
        let checked = p4::check(name, program, &p4::NoIncludes);
        let compiled = p4_ebpf::compile(&checked.program, &checked.sources)
            .map_err(|why| anyhow!("{}", why.render(&checked.sources, false)))?;
        let entries = entries(&checked.program, &compiled, test)?;
        let mut object = compiled.object;
        object.entries.extend(entries);
        Self::load(object).with_context(|| format!("{name} in P4"))
    }

    /// Loads a program compiled from C. Its maps get the contents of the other program's maps of
    /// the same name.
    pub(super) fn by_hand(name: &str, object: &[u8], other: &Self) -> Result<Self> {
        let mut object = p4_object::read(object)?;
        for entry in &other.object.entries {
            let map = &other.object.maps[entry.map as usize];
            // The C program has no map for it, but contains it in its code.
            let at = object.maps.iter().position(|one| one.name == map.name);
            if let Some(at) = at {
                ensure!(object.maps[at] == *map, "{name} in C: map `{}` is another one", map.name);
                object.entries.push(Entry { map: at as u32, ..entry.clone() });
            }
        }
        Self::load(object).with_context(|| format!("{name} in C"))
    }

    fn load(object: Object) -> Result<Self> {
        let instance = Instance::new(&Program::load(&object, &Limits::default())?)?;
        Ok(Self { object, instance, memory: vec![0; FRAME * BATCH] })
    }

    /// Returns the outcome for a packet, and the packet's bytes afterwards.
    fn run(&mut self, port: u32, packet: &[u8]) -> Result<(Outcome, Vec<u8>)> {
        let frame = &mut self.memory[..FRAME];
        frame.fill(0);
        frame[HEADROOM..HEADROOM + packet.len()].copy_from_slice(packet);
        let buffer = PacketBuffer::new(frame, HEADROOM, packet.len());
        let mut buffer = buffer.context("the packet has room")?;
        let outcome = self.instance.run(&mut buffer, port);
        Ok((outcome, buffer.bytes()))
    }

    /// Returns the time that `count` consecutive packets take.
    pub(super) fn time(&mut self, packets: &Packets, count: usize) -> Duration {
        let Packets(packets) = packets;
        let mut taken = Duration::ZERO;
        let mut next = packets.iter().cycle();
        for _ in 0..count.div_ceil(BATCH) {
            let mut batch: Vec<(u32, PacketBuffer<'_>)> = Vec::with_capacity(BATCH);
            for frame in self.memory.chunks_exact_mut(FRAME) {
                let Some((port, packet)) = next.next() else { break };
                frame[HEADROOM..HEADROOM + packet.len()].copy_from_slice(packet);
                batch.extend(
                    PacketBuffer::new(frame, HEADROOM, packet.len()).map(|one| (*port, one)),
                );
            }
            let begin = Instant::now();
            for (port, buffer) in &mut batch {
                std::hint::black_box(self.instance.run(buffer, *port));
            }
            taken += begin.elapsed();
        }
        taken
    }
}

/// Returns all entries that a test adds.
fn entries(program: &p4::ir::Program, compiled: &Compiled, test: &str) -> Result<Vec<Entry>> {
    let loaded = Program::load(&compiled.object, &Limits::default())?;
    let elaborated = p4::interpret::elaborate(program)?;
    let mut collected = Collected {
        tested: Tested::new(compiled, elaborated, &loaded)?,
        compiled,
        entries: Vec::new(),
    };
    let lines = p4::stf::parse(test)?;
    let puts = |line: &Line| {
        matches!(
            line.command,
            Command::Add { .. } | Command::SetDefault(..) | Command::SetMeter(..)
        )
    };
    let lines: Vec<_> = lines.into_iter().filter(puts).collect();
    let failures = p4::stf::run(program, &mut collected, &lines);
    if let Some(failure) = failures.first() {
        bail!("{failure}");
    }
    Ok(collected.entries)
}

/// Collects entries.
struct Collected<'c> {
    tested: Tested<'c>,
    compiled: &'c Compiled,
    entries: Vec<Entry>,
}

impl p4::stf::Runs for Collected<'_> {
    fn elaborated(&self) -> &p4::ir::Elaborated {
        p4::stf::Runs::elaborated(&self.tested)
    }

    fn run(&mut self, port: u32, packet: &[u8]) -> Result<p4::interpret::Outcome, String> {
        p4::stf::Runs::run(&mut self.tested, port, packet)
    }

    fn add(&mut self, at: usize, entry: p4::interpret::tables::Entry) -> Result<(), String> {
        self.entries.extend(self.compiled.maps.tables[at].entry(&entry));
        Ok(())
    }

    fn set_default(
        &mut self,
        at: usize,
        action: usize,
        arguments: Vec<p4::ir::Value>,
    ) -> Result<(), String> {
        let entry = self.compiled.maps.tables[at].default_entry(action, &arguments);
        self.entries.extend(entry);
        Ok(())
    }

    fn count(&mut self, at: usize, cell: Cell<'_>) -> Result<p4_object::cells::Count, String> {
        p4::stf::Runs::count(&mut self.tested, at, cell)
    }

    fn set_meter(&mut self, at: usize, cell: Cell<'_>, _: Rates) -> Result<(), String> {
        Err(format!("{at}, {cell:?}: a program that is measured has no meters that are set"))
    }

    fn wait(&mut self, time: u64) {
        p4::stf::Runs::wait(&mut self.tested, time);
    }

    fn digests(&mut self) -> Vec<(usize, Vec<u8>)> {
        p4::stf::Runs::digests(&mut self.tested)
    }
}

/// Checks that both programs have the same outcome for each packet, and the same state afterwards.
pub(super) fn agree(
    name: &str,
    packets: &Packets,
    ours: &mut Side,
    theirs: &mut Side,
) -> Result<()> {
    for (at, (port, packet)) in packets.0.iter().enumerate() {
        let (mine, my_bytes) = ours.run(*port, packet)?;
        let (other, other_bytes) = theirs.run(*port, packet)?;
        let leaves = !matches!(mine.verdict, sandbox::Verdict::Abort | sandbox::Verdict::Drop)
            || mine.clone.is_some();
        ensure!(
            mine.verdict == other.verdict && mine.clone == other.clone,
            "{name}, packet {at}: {:?} from P4, {:?} from C",
            mine,
            other
        );
        ensure!(
            !leaves || my_bytes == other_bytes,
            "{name}, packet {at}: {my_bytes:02x?} from P4, {other_bytes:02x?} from C"
        );
    }
    for map in &theirs.object.maps.clone() {
        let held = |side: &mut Side| -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
            let map = side.instance.map(&map.name)?;
            let mut all: Vec<_> = map.entries().map(|(key, value)| (key, value.to_vec())).collect();
            all.sort();
            Ok(all)
        };
        if ours.object.maps.iter().any(|one| one.name == map.name) {
            ensure!(
                held(ours)? == held(theirs)?,
                "{name}: map `{}` holds something else",
                map.name
            );
        }
    }
    Ok(())
}
