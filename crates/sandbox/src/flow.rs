//! Control flow of a program: its functions and their basic blocks.

use std::collections::{BTreeMap, BTreeSet};

use p4_object::{Instruction, Object, callee, opcode};

use crate::error::LoadError;

/// Code with its basic blocks.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) code: Box<[Instruction]>,
    /// Number of instructions of the basic block that starts at each index; 0 if no block starts
    /// there. The blocks are the same for all functions, so the meter does not depend on the path
    /// to a block.
    pub(crate) lengths: Box<[u32]>,
    /// Functions reachable from the first one, `entry`.
    pub(crate) functions: Vec<Function>,
    pub(crate) entry: usize,
    /// Maximum number of frames on the stack; the limit if the call graph is recursive.
    pub(crate) frames: u64,
}

/// A function: the code reachable from its first instruction without a call.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) start: usize,
    /// Basic blocks, by their first instructions.
    pub(crate) blocks: Vec<usize>,
    /// Callees.
    pub(crate) calls: BTreeSet<usize>,
}

impl Flow {
    /// Analyses the code of a verified object. `most` is the maximum number of instructions of all
    /// functions together.
    pub(crate) fn new(object: &Object, most: usize) -> Result<Self, LoadError> {
        let code = &object.code;
        let mut flow = Self {
            code: code.clone().into(),
            lengths: lengths(object),
            functions: Vec::new(),
            entry: object.entry,
            frames: 0,
        };
        let mut known = BTreeSet::from([object.entry]);
        let mut open = vec![object.entry];
        let mut compiled = 0;
        while let Some(start) = open.pop() {
            let function = flow.function(start);
            compiled += function.blocks.iter().map(|at| flow.lengths[*at] as usize).sum::<usize>();
            if compiled > most {
                return Err(LoadError::TooLong { most });
            }
            open.extend(function.calls.iter().filter(|to| known.insert(**to)));
            flow.functions.push(function);
        }
        flow.functions.sort_by_key(|function| function.start);
        flow.frames = flow.depth();
        Ok(flow)
    }

    fn function(&self, start: usize) -> Function {
        let mut blocks = BTreeSet::from([start]);
        let mut open = vec![start];
        let mut calls = BTreeSet::new();
        while let Some(first) = open.pop() {
            let last = self.last(first);
            for (at, one) in self.instructions(first) {
                if one.opcode == opcode::CALL && one.source == callee::LOCAL {
                    calls.insert(target(at, i64::from(one.immediate)));
                }
            }
            open.extend(
                self.successors(last).into_iter().flatten().filter(|to| blocks.insert(*to)),
            );
        }
        Function { start, blocks: blocks.into_iter().collect(), calls }
    }

    /// Instructions of the block that starts at `first`.
    pub(crate) fn instructions(
        &self,
        first: usize,
    ) -> impl Iterator<Item = (usize, Instruction)> + '_ {
        let mut at = first;
        (0..self.lengths[first]).map(move |_| {
            let here = at;
            at += width(self.code[here]);
            (here, self.code[here])
        })
    }

    /// Last instruction of the block that starts at `first`.
    pub(crate) fn last(&self, first: usize) -> usize {
        self.instructions(first).last().map_or(first, |(at, _)| at)
    }

    /// Successors of a block, by its last instruction: the jump target and the fall-through.
    pub(crate) fn successors(&self, last: usize) -> [Option<usize>; 2] {
        let one = self.code[last];
        let next = last + width(one);
        match one.opcode {
            opcode::EXIT => [None, None],
            opcode::JUMP | opcode::JUMP_LONG => [one.jump().map(|way| target(last, way)), None],
            _ => [one.jump().map(|way| target(last, way)), Some(next)],
        }
    }

    /// Maximum call depth.
    fn depth(&self) -> u64 {
        let calls: BTreeMap<usize, &BTreeSet<usize>> =
            self.functions.iter().map(|function| (function.start, &function.calls)).collect();
        // Iterate up to the frame limit, so that deeper and recursive calls saturate at the limit.
        let mut depths: BTreeMap<usize, u64> = calls.keys().map(|start| (*start, 1)).collect();
        for _ in 1..crate::address::MAX_FRAMES {
            for (start, callees) in &calls {
                let below = callees.iter().filter_map(|to| depths.get(to)).max();
                let depth = (1 + below.copied().unwrap_or(0)).min(crate::address::MAX_FRAMES);
                depths.insert(*start, depth);
            }
        }
        depths.get(&self.entry).copied().unwrap_or(1)
    }
}

/// Number of slots that an instruction occupies.
pub(crate) fn width(one: Instruction) -> usize {
    1 + usize::from(one.is_wide())
}

/// Target of a jump or a call. The verifier has checked that it is an instruction.
pub(crate) fn target(at: usize, way: i64) -> usize {
    (at as i64 + 1 + way) as usize
}

fn lengths(object: &Object) -> Box<[u32]> {
    let code = &object.code;
    let mut leads = vec![false; code.len()];
    leads[object.entry] = true;
    let mut at = 0;
    while at < code.len() {
        let one = code[at];
        let next = at + width(one);
        if one.opcode == opcode::CALL && one.source == callee::LOCAL {
            leads[target(at, i64::from(one.immediate))] = true;
        }
        if let Some(way) = one.jump() {
            leads[target(at, way)] = true;
        }
        if (one.jump().is_some() || one.opcode == opcode::EXIT) && next < code.len() {
            leads[next] = true;
        }
        at = next;
    }
    let mut lengths = vec![0; code.len()];
    let mut first = None;
    let mut at = 0;
    while at < code.len() {
        if leads[at] {
            first = Some(at);
        }
        if let Some(first) = first {
            lengths[first] += 1;
        }
        at += width(code[at]);
    }
    lengths.into()
}
