//! Liveness analysis. Instructions are numbered in steps of two, in block order. Operands are live
//! up to the number of the instruction, its result from the next number on.

use std::collections::{HashMap, HashSet};

use crate::flat::{BlockId, Graph, Op, Terminator, ValueId};

/// Live range of a value.
#[derive(Debug, Clone)]
pub(super) struct Life {
    /// Value.
    pub value: ValueId,
    /// Intervals from start to end, sorted; adjacent ones are merged.
    pub ranges: Vec<(u32, u32)>,
    /// Number of uses, weighted by the estimated frequency of their blocks.
    pub weight: u32,
}

/// Live ranges of a graph, and the positions of calls.
pub(super) struct Liveness {
    pub lives: Vec<Life>,
    pub calls: Vec<u32>,
    /// True if more than [`MAX_LIVE`] values are live at the beginning of a block. The analysis has
    /// ended, since they do not fit into registers and stack.
    pub is_too_wide: bool,
}

/// Upper limit on the values that are live at the beginning of a block. Registers and stack have room
/// for less than a third.
const MAX_LIVE: u32 = 256;

/// Returns true if a value is rematerialised at each use.
pub(super) fn is_rematerialized(graph: &Graph, value: ValueId) -> bool {
    matches!(graph.op(value), Op::Constant(_) | Op::Undefined | Op::Frame | Op::Map(_))
}

/// Computes the live ranges of all values.
pub(super) fn liveness(graph: &Graph, order: &[BlockId]) -> Liveness {
    let mut bounds = HashMap::with_capacity(order.len());
    let mut definitions: HashMap<ValueId, (BlockId, u32)> = HashMap::new();
    let mut calls = Vec::new();
    let mut at = 2;
    for id in order {
        let block = &graph.blocks[id.index()];
        let start = at;
        definitions.extend(block.phis.iter().map(|phi| (*phi, (*id, start))));
        at += 2;
        for value in &block.body {
            if matches!(graph.op(*value), Op::Call(..)) {
                calls.push(at);
            }
            if !matches!(graph.op(*value), Op::Store { .. }) {
                definitions.insert(*value, (*id, at + 1));
            }
            at += 2;
        }
        bounds.insert(*id, (start, at));
        at += 2;
    }
    let mut walk = Walk {
        graph,
        bounds,
        often: frequencies(graph, order),
        through: HashSet::new(),
        live: HashMap::new(),
        is_too_wide: false,
        lives: HashMap::new(),
        definitions,
    };
    for (value, (_, at)) in &walk.definitions {
        walk.lives.insert(*value, Life { value: *value, ranges: vec![(*at, at + 1)], weight: 0 });
    }
    for id in order {
        let block = &graph.blocks[id.index()];
        let (start, end) = walk.bounds[id];
        for (at, value) in (start + 2..).step_by(2).zip(&block.body) {
            for operand in graph.op(*value).operands() {
                walk.used(operand, *id, at);
            }
        }
        let mut last = block.end;
        last.visit_operands_mut(|one| walk.used(*one, *id, end));
        for phi in &block.phis {
            for (operand, from) in graph.op(*phi).operands().into_iter().zip(&block.predecessors) {
                if let Some((_, end)) = walk.bounds.get(from).copied() {
                    walk.used(operand, *from, end);
                }
            }
        }
    }
    let mut lives: Vec<_> = walk.lives.into_values().collect();
    for life in &mut lives {
        life.tidy();
    }
    lives.sort_unstable_by_key(|life| life.value);
    Liveness { lives, calls, is_too_wide: walk.is_too_wide }
}

impl Life {
    /// Sorts the intervals and merges adjacent ones.
    fn tidy(&mut self) {
        self.ranges.sort_unstable();
        let mut tidy: Vec<(u32, u32)> = Vec::with_capacity(self.ranges.len());
        for (from, to) in self.ranges.drain(..) {
            match tidy.last_mut() {
                // Nothing happens between two blocks, so that a gap of one is closed too.
                Some((_, end)) if from <= *end + 1 => *end = to.max(*end),
                _ => tidy.push((from, to)),
            }
        }
        self.ranges = tidy;
    }

    /// Returns the length of the live range.
    pub(super) fn length(&self) -> u32 {
        self.ranges.iter().map(|(from, to)| to - from).sum()
    }

