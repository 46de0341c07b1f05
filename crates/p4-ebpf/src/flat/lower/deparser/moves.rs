//! Headers that leave at another offset than they were extracted at: they are read before the
//! packet is modified. A few bytes are held in registers and on the stack; more bytes, and all
//! varbits, are buffered in a scratch map.

use p4_syntax::source::Span;

use super::parts::{Part, Varying};
use super::{Lower, Lowered};
use crate::flat::build::Slot;
use crate::flat::shape::chunks;
use crate::flat::{Binary, Compare, Op, ValueId};

/// Upper limit on the header bytes held in registers and on the stack; more are buffered in a map.
const MAX_HELD: u32 = 48;

/// Words read from a part that moves: offset within the part, size in bytes, and buffer.
pub(super) type Taken = Vec<(u32, u8, Held)>;

/// Buffer of a word until it is stored.
#[derive(Clone, Copy)]
pub(super) enum Held {
    /// A slot.
    Slot(Slot),
    /// The scratch map, at this byte offset.
    Map(u32),
}

/// Contents of the scratch map.
#[derive(Default)]
pub(super) struct Waits {
    pub(crate) varying: Vec<Waiting>,
    /// Total size in bytes.
    pub(crate) bytes: u32,
    /// Slot with the address of the map value.
    pub(crate) base: Option<Slot>,
}

/// A buffered varbit.
pub(super) struct Waiting {
    /// Index of the varbit.
    pub(crate) at: usize,
    /// True if the varbit moves.
    pub(crate) is: ValueId,
    /// Address in the packet.
    pub(crate) from: ValueId,
    pub(crate) count: ValueId,
    /// Offset in the scratch map.
    pub(crate) offset: u32,
}

