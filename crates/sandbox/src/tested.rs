//! Test target for `p4::stf`: a compiled program in an instance.

use std::time::Duration;

use p4::interpret::tables::Entry;
use p4::interpret::{self, Outcome};
use p4::ir::{Elaborated, Value};
use p4::model::Object;
use p4::stf::{Cell, Said};
use p4_ebpf::Compiled;
use p4_object::cells::{Count, MeterCell, Rates};

use crate::control::{Maps, Operation};
use crate::{Instance, LoadError, PacketBuffer, Program, Verdict};

/// Headroom and tailroom of a packet in bytes.
const CAPACITY: usize = 1024;

/// A compiled program with its maps and their table layout.
#[derive(Debug)]
pub struct Tested<'c> {
    compiled: &'c Compiled,
    elaborated: Elaborated,
    instance: Instance,
    memory: Vec<u8>,
    now: Duration,
}

impl<'c> Tested<'c> {
    /// Creates a test target from a compiled and loaded program.
    ///
    /// # Errors
    ///
    /// Fails if memory for the maps cannot be allocated.
    pub fn new(
        compiled: &'c Compiled,
        elaborated: Elaborated,
        program: &Program,
    ) -> Result<Self, LoadError> {
        let (instance, memory) = (Instance::new(program)?, Vec::new());
        Ok(Self { compiled, elaborated, instance, memory, now: Duration::ZERO })
    }

    /// Sets the time that the program sees, since boot.
    pub fn set_time(&mut self, now: Duration) {
        self.now = now;
        self.instance.set_time(now);
    }

    fn apply(&mut self, change: Operation) -> Result<(), String> {
        self.instance.apply(&[change]).map_err(|why| why.to_string())
    }

    fn put(&mut self, entry: &p4_object::Entry) -> Result<(), String> {
        let map = self.instance.map_at(entry.map as usize);
        map.and_then(|mut map| map.put(entry)).map_err(|why| why.to_string())
    }
}

impl p4::stf::Runs for Tested<'_> {
    fn elaborated(&self) -> &Elaborated {
        &self.elaborated
    }

    fn run(&mut self, port: u32, packet: &[u8]) -> Result<Outcome, String> {
        self.memory.clear();
        self.memory.resize(CAPACITY, 0);
        self.memory.extend(packet);
        self.memory.resize(2 * CAPACITY + packet.len(), 0);
        let buffer = PacketBuffer::new(&mut self.memory, CAPACITY, packet.len());
        let Some(mut buffer) = buffer else { return Err("the packet is too large".to_owned()) };
        let outcome = self.instance.run(&mut buffer, port);
        let came = |verdict| Outcome { verdict, clone: None, packet: packet.to_vec() };
        let verdict = match outcome.verdict {
            // A fault has the same result as an abort: the tenant's policy decides.
            Verdict::Abort | Verdict::Fault(_) => return Ok(came(interpret::Verdict::Abort)),
            Verdict::Drop if outcome.clone.is_none() => return Ok(came(interpret::Verdict::Drop)),
            Verdict::Drop => interpret::Verdict::Drop,
            Verdict::Pass => interpret::Verdict::Pass,
            Verdict::Redirect(port) => interpret::Verdict::Redirect(port),
        };
        Ok(Outcome { verdict, clone: outcome.clone, packet: buffer.bytes() })
    }

    fn add(&mut self, at: usize, entry: Entry) -> Result<(), String> {
        let entry = self.compiled.maps.tables[at].entry(&entry);
        self.put(&entry.ok_or("the table has no key")?)
    }

    fn set_default(
        &mut self,
        at: usize,
        action: usize,
        arguments: Vec<Value>,
    ) -> Result<(), String> {
        let table = &self.compiled.maps.tables[at];
        let constant = "the default action of the table is constant";
        let entry = table.default_entry(action, &arguments).ok_or(constant)?;
        let kept = table.action_size() as usize;
        let p4_object::Entry { map, key, value } = entry;
        self.apply(Operation::Write { map, key, at: 0, bytes: value[..kept].to_vec() })
    }

    fn count(&mut self, at: usize, cell: Cell<'_>) -> Result<Count, String> {
        let (map, key, offset) = self
            .compiled
            .maps
            .cell(&self.elaborated, (at, Object::DirectCounter), cell)
            .ok_or("no cell")?;
        let value = self.instance.get(map, &key).map_err(|why| why.to_string())?;
        let count = value.and_then(|value| Count::from_bytes(value.get(offset as usize..)?));
        count.ok_or_else(|| "no such entry".to_owned())
    }

    fn set_meter(&mut self, at: usize, cell: Cell<'_>, rates: Rates) -> Result<(), String> {
        let (map, key, at) = self
            .compiled
            .maps
            .cell(&self.elaborated, (at, Object::DirectMeter), cell)
            .ok_or("no cell")?;
        let bytes = MeterCell::set(Some(rates)).to_bytes().to_vec();
        self.apply(Operation::Write { map, key, at, bytes })
    }

    fn wait(&mut self, time: u64) {
        // Programs see the time as 64 bits.
        let last = Duration::from_nanos(u64::MAX);
        self.now = self.now.saturating_add(Duration::from_nanos(time)).min(last);
        self.instance.set_time(self.now);
    }

    fn digests(&mut self) -> Vec<(usize, Vec<u8>)> {
        let all = self.instance.digests();
        let maps = &self.compiled.maps;
        all.iter().filter_map(|one| maps.digest_on_the_wire(one.id, &one.data)).collect()
    }

    fn publish(&mut self, key: &str, said: Option<Said>) -> Result<(), String> {
        self.instance.publish(key, said.map(|said| said.at(self.now.as_nanos() as u64)));
        Ok(())
    }
}
