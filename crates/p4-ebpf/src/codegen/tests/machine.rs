//! A simple machine for compiled programs: slow, with a check of every memory access.

use std::collections::HashMap;

use p4::interpret::tables::Entry as Written;
use p4::interpret::{Outcome, Verdict};
use p4::ir::{Elaborated, Value};
use p4::model::Object;
use p4::stf::{Cell, Runs, Said};
use p4_object::cells::{Color, Count, MeterCell, Rates};
use p4_object::metadata;
use p4_object::vm::Reading;
use p4_object::{Entry, Instruction, Key, MapKind, WordRange, callee, helper, opcode, wide};

use crate::codegen::Compiled;

/// Base addresses: each kind of memory has its own range.
const CONTEXT: u64 = 0x1000;
const METADATA: u64 = 0x10_0000;
const STACK: u64 = 0x20_0000;
const PACKET: u64 = 0x30_0000;
const VALUES: u64 = 0x1_0000_0000;
/// Size of the address range of one map's values.
const MAP: u64 = 0x1_0000_0000;
const MAPS: u64 = 0x7000_0000_0000;
const STACK_BYTES: usize = 512;
const MAX_STEPS: usize = 1_000_000;

/// Contents of a map: keys, with the indices of their values.
#[derive(Default)]
struct Held {
    bytes: HashMap<Vec<u8>, usize>,
    words: Vec<(Vec<WordRange>, u32, usize)>,
    values: Vec<Vec<u8>>,
}

/// A compiled program with its maps.
pub(super) struct Machine<'c> {
    compiled: &'c Compiled,
    elaborated: Elaborated,
    held: Vec<Held>,
    /// Time in nanoseconds.
    pub now: u64,
    /// Values published by the tenant's VM.
    pub vm: HashMap<String, Reading>,
    /// Digests sent to the control plane: ids and bytes.
    told: Vec<(u32, Vec<u8>)>,
    packet: Vec<u8>,
    metadata: Vec<u8>,
    stack: Vec<u8>,
    /// Number of executed instructions.
    pub steps: usize,
}

impl<'c> Machine<'c> {
    pub(super) fn new(compiled: &'c Compiled, elaborated: Elaborated) -> Self {
        let held = compiled.object.maps.iter().map(|map| {
            let mut held = Held::default();
            if map.kind == MapKind::Array {
                for at in 0..map.max_entries {
                    held.bytes.insert(at.to_le_bytes().to_vec(), at as usize);
                    held.values.push(vec![0; map.value_size as usize]);
                }
            }
            held
        });
        let mut machine = Self {
            compiled,
            elaborated,
            held: held.collect(),
            now: 0,
            vm: HashMap::new(),
            told: Vec::new(),
            packet: Vec::new(),
            metadata: Vec::new(),
            stack: Vec::new(),
            steps: 0,
        };
        for entry in &compiled.object.entries {
            machine.put(entry, false);
        }
        machine
    }

    /// Inserts an entry into its map. An existing entry with the same key is replaced only if
    /// `over`.
    fn put(&mut self, entry: &Entry, over: bool) {
        let held = &mut self.held[entry.map as usize];
        let is_array = self.compiled.object.maps[entry.map as usize].kind == MapKind::Array;
        match &entry.key {
            Key::Bytes(key) => match held.bytes.get(key) {
                Some(at) if over || is_array => held.values[*at] = entry.value.clone(),
                Some(_) => {}
                None => {
                    held.bytes.insert(key.clone(), held.values.len());
                    held.values.push(entry.value.clone());
                }
            },
            Key::Words(words, priority) => {
                if over {
                    held.words.retain(|(other, high, _)| (other, high) != (words, priority));
                }
                held.words.push((words.clone(), *priority, held.values.len()));
                held.values.push(entry.value.clone());
            }
        }
    }

