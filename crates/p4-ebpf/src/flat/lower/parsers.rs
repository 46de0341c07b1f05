//! Parsers (P4_16 specification, section 13).
//!
//! A state is lowered once for each combination of stack indices with which it can be reached, so a
//! stack that is extracted in a loop has its elements at constant offsets. If paths stay
//! separate (`Paths`), every header is at a constant offset.

use std::collections::HashMap;

use p4::ir::{Block, Expression, Set, State, StateId, Target, Transition, Type};

use super::{Lower, Lowered, NotCompiled, Paths};
use crate::flat::build::Slot;
use crate::flat::shape::Slots;
use crate::flat::shape::{ORIGIN, VALID};
use crate::flat::{Binary, BlockId, ValueId};

/// Upper limit on the states of a parser after its loops over stacks are unrolled.
const MAX_STATES: usize = 2048;

/// Upper limit on the cases of `select` in these states. Each one takes two instructions or more.
const MAX_CASES: usize = 8192;

/// Upper limit on the accepting blocks of a parser for which the code after it is duplicated.
const MAX_ENDS: usize = 32;

/// Values of the slots that distinguish paths, where they are constants.
type Known = Vec<Option<u64>>;
/// A state with the slot values known at its entry.
type Path = (StateId, Known);

/// State of the lowering of a parser.
struct Open {
    blocks: HashMap<Path, BlockId>,
    open: Vec<Path>,
    /// Slots that distinguish paths: the next index of each stack, and optionally the validity and
    /// offset of each header.
    slots: Vec<Slot>,
    /// Accepting blocks, with the slot values known there.
    ends: Vec<(Known, BlockId)>,
    /// Number of cases so far.
    cases: usize,
    /// True if paths with different slot values stay separate up to the end.
    split: bool,
}

