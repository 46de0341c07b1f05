//! L-values: slots or, with a variable index, one of several slots (P4_16 specification, section
//! 6.8).

use p4::ir::{Expression, ExpressionKind, Type};

use super::numbers::Number;
use super::{Lower, Lowered, NotCompiled};
use crate::flat::build::{Builder, Slot};
use crate::flat::shape::Slots;
use crate::flat::shape::VALID;
use crate::flat::{Binary, Compare, Op, ValueId};

/// Upper limit on the elements that an index selects from, over nested stacks.
const MAX_CHOICES: usize = 256;

/// An l-value.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Type of the value.
    pub(crate) of: Type,
    /// Possible first slots, each with the condition under which it applies.
    choices: Vec<(Option<ValueId>, Slot)>,
    /// The index, if it alone selects among the choices, which are then the elements in order.
    index: Option<ValueId>,
    /// For a header of a union: the types of the other members, and their offsets from its own
    /// slot.
    others: Vec<(i64, Type)>,
    /// A bit slice: the lowest bit, the width, and the type of the whole number.
    slice: Option<(u32, u32, Type)>,
}

impl Place {
    /// Returns the place of a part of the value.
    fn part(mut self, of: Type, offset: Slot) -> Self {
        for (_, slot) in &mut self.choices {
            *slot += offset;
        }
        self.others.clear();
        Self { of, ..self }
    }
}

impl Lower<'_> {
    /// Lowers an l-value.
    pub(super) fn place(&mut self, of: &Expression) -> Lowered<Place> {
        self.deeper(of.span, |lower| lower.lower_place(of))
    }

    fn lower_place(&mut self, of: &Expression) -> Lowered<Place> {
        use ExpressionKind as K;
        Ok(match &of.kind {
            K::Variable(id) => Place {
                of: of.of.clone(),
                choices: vec![(None, self.variable(*id))],
                index: None,
                others: Vec::new(),
                slice: None,
            },
            K::Field(inner, at) => {
                let parts = self.program.placed_parts(&inner.of);
                let (kind, range) = parts[*at].clone();
                let mut place = self.place(inner)?.part(kind, range.start);
                if self.program.is_union(&inner.of) {
                    let others = parts.iter().enumerate().filter(|(other, _)| other != at);
                    place.others = others
                        .map(|(_, (of, other))| {
                            (i64::from(other.start) - i64::from(range.start), of.clone())
                        })
                        .collect();
                }
                place
            }
            K::Slice(inner, high, low) => {
                let place = self.place(inner)?;
                let slice = match place.slice {
                    // A slice of a slice.
                    Some((below, _, whole)) => (below + low, high - low + 1, whole),
                    None => (*low, high - low + 1, inner.of.clone()),
                };
                Place { of: of.of.clone(), slice: Some(slice), ..place }
            }
            K::Element(inner, index) => {
                let place = self.place(inner)?;
                let index_width = self.width(&index.of);
                let index = self.value(index)?;
                self.element(of, place, &index, index_width)?
            }
            K::Next(inner) | K::Last(inner) => {
                let place = self.place(inner)?;
                let Type::Stack(_, size) = inner.of else {
                    return self.refuse(of.span, "this is not a stack");
                };
                let next = self.next(&place);
                let (index, fits) = if matches!(of.kind, K::Next(_)) {
                    let size = self.build.constant(u64::from(size));
                    (next, self.build.compare(Compare::Less, next, size))
                } else {
                    let zero = self.build.constant(0);
                    let last = self.build.by(Binary::Subtract, next, 1);
                    (last, self.build.compare(Compare::NotEqual, next, zero))
                };
                self.require(fits);
                self.element(of, place, &vec![index], 64)?
            }
            _ => return self.refuse(of.span, "this is not an l-value"),
        })
    }

    /// Returns the next index of a stack.
    pub(super) fn next(&mut self, stack: &Place) -> ValueId {
        let next = stack.clone().part(Type::bit(32), 0);
        self.read(&next)[0]
    }

    /// Returns the place of an element of a stack.
    fn element(
        &mut self,
        of: &Expression,
        stack: Place,
        index: &Number,
        index_width: u32,
    ) -> Lowered<Place> {
        let Type::Stack(_, size) = stack.of else {
            return self.refuse(of.span, "this is not a stack");
        };
        let alone = matches!(stack.choices[..], [(None, _)]) && index_width <= 64;
        let decides = index.first().copied().filter(|_| alone);
        let mut choices = Vec::new();
        let width = index_width.max(64);
        let index = self.build.resized(index, index_width, false, width);
        for at in 0..size as usize {
            let wanted = self.build.number(&at.into(), width);
            let is = self.build.equal(&index, &wanted);
            let (_, range) = self.program.placed_part(&stack.of, at);
            match self.build.graph.constant(is) {
                Some(0) => continue,
                known => {
                    for (around, slot) in &stack.choices {
                        let holds = match (*around, known) {
                            (around, Some(_)) => around,
                            (None, None) => Some(is),
                            (Some(around), None) => {
                                Some(self.build.binary(Binary::And, around, is))
                            }
                        };
                        choices.push((holds, slot + range.start));
                    }
                }
            }
        }
        if choices.len() > MAX_CHOICES {
            return Err(NotCompiled {
                span: of.span,
                what: format!("this index chooses among more than {MAX_CHOICES} elements"),
                help: Some("a register holds many values".to_owned()),
            });
        }
        let index = decides.filter(|_| choices.len() == size as usize);
        Ok(Place { of: of.of.clone(), choices, index, others: Vec::new(), slice: None })
    }

    /// Reads the value; 0 if an index is out of bounds.
    pub(super) fn read(&mut self, place: &Place) -> Vec<ValueId> {
        let of = match &place.slice {
            Some((_, _, whole)) => whole.clone(),
            None => place.of.clone(),
        };
        let count = self.program.slots(&of);
        let mut values = match place.choices.first() {
            Some((None, slot)) => self.read_all(*slot, count),
            _ => self.initial(&of),
        };
        let all = place.choices.iter().filter_map(|(holds, slot)| Some(((*holds)?, *slot)));
        let all: Vec<_> = all.map(|(holds, slot)| (holds, self.read_all(slot, count))).collect();
        for (at, value) in values.iter_mut().enumerate() {
            let here: Vec<_> = all.iter().map(|(_, here)| here[at]).collect();
            if let Some(index) = place.index
                && let Some(found) = self.build.indexed(index, &here, *value)
            {
                *value = found;
                continue;
            }
            for ((holds, _), here) in all.iter().zip(here) {
                *value = self.build.select(*holds, here, *value);
            }
        }
        match &place.slice {
            Some((low, bits, _)) => self.build.slice(&values, *low, *bits),
            None => values,
        }
    }

    /// Reads the validity of a header.
    pub(super) fn read_valid(&mut self, header: &Place) -> ValueId {
        let valid = header.clone().part(Type::Bool, VALID);
        self.read(&valid)[0]
    }

    /// Writes a value.
    pub(super) fn write(&mut self, place: &Place, value: &[ValueId]) {
        for (holds, slot) in &place.choices {
            let new = match &place.slice {
                Some((low, bits, whole)) => {
                    let width = self.width(whole);
                    let old = self.read_all(*slot, self.program.slots(whole));
                    self.build.with_slice(&old, width, (*low, *bits), &value.to_vec())
                }
                None => value.to_vec(),
            };
            self.put(*holds, *slot, &new);
            // At most one header of a union is valid. Invalidating one invalidates the whole union
            // (section 8.20).
            for (other, of) in &place.others {
                let blank = self.initial(of);
                self.put(*holds, (i64::from(*slot) + other) as Slot, &blank);
            }
        }
    }

    /// Sets a header valid, or sets it invalid and clears its fields.
    pub(super) fn write_valid(&mut self, header: &Place, valid: bool) {
        if !valid {
            let blank = self.initial(&header.of);
            return self.write(header, &blank);
        }
        let valid = self.build.constant(1);
        let place =
            Place { others: header.others.clone(), ..header.clone().part(Type::Bool, VALID) };
        debug_assert_eq!(VALID, 0);
        self.write(&place, &[valid]);
    }

    /// Writes slots if the condition holds.
    fn put(&mut self, holds: Option<ValueId>, slot: Slot, values: &[ValueId]) {
        let Some(holds) = holds else { return self.write_all(slot, values) };
        let old = self.read_all(slot, values.len() as u32);
        let new = self.build.choose(holds, values, &old);
        self.write_all(slot, &new);
    }

    /// Increments the next index of a stack.
    pub(super) fn advance_next(&mut self, stack: &Place) {
        let place = stack.clone().part(Type::bit(32), 0);
        let next = self.read(&place)[0];
        let next = self.build.by(Binary::Add, next, 1);
        self.write(&place, &[next]);
    }

    /// Continues if the condition holds; otherwise the parser rejects the packet.
    pub(super) fn require(&mut self, holds: ValueId) {
        let (next, reject) = (self.build.new_block(), self.reject);
        self.build.branch(holds, next, reject);
        self.build.continue_in(next);
    }
}