impl Lower<'_> {
    /// Reads the parts that move, before the packet is modified, into slots or into the scratch
    /// map.
    pub(super) fn take_all(&mut self, parts: &[Part], waiting: &mut Waits) -> Lowered<Vec<Taken>> {
        let moves = |lower: &Self, part: &Part| lower.build.graph.constant(part.moved) != Some(0);
        let bytes: u32 = parts.iter().filter(|part| moves(self, part)).map(|part| part.bytes).sum();
        let mut all: Vec<Taken> = Vec::with_capacity(parts.len());
        let mut offset = waiting.bytes;
        for part in parts {
            let mut taken = Taken::new();
            if moves(self, part) {
                for (at, size) in chunks(0, part.bytes) {
                    let held = if bytes <= MAX_HELD {
                        Held::Slot(self.slots(1))
                    } else {
                        Held::Map(offset + at)
                    };
                    taken.push((at, size, held));
                }
                offset += part.bytes;
            }
            all.push(taken);
        }
        if bytes > MAX_HELD {
            waiting.bytes = offset;
        }
        self.look_up_scratch(parts, waiting)?;
        self.move_out(waiting);
        for (part, taken) in parts.iter().zip(&all) {
            self.take(part, taken, waiting.base);
        }
        Ok(all)
    }

    /// Looks up the scratch map, if anything is buffered in it.
    fn look_up_scratch(&mut self, parts: &[Part], waiting: &mut Waits) -> Lowered {
        if waiting.bytes == 0 {
            return Ok(());
        }
        let room = self.maps.scratch.map_or(0, |map| self.maps.maps[map as usize].value_size);
        let Some(map) = self.maps.scratch.filter(|_| waiting.bytes <= room) else {
            let what =
                format!("{} bytes of headers that may move: the limit is {room}", waiting.bytes);
            let span = parts.first().map_or(Span::default(), |part| part.span);
            return self.refuse(span, what);
        };
        let mut any = self.build.constant(0);
        for one in &waiting.varying {
            any = self.build.binary(Binary::Or, any, one.is);
        }
        for part in parts {
            any = self.build.binary(Binary::Or, any, part.moved);
        }
        let base = self.slots(1);
        let nothing = self.build.op(Op::Undefined);
        self.build.write(base, nothing);
        let (look, after) = (self.build.new_block(), self.build.new_block());
        self.build.branch(any, look, after);
        self.build.continue_in(look);
        let zero = self.build.constant(0);
        let key = self.frame(1);
        self.store(key, 0, 4, zero);
        let scratch = self.call_lookup(map, key);
        self.require(scratch);
        self.build.write(base, scratch);
        self.build.jump(after);
        self.build.continue_in(after);
        waiting.base = Some(base);
        Ok(())
    }

    /// Returns the address of an offset in the scratch map.
    pub(super) fn place_of_waiting(&mut self, base: Option<Slot>, offset: u32) -> ValueId {
        let base = match base {
            Some(base) => self.build.read(base),
            None => self.build.constant(0),
        };
        self.build.by(Binary::Add, base, u64::from(offset))
    }

    /// Reads a part that moves, word by word.
    fn take(&mut self, part: &Part, taken: &Taken, scratch: Option<Slot>) {
        if taken.is_empty() {
            return;
        }
        let nothing = self.build.op(Op::Undefined);
        for (_, _, held) in taken {
            if let Held::Slot(slot) = held {
                self.build.write(*slot, nothing);
            }
        }
        let (load, after) = (self.build.new_block(), self.build.new_block());
        self.build.branch(part.moved, load, after);
        self.build.continue_in(load);
        let packet = self.build.op(Op::Packet);
        let base = self.build.binary(Binary::Add, packet, part.from);
        for (at, size, held) in taken {
            let op = Op::Load { base, offset: *at as i16, size: *size, constant: true };
            let value = self.build.op(op);
            match held {
                Held::Slot(slot) => self.build.write(*slot, value),
                Held::Map(offset) => {
                    let to = self.place_of_waiting(scratch, 0);
                    self.store(to, *offset, *size, value);
                }
            }
        }
        self.build.jump(after);
        self.build.continue_in(after);
    }

    /// Finds the varbits that move, and assigns their offsets in the scratch map.
    pub(super) fn take_varying(&mut self, all: &[Varying], more: ValueId) -> Waits {
        let mut waits = Waits::default();
        for (at, one) in all.iter().enumerate() {
            let is = self.is_moved(one.valid, one.from, one.to, more);
            if self.build.graph.constant(is) != Some(0) {
                let packet = self.build.op(Op::Packet);
                let from = self.build.binary(Binary::Add, packet, one.from);
                waits.varying.push(Waiting { at, is, from, count: one.bytes, offset: waits.bytes });
                waits.bytes += one.most;
            }
        }
        waits
    }

    /// Copies varbits to the scratch map.
    fn move_out(&mut self, waits: &Waits) {
        for one in &waits.varying {
            let to = self.place_of_waiting(waits.base, one.offset);
            self.copy_bytes(one.is, one.from, to, one.count);
        }
    }

    /// Copies varbits from the scratch map to the packet.
    pub(super) fn put_varying(&mut self, all: &[Varying], waits: &Waits, begin: ValueId) {
        for one in &waits.varying {
            let to = self.build.binary(Binary::Add, begin, all[one.at].to);
            let from = self.place_of_waiting(waits.base, one.offset);
            self.copy_bytes(one.is, from, to, one.count);
        }
    }

    /// Copies bytes one by one if the condition holds.
    fn copy_bytes(&mut self, holds: ValueId, from: ValueId, to: ValueId, count: ValueId) {
        let (head, body, after) =
            (self.build.new_block(), self.build.new_block(), self.build.new_block());
        let at = self.slots(1);
        let zero = self.build.constant(0);
        self.build.write(at, zero);
        self.build.branch(holds, head, after);
        // Not sealed: the back edge is added later.
        self.build.block = head;
        let now = self.build.read(at);
        let more = self.build.compare(Compare::Less, now, count);
        self.build.branch(more, body, after);
        self.build.continue_in(body);
        let base = self.build.binary(Binary::Add, from, now);
        let value = self.build.op(Op::Load { base, offset: 0, size: 1, constant: false });
        let base = self.build.binary(Binary::Add, to, now);
        self.store(base, 0, 1, value);
        let next = self.build.by(Binary::Add, now, 1);
        self.build.write(at, next);
        self.build.jump(head);
        self.build.seal(head);
        self.build.continue_in(after);
    }
}