impl Lower<'_> {
    /// Lowers a parser, beginning with its first state. Returns the accepting blocks.
    pub(super) fn parse(&mut self, states: &[State], block: &Block) -> Lowered<Vec<BlockId>> {
        // Only for the top-level parser: the code after it is duplicated for each path.
        let split = self.paths != Paths::Joined && self.calls.len() == 1;
        let mut slots = Vec::new();
        for id in &block.parameters {
            self.path_slots(&self.type_of(*id), self.variable(*id), split, &mut slots);
        }
        let mut paths = Open {
            blocks: HashMap::new(),
            open: Vec::new(),
            slots,
            ends: Vec::new(),
            cases: 0,
            split,
        };
        self.go_to(Target::State(StateId(0)), &mut paths)?;
        while let Some(path) = paths.open.pop() {
            let state = &states[path.0.index()];
            self.goes_on(state.declared.span)?;
            // Not sealed: other states may jump here later.
            self.build.block = paths.blocks[&path];
            for (slot, known) in paths.slots.clone().iter().zip(&path.1) {
                if let Some(known) = known {
                    let known = self.build.constant(*known);
                    self.build.write(*slot, known);
                }
            }
            self.all(&state.body)?;
            match &state.transition {
                Transition::To(target) => self.go_to(*target, &mut paths)?,
                Transition::Select(values, cases) => self.select(values, cases, &mut paths)?,
            }
        }
        // In order of creation, so that compilation is deterministic.
        let mut blocks: Vec<_> = paths.blocks.drain().map(|(_, block)| block).collect();
        blocks.sort_unstable();
        for block in blocks {
            self.build.seal(block);
        }
        if !split || self.paths == Paths::Split && paths.ends.len() <= MAX_ENDS {
            return Ok(paths.ends.into_iter().map(|(_, block)| block).collect());
        }
        let before = paths.ends.len();
        let ends = self.join_ends(block, paths);
        // If ignoring stacks merges nothing, the result is the one that was rejected before.
        if ends.len() > MAX_ENDS || ends.len() == before && self.paths == Paths::BySet {
            return self.refuse(block.declared.span, "packets have very many sets of headers");
        }
        Ok(ends)
    }

    /// Joins accepting blocks with the same set of valid headers, ignoring headers in stacks.
    fn join_ends(&mut self, block: &Block, paths: Open) -> Vec<BlockId> {
        let mut valid = Vec::new();
        for id in &block.parameters {
            self.single_headers(&self.type_of(*id), self.variable(*id), &mut valid);
        }
        let place = |slot: &Slot| paths.slots.iter().position(|one| one == slot);
        let valid: Vec<_> = valid.iter().filter_map(place).collect();
        let mut met: Vec<(Known, BlockId)> = Vec::new();
        for (known, end) in paths.ends {
            let known: Known = valid.iter().map(|at| known[*at]).collect();
            let at = met.iter().position(|(one, _)| *one == known).unwrap_or_else(|| {
                met.push((known, self.build.new_block()));
                met.len() - 1
            });
            self.build.continue_in(end);
            self.build.jump(met[at].1);
        }
        met.into_iter().map(|(_, block)| block).collect()
    }

    /// Collects the validity slots of a type, except those of headers in stacks.
    fn single_headers(&self, of: &Type, at: Slot, found: &mut Vec<Slot>) {
        match of {
            Type::Record(_) if self.program.is_header(of) => found.push(at + VALID),
            Type::Record(_) | Type::Tuple(_) => {
                for (of, range) in self.program.placed_parts(of) {
                    self.single_headers(&of, at + range.start, found);
                }
            }
            _ => {}
        }
    }

    /// Collects the slots of a type that distinguish paths: the next index of each stack and, with
    /// `headers`, the validity and offset of each header.
    pub(super) fn path_slots(&self, of: &Type, at: Slot, headers: bool, found: &mut Vec<Slot>) {
        match of {
            Type::Record(_) if headers && self.program.is_header(of) => {
                found.extend([at + VALID, at + ORIGIN]);
            }
            Type::Record(_) | Type::Tuple(_) | Type::Stack(..) => {
                if matches!(of, Type::Stack(..)) {
                    found.push(at);
                }
                for (of, range) in self.program.placed_parts(of) {
                    self.path_slots(&of, at + range.start, headers, found);
                }
            }
            _ => {}
        }
    }

    /// Jumps to a target.
    fn go_to(&mut self, target: Target, paths: &mut Open) -> Lowered {
        let to = match target {
            Target::Accept => {
                let known = if paths.split { self.known(&paths.slots) } else { Vec::new() };
                match paths.ends.iter().find(|(one, _)| *one == known) {
                    Some((_, end)) => *end,
                    None => {
                        let end = self.build.new_block();
                        paths.ends.push((known, end));
                        end
                    }
                }
            }
            Target::Reject => self.reject,
            Target::State(id) => {
                let known = self.known(&paths.slots);
                let path = (id, known);
                match paths.blocks.get(&path) {
                    Some(block) => *block,
                    None if paths.blocks.len() >= MAX_STATES => {
                        return Err(NotCompiled {
                            span: self.build.span,
                            what: format!(
                                "this parser has more than {MAX_STATES} states when its loops are written out"
                            ),
                            help: Some(
                                "smaller stacks, or fewer in one loop, make fewer".to_owned(),
                            ),
                        });
                    }
                    None => {
                        let block = self.build.new_block();
                        paths.blocks.insert(path.clone(), block);
                        paths.open.push(path);
                        block
                    }
                }
            }
        };
        self.build.jump(to);
        Ok(())
    }

    /// Returns the values of slots, where they are constants.
    fn known(&mut self, slots: &[Slot]) -> Vec<Option<u64>> {
        let known = |slot: &Slot| {
            let value = self.build.read(*slot);
            self.build.graph.constant(value)
        };
        slots.iter().map(known).collect()
    }

    fn select(
        &mut self,
        values: &[Expression],
        cases: &[(Vec<Set>, Target)],
        paths: &mut Open,
    ) -> Lowered {
        let mut known = Vec::with_capacity(values.len());
        for value in values {
            known.push((self.value(value)?, value.of.clone()));
        }
        paths.cases += cases.len();
        if paths.cases > MAX_CASES {
            return Err(NotCompiled {
                span: self.build.span,
                what: format!(
                    "this parser has more than {MAX_CASES} cases when its loops are written out"
                ),
                help: Some("smaller stacks, or fewer cases in a loop, make fewer".to_owned()),
            });
        }
        for (sets, target) in cases {
            // Test the sets in order; the first mismatch continues with the next case.
            let next = self.build.new_block();
            for (set, (value, of)) in sets.iter().zip(&known) {
                let is = self.is_in(value, of, set)?;
                let met = self.build.new_block();
                self.build.branch(is, met, next);
                self.build.continue_in(met);
            }
            self.go_to(*target, paths)?;
            self.build.continue_in(next);
        }
        let reject = self.reject;
        self.build.jump(reject);
        Ok(())
    }

    /// Returns 1 if the value is in the set, otherwise 0.
    fn is_in(&mut self, value: &[ValueId], of: &Type, set: &Set) -> Lowered<ValueId> {
        let shape = (self.width(of), self.is_signed(of));
        let value = value.to_vec();
        Ok(match set {
            Set::Any => self.build.constant(1),
            Set::Value(one) => {
                let one = self.value(one)?;
                self.same(&one, &value, of)
            }
            Set::Mask(one, mask) => {
                let (one, mask) = (self.value(one)?, self.value(mask)?);
                let (one, value) = (
                    self.build.bitwise(Binary::And, &one, &mask),
                    self.build.bitwise(Binary::And, &value, &mask),
                );
                self.build.equal(&one, &value)
            }
            Set::Range(from, to) => {
                let (from, to) = (self.value(from)?, self.value(to)?);
                let above = self.build.less(&from, &value, shape, true);
                let below = self.build.less(&value, &to, shape, true);
                self.build.binary(Binary::And, above, below)
            }
            Set::Of(id) => self.is_in_value_set(*id, &value, of)?,
        })
    }
}