    /// Returns the value that contains a cell, and the offset of the cell.
    fn cell(
        &mut self,
        of: (usize, Object),
        cell: Cell<'_>,
    ) -> Result<(&mut Vec<u8>, usize), String> {
        let place = self.compiled.maps.cell(&self.elaborated, of, cell);
        let (map, key, offset) = place.ok_or("no cell")?;
        let held = &mut self.held[map as usize];
        let at = match &key {
            Key::Bytes(key) => held.bytes.get(key).copied(),
            Key::Words(words, priority) => {
                let is = |(other, high, _): &&(Vec<WordRange>, u32, usize)| {
                    (other, high) == (words, priority)
                };
                held.words.iter().find(is).map(|(.., at)| *at)
            }
        };
        Ok((&mut held.values[at.ok_or("no entry")?], offset as usize))
    }

    fn memory(&mut self, at: u64, size: usize) -> &mut [u8] {
        if (VALUES..MAPS).contains(&at) {
            let (map, within) = ((at - VALUES) / MAP, (at - VALUES) % MAP);
            let width = u64::from(self.compiled.object.maps[map as usize].value_size);
            let (value, offset) = ((within / width) as usize, (within % width) as usize);
            return &mut self.held[map as usize].values[value][offset..offset + size];
        }
        let (start, bytes) = match at {
            PACKET.. => (PACKET, &mut self.packet),
            STACK.. => (STACK, &mut self.stack),
            METADATA.. => (METADATA, &mut self.metadata),
            _ => panic!("{at:#x}: no memory"),
        };
        let offset = (at - start) as usize;
        let length = bytes.len();
        bytes.get_mut(offset..offset + size).unwrap_or_else(|| {
            panic!("{size} bytes at {at:#x}: there are {length} from {start:#x} on")
        })
    }

    fn load(&mut self, at: u64, size: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(self.memory(at, size));
        u64::from_le_bytes(bytes)
    }

    fn look_up(&mut self, map: u64, key: u64) -> u64 {
        let place = (map - MAPS) as usize;
        let size = self.compiled.object.maps[place].key_size as usize;
        let key = self.memory(key, size).to_vec();
        let kind = self.compiled.object.maps[place].kind;
        let held = &self.held[place];
        let found = match kind {
            MapKind::Array | MapKind::Hash => held.bytes.get(&key).copied(),
            MapKind::LpmTrie => {
                let bits = |key: &[u8]| u32::from_le_bytes(key[..4].try_into().unwrap()) as usize;
                let fits = |(entry, _): &(&Vec<u8>, &usize)| {
                    (0..bits(entry)).all(|at| {
                        let bit = |key: &[u8]| key[4 + at / 8] >> (7 - at % 8) & 1;
                        bit(entry) == bit(&key)
                    })
                };
                let all = held.bytes.iter().filter(fits);
                all.max_by_key(|(entry, _)| bits(entry)).map(|(_, at)| *at)
            }
            MapKind::Ternary => {
                let words: Vec<u64> = key
                    .chunks_exact(8)
                    .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
                    .collect();
                let fits = |(ranges, ..): &&(Vec<WordRange>, u32, usize)| {
                    ranges
                        .iter()
                        .zip(&words)
                        .all(|(range, word)| (range.from..=range.to).contains(&(word & range.mask)))
                };
                let all = held.words.iter().rev().filter(fits);
                all.max_by_key(|(_, priority, _)| *priority).map(|(.., at)| *at)
            }
        };
        let width = u64::from(self.compiled.object.maps[place].value_size);
        found.map_or(0, |at| VALUES + place as u64 * MAP + at as u64 * width)
    }