    /// Returns true if the value is live across a call.
    pub(super) fn crosses(&self, calls: &[u32]) -> bool {
        self.ranges.iter().any(|(from, to)| {
            let next = calls.partition_point(|call| call <= from);
            calls.get(next).is_some_and(|call| call < to)
        })
    }
}

/// Backward walk from the uses of values to their definitions.
struct Walk<'g> {
    graph: &'g Graph,
    /// First and last position of each block.
    bounds: HashMap<BlockId, (u32, u32)>,
    often: HashMap<BlockId, u32>,
    /// Blocks at the beginning of which a value is live.
    through: HashSet<(BlockId, ValueId)>,
    /// Number of these values.
    live: HashMap<BlockId, u32>,
    is_too_wide: bool,
    lives: HashMap<ValueId, Life>,
    definitions: HashMap<ValueId, (BlockId, u32)>,
}

impl Walk<'_> {
    /// Records a use of a value at a position in a block.
    fn used(&mut self, value: ValueId, block: BlockId, at: u32) {
        let Some(life) = self.lives.get_mut(&value) else { return };
        let often = self.often.get(&block).copied().unwrap_or(1);
        life.weight = life.weight.saturating_add(often);
        let (home, start) = self.definitions[&value];
        if block == home {
            life.ranges.push((start, at.max(start + 1)));
            return;
        }
        life.ranges.push((self.bounds[&block].0, at));
        let mut open = vec![block];
        while let Some(block) = open.pop() {
            if self.is_too_wide || !self.through.insert((block, value)) {
                continue;
            }
            let live = self.live.entry(block).or_default();
            *live += 1;
            self.is_too_wide = *live > MAX_LIVE;
            for from in &self.graph.blocks[block.index()].predecessors {
                let Some((begin, end)) = self.bounds.get(from).copied() else { continue };
                if *from == home {
                    life.ranges.push((start, end + 1));
                } else {
                    life.ranges.push((begin, end + 1));
                    open.push(*from);
                }
            }
        }
    }
}

/// Computes the loop depth of each block from the back edges.
fn loop_depth(graph: &Graph, order: &[BlockId]) -> HashMap<BlockId, u32> {
    let place: HashMap<_, _> = order.iter().enumerate().map(|(at, block)| (*block, at)).collect();
    let mut depth: HashMap<BlockId, u32> = HashMap::new();
    for (at, block) in order.iter().enumerate() {
        for to in graph.blocks[block.index()].end.targets() {
            if let Some(head) = place.get(&to).filter(|head| **head <= at) {
                for inside in &order[*head..=at] {
                    *depth.entry(*inside).or_default() += 1;
                }
            }
        }
    }
    depth
}

/// Frequency of the entry block.
const WHOLE: u32 = 1 << 12;

/// Estimates the frequency of each block: both sides of a branch are equally likely, blocks that
/// abort are rare, and a loop runs eight times.
fn frequencies(graph: &Graph, order: &[BlockId]) -> HashMap<BlockId, u32> {
    let gives_up = |to: BlockId| {
        let block = &graph.blocks[to.index()];
        let stops =
            matches!(block.end, Terminator::Return(value) if graph.constant(value) == Some(0));
        stops && !block.body.iter().any(|id| matches!(graph.op(*id), Op::Call(..)))
    };
    let depth = loop_depth(graph, order);
    let mut often: HashMap<BlockId, u32> = HashMap::from([(order[0], WHOLE)]);
    for block in order {
        let here = often.get(block).copied().unwrap_or(0);
        let targets: Vec<_> = graph.blocks[block.index()].end.targets().collect();
        let wrong = targets.iter().filter(|to| gives_up(**to)).count();
        for to in &targets {
            let part = match (targets.len(), wrong) {
                (2, 1) if gives_up(*to) => here / 16,
                (2, 1) => here,
                (2, _) => here / 2,
                _ => here,
            };
            let known = often.entry(*to).or_default();
            *known = known.saturating_add(part).min(WHOLE);
        }
    }
    for (block, often) in &mut often {
        let around = 8_u32.saturating_pow(depth.get(block).copied().unwrap_or(0).min(4));
        *often = (*often).max(1).saturating_mul(around);
    }
    often
}
