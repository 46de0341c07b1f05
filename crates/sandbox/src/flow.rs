//! How a program's code hangs together: its functions, and their basic blocks.

use std::collections::{BTreeMap, BTreeSet};

use p4::object::{Instruction, Object, callee, opcode};

use crate::error::LoadError;

/// Code, and where its basic blocks are.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) code: Box<[Instruction]>,
    /// For the first instruction of each basic block, how many instructions it has; otherwise 0. It is
    /// the same for all functions, so that the meter counts alike wherever code is reached from.
    pub(crate) lengths: Box<[u32]>,
    /// The functions that can be called from the first one, which is `entry`.
    pub(crate) functions: Vec<Function>,
    pub(crate) entry: usize,
    /// The most functions that can be on the stack at once; the most there may be if they call
    /// themselves.
    pub(crate) frames: u64,
}

/// A function: what can be reached from its first instruction without a call.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) start: usize,
    /// Its basic blocks: their first instructions.
    pub(crate) blocks: Vec<usize>,
    /// The functions that it calls.
    pub(crate) calls: BTreeSet<usize>,
}

impl Flow {
    /// Looks through the code of an object that has been verified. Functions may have `most` instructions
    /// in all.
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

    /// The instructions of the block that begins here.
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

    /// The last instruction of the block that begins here.
    pub(crate) fn last(&self, first: usize) -> usize {
        self.instructions(first).last().map_or(first, |(at, _)| at)
    }

    /// Where it goes on behind the last instruction of a block: where a jump leads, and behind it.
    pub(crate) fn successors(&self, last: usize) -> [Option<usize>; 2] {
        let one = self.code[last];
        let next = last + width(one);
        match one.opcode {
            opcode::EXIT => [None, None],
            opcode::JUMP | opcode::JUMP_LONG => [one.jump().map(|way| target(last, way)), None],
            _ => [one.jump().map(|way| target(last, way)), Some(next)],
        }
    }

    /// How deep calls can be.
    fn depth(&self) -> u64 {
        let calls: BTreeMap<usize, &BTreeSet<usize>> =
            self.functions.iter().map(|function| (function.start, &function.calls)).collect();
        // As many rounds as there may be frames: what is deeper, or without end, is at the most.
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

/// Places that an instruction takes.
pub(crate) fn width(one: Instruction) -> usize {
    1 + usize::from(one.is_wide())
}

/// Where a jump or a call leads: verified, so there is an instruction.
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