    fn call(&mut self, helper: i32, [a, b, c]: [u64; 3]) -> u64 {
        match helper {
            1 => self.look_up(a, b),
            5 => self.now,
            6 => {
                let bytes = self.memory(a, b as usize).to_vec();
                u64::from(p4_object::lookup3(&bytes))
            }
            8 => {
                assert_eq!(a, CONTEXT);
                let more = b as i64;
                if more >= 0 {
                    self.packet.splice(..0, vec![0xee; more as usize]);
                } else {
                    self.packet.drain(..more.unsigned_abs() as usize);
                }
                PACKET
            }
            9 => {
                assert_eq!(a, CONTEXT);
                PACKET
            }
            11 => {
                self.packet.truncate(b as usize);
                0
            }
            20 => {
                let reading = self.vm.get(&self.compiled.object.keys[a as usize]);
                match (b, reading) {
                    (0, reading) => reading.map_or(0, |one| one.value),
                    (1, reading) => reading.is_some_and(|one| one.until_ns > self.now).into(),
                    (2, None) => u64::MAX,
                    (2, Some(one)) => self.now.wrapping_sub(one.at_ns),
                    _ => panic!("part {b}"),
                }
            }
            helper::METER => {
                let now = self.now;
                let bytes = self.memory(a, MeterCell::SIZE as usize);
                let mut cell = MeterCell::from_bytes(bytes).unwrap();
                assert!(c < 3, "no color");
                let color = cell.execute(now, b, Color::from_number(c));
                bytes.copy_from_slice(&cell.to_bytes());
                color as u64
            }
            helper::DIGEST => {
                let id = u32::try_from(a).unwrap();
                assert_eq!(self.compiled.object.digests[id as usize].size as u64, c);
                let bytes = self.memory(b, c as usize).to_vec();
                self.told.push((id, bytes));
                0
            }
            _ => panic!("helper {helper}"),
        }
    }

    fn execute(&mut self) -> u64 {
        let mut registers = [0xdead_0000_u64; 11];
        (registers[1], registers[2]) = (CONTEXT, METADATA);
        registers[10] = STACK + STACK_BYTES as u64;
        let mut at = 0;
        for _ in 0..MAX_STEPS {
            self.steps += 1;
            let one = self.compiled.object.code[at];
            let Instruction { opcode: code, destination, source, offset, immediate } = one;
            let (to, from) = (usize::from(destination), usize::from(source));
            at += 1;
            let size = [4, 2, 1, 8][usize::from(code >> 3 & 3)];
            let number = i64::from(immediate) as u64;
            match code & 7 {
                0 => {
                    let upper = self.compiled.object.code[at].immediate;
                    let whole = u64::from(immediate as u32) | u64::from(upper as u32) << 32;
                    registers[to] = if source == wide::MAP { MAPS + whole } else { whole };
                    at += 1;
                }
                1 => {
                    let place = registers[from].wrapping_add(i64::from(offset) as u64);
                    registers[to] = self.load(place, size);
                }
                kind @ (2 | 3) => {
                    let place = registers[to].wrapping_add(i64::from(offset) as u64);
                    let value = if kind == 2 { number } else { registers[from] };
                    self.memory(place, size).copy_from_slice(&value.to_le_bytes()[..size]);
                }
                kind @ (4 | 7) => {
                    let mut right = if code & 8 == 0 { number } else { registers[from] };
                    let mut left = registers[to];
                    if code & 0xf7 == 0xd4 {
                        assert_eq!(code, 0xdc);
                        registers[to] = crate::flat::swap(immediate as u8 / 8, left);
                        continue;
                    }
                    if kind == 4 {
                        (left, right) = (left & 0xffff_ffff, right & 0xffff_ffff);
                    }
                    use crate::flat::Binary as B;
                    let result = match code >> 4 {
                        0x0 => B::Add.of(left, right),
                        0x1 => B::Subtract.of(left, right),
                        0x2 => B::Multiply.of(left, right),
                        0x3 => B::Divide.of(left, right),
                        0x4 => left | right,
                        0x5 => left & right,
                        0x6 => B::ShiftLeft.of(left, right),
                        0x7 => B::ShiftRight.of(left, right),
                        0x9 => B::Modulo.of(left, right),
                        0xa => left ^ right,
                        0xb => right,
                        0xc => B::ShiftRightSigned.of(left, right),
                        _ => panic!("{one}"),
                    };
                    registers[to] = if kind == 4 { result & 0xffff_ffff } else { result };
                }
                _ => {
                    let (left, right) =
                        (registers[to], if code & 8 == 0 { number } else { registers[from] });
                    let jumps = match code {
                        opcode::EXIT => return registers[0],
                        opcode::CALL => {
                            assert_eq!(source, callee::HELPER);
                            registers[0] =
                                self.call(immediate, [registers[1], registers[2], registers[3]]);
                            registers[1..=5].fill(0xdead_beef);
                            continue;
                        }
                        opcode::JUMP => true,
                        _ => match code >> 4 {
                            1 => left == right,
                            2 => left > right,
                            3 => left >= right,
                            5 => left != right,
                            6 => left as i64 > right as i64,
                            7 => left as i64 >= right as i64,
                            0xa => left < right,
                            0xb => left <= right,
                            0xc => (left as i64) < right as i64,
                            0xd => left as i64 <= right as i64,
                            _ => panic!("{one}"),
                        },
                    };
                    if jumps {
                        at = (at as i64 + i64::from(offset)) as usize;
                    }
                }
            }
        }
        // An endless loop is aborted.
        self.metadata[metadata::OUTPUT_ACTION as usize] = 0;
        0
    }
}