impl Builder {
    /// Reads an array element with a single load if the elements are packet fields at a constant
    /// distance; yields `beyond` if the index is out of bounds. Returns None if they are not.
    fn indexed(&mut self, index: ValueId, all: &[ValueId], beyond: ValueId) -> Option<ValueId> {
        let behind = all.iter().position(|one| *one == beyond).unwrap_or(all.len());
        let (there, rest) = all.split_at(behind);
        let Op::Field { at: first, bit, width, bytes } = *self.graph.op(*there.first()?) else {
            return None;
        };
        let start = self.graph.constant(self.resolved(first))?;
        let mut starts = Vec::with_capacity(there.len());
        for one in there {
            match *self.graph.op(*one) {
                Op::Field { at, bit: other, width: bits, .. } if (other, bits) == (bit, width) => {
                    starts.push(self.graph.constant(self.resolved(at))?);
                }
                _ => return None,
            }
        }
        let step = starts.get(1)?.checked_sub(start)?;
        let is_even = starts.windows(2).all(|two| two[1].checked_sub(two[0]) == Some(step));
        if !is_even || rest.iter().any(|one| *one != beyond) {
            return None;
        }
        let count = self.constant(there.len() as u64);
        let fits = self.compare(Compare::Less, index, count);
        // Clamp the index, so that the load stays within the packet.
        let zero = self.constant(0);
        let index = self.select(fits, index, zero);
        let behind = self.by(Binary::Multiply, index, step);
        let at = self.binary(Binary::Add, behind, first);
        let found = self.op(Op::Field { at, bit, width, bytes });
        Some(self.select(fits, found, beyond))
    }
}