impl Runs for Machine<'_> {
    fn elaborated(&self) -> &Elaborated {
        &self.elaborated
    }

    fn run(&mut self, port: u32, packet: &[u8]) -> Result<Outcome, String> {
        self.packet = packet.to_vec();
        self.metadata = vec![0; metadata::SIZE];
        self.metadata[..4].copy_from_slice(&port.to_le_bytes());
        self.metadata[4..8].copy_from_slice(&(packet.len() as u32).to_le_bytes());
        self.metadata[8] = 2;
        self.stack = vec![0xaa; STACK_BYTES];
        let passes = self.execute();
        let word = |at: i16| {
            let at = at as usize;
            u32::from_le_bytes(self.metadata[at..at + 4].try_into().unwrap())
        };
        let verdict = match (word(metadata::OUTPUT_ACTION), passes) {
            (0, 0) => Verdict::Abort,
            (1, 0) => Verdict::Drop,
            (2, 1) => Verdict::Pass,
            (3, 1) => Verdict::Redirect(word(metadata::OUTPUT_PORT)),
            other => panic!("{other:?}"),
        };
        let is_cloned = self.metadata[metadata::CLONE as usize] != 0;
        let clone = (is_cloned && verdict != Verdict::Abort).then(|| word(metadata::CLONE_PORT));
        let packet = if verdict == Verdict::Abort || (verdict == Verdict::Drop && clone.is_none()) {
            packet.to_vec()
        } else {
            self.packet.clone()
        };
        Ok(Outcome { verdict, clone, packet })
    }

    fn add(&mut self, at: usize, entry: Written) -> Result<(), String> {
        let entry = self.compiled.maps.tables[at].entry(&entry).ok_or("no key")?;
        self.put(&entry, true);
        Ok(())
    }

    fn set_default(
        &mut self,
        at: usize,
        action: usize,
        arguments: Vec<Value>,
    ) -> Result<(), String> {
        let table = &self.compiled.maps.tables[at];
        let mut entry = table.default_entry(action, &arguments).ok_or("constant")?;
        // The counter and the meter of the entry are preserved.
        let kept = table.action_size() as usize;
        let before = &self.held[entry.map as usize].values[0];
        entry.value[kept..].copy_from_slice(&before[kept..]);
        self.put(&entry, true);
        Ok(())
    }

    fn publish(&mut self, key: &str, said: Option<Said>) -> Result<(), String> {
        match said {
            Some(said) => self.vm.insert(key.to_owned(), said.at(self.now)),
            None => self.vm.remove(key),
        };
        Ok(())
    }

    fn count(&mut self, at: usize, cell: Cell<'_>) -> Result<Count, String> {
        let (value, offset) = self.cell((at, Object::DirectCounter), cell)?;
        Ok(Count::from_bytes(&value[offset..]).unwrap())
    }

    fn set_meter(&mut self, at: usize, cell: Cell<'_>, rates: Rates) -> Result<(), String> {
        let (value, offset) = self.cell((at, Object::DirectMeter), cell)?;
        let bytes = MeterCell::set(Some(rates)).to_bytes();
        value[offset..offset + bytes.len()].copy_from_slice(&bytes);
        Ok(())
    }

    fn wait(&mut self, time: u64) {
        self.now += time;
    }

    fn digests(&mut self) -> Vec<(usize, Vec<u8>)> {
        let told = std::mem::take(&mut self.told);
        let maps = &self.compiled.maps;
        told.iter().map(|(id, bytes)| maps.digest_on_the_wire(*id, bytes).unwrap()).collect()
    }
}
