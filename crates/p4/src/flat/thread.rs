//! Ways that are known to lead through a decision lead where it leads. A block that only decides by
//! where it was come from need not be gone through: so a packet that is dropped somewhere is not asked
//! again whether it is.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{BlockId, End, Graph, Op, ValueId};

/// The most values that meet in a block for it to be looked at.
const MAX_PHIS: usize = 256;
/// The most ways that meet in a block for it to be looked at: each is compared with each.
pub(super) const MAX_WAYS: usize = 256;
/// The most changes to a program: of a large one fewer, since each has all of it looked through.
const MAX_CHANGES: usize = 8192;
const MIN_CHANGES: usize = 512;
/// The most values that are looked through for them.
const MAX_LOOKS: usize = 32 << 20;

/// A block that goes on later, and values that are used at its end.
pub(super) type Outside = (BlockId, Vec<ValueId>);

fn values_of(outside: &mut [Outside]) -> impl Iterator<Item = &mut ValueId> {
    outside.iter_mut().flat_map(|(_, values)| values)
}

fn is_last(outside: &[Outside], block: BlockId) -> bool {
    outside.iter().any(|(last, _)| *last == block)
}

/// Who uses a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Use {
    /// Something in a block's body, or its end.
    In(BlockId),
    /// Where values meet in a block, on the way from another.
    Meeting(BlockId, BlockId),
    /// Something that has no place.
    Floating,
    /// Somebody outside of the graph.
    Outside,
}

/// Who uses which value: the users of one stand one behind the other.
struct Uses {
    /// Where those of each value begin; behind the last, where they end.
    starts: Vec<u32>,
    users: Vec<Use>,
}

impl Uses {
    fn of(graph: &Graph, outside: &[Outside]) -> Self {
        let mut all: Vec<(ValueId, Use)> = Vec::with_capacity(graph.nodes.len());
        for at in graph.order() {
            let block = &graph.blocks[at.index()];
            for phi in &block.phis {
                if let Op::Phi(values) = graph.op(*phi) {
                    let each = values.iter().zip(&block.predecessors);
                    all.extend(each.map(|(one, from)| (*one, Use::Meeting(at, *from))));
                }
            }
            for id in &block.body {
                graph.op(*id).for_operands(|one| all.push((one, Use::In(at))));
            }
            let mut end = block.end;
            end.each_operand(|one| all.push((*one, Use::In(at))));
        }
        for node in &graph.nodes {
            if let Op::Field { at, .. } = node.op {
                all.push((at, Use::Floating));
            }
        }
        let outside = outside.iter().flat_map(|(_, values)| values);
        all.extend(outside.map(|value| (*value, Use::Outside)));

        // Sorted by counting: a program has very many values.
        let mut starts = vec![0; graph.nodes.len() + 1];
        for (value, _) in &all {
            starts[value.index() + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut users = vec![Use::Outside; all.len()];
        for (value, by) in all {
            let place = &mut next[value.index()];
            users[*place as usize] = by;
            *place += 1;
        }
        Self { starts, users }
    }

    fn by(&self, value: ValueId) -> &[Use] {
        match self.starts.get(value.index()..value.index() + 2) {
            Some(&[from, to]) => &self.users[from as usize..to as usize],
            _ => &[],
        }
    }
}

impl Graph {
    /// Leads ways past decisions that are known, as long as there are any: all, or those that may lead
    /// to one of the blocks `to`. `outside` are blocks that go on later, and values that are used at
    /// their ends.
    pub(super) fn thread(&mut self, to: Option<&[BlockId]>, outside: &mut [Outside]) {
        let most = MAX_LOOKS / self.nodes.len().max(1);
        let mut left = most.clamp(MIN_CHANGES, MAX_CHANGES);
        loop {
            let instead = self.simplify();
            values_of(outside).for_each(|value| *value = instead.of(*value));
            self.join(outside);
            let before = left;
            let mut uses = Uses::of(self, outside);
            for block in self.order() {
                let is_kept = is_last(outside, block) || self.barriers.contains(&block);
                if left == 0 || is_kept {
                    continue;
                }
                let mut targets = self.blocks[block.index()].end.targets();
                let leads = to.is_none_or(|to| targets.any(|one| to.contains(&one)));
                if self.skip(block, &uses) || leads && self.lead_past(block, &uses, outside) {
                    left -= 1;
                    uses = Uses::of(self, outside);
                }
            }
            if left == before || left == 0 {
                let instead = self.simplify();
                values_of(outside).for_each(|value| *value = instead.of(*value));
                return;
            }
        }
    }

    /// Whether nothing is done in a block: no operation whose value anybody needs.
    fn does_nothing(&self, block: BlockId, uses: &Uses) -> bool {
        self.blocks[block.index()]
            .body
            .iter()
            .all(|id| !self.op(*id).acts() && uses.by(*id).is_empty())
    }

    /// A block that leads to one that nothing else leads to is one with it.
    fn join(&mut self, outside: &[Outside]) {
        for block in self.order() {
            while let End::Jump(to) = self.blocks[block.index()].end {
                let there = &self.blocks[to.index()];
                let is_kept = is_last(outside, to) || self.barriers.contains(&block);
                // What is written later stays a block of its own.
                let is_kept = is_kept || there.end == End::Nothing;
                if there.predecessors.len() != 1 || !there.phis.is_empty() || to == block || is_kept
                {
                    break;
                }
                let there = std::mem::take(&mut self.blocks[to.index()]);
                for behind in there.end.targets() {
                    for from in &mut self.blocks[behind.index()].predecessors {
                        if *from == to {
                            *from = block;
                        }
                    }
                }
                let here = &mut self.blocks[block.index()];
                here.body.extend(there.body);
                here.end = there.end;
                if let Some(barrier) = self.barriers.iter_mut().find(|one| **one == to) {
                    *barrier = block;
                }
            }
        }
    }

    /// A block where ways meet only to go on to another one: they lead there at once.
    fn skip(&mut self, block: BlockId, uses: &Uses) -> bool {
        let here = &self.blocks[block.index()];
        let End::Jump(to) = here.end else { return false };
        let way = self.blocks[to.index()].predecessors.iter().position(|one| *one == block);
        let Some(way) = way.filter(|_| {
            (2..=MAX_WAYS).contains(&here.predecessors.len())
                && to != block
                && here.phis.len() <= MAX_PHIS
                && self.does_nothing(block, uses)
        }) else {
            return false;
        };
        // What meets here is used nowhere but where it meets others behind.
        let only_there =
            |phi: &ValueId| uses.by(*phi).iter().all(|by| *by == Use::Meeting(to, block));
        if !here.phis.iter().all(only_there) {
            return false;
        }
        // Two ways from one block to another could not be told apart.
        let there = &self.blocks[to.index()].predecessors;
        let once =
            |from: &BlockId| here.predecessors.iter().filter(|one| *one == from).count() == 1;
        if !here.predecessors.iter().all(|from| once(from) && !there.contains(from)) {
            return false;
        }
        let phis: HashSet<_> = here.phis.iter().copied().collect();
        let predecessors = here.predecessors.clone();
        for phi in self.blocks[to.index()].phis.clone() {
            let Op::Phi(mut all) = self.op(phi).clone() else { continue };
            let value = all.remove(way);
            for at in 0..predecessors.len() {
                all.push(match self.op(value) {
                    Op::Phi(inner) if phis.contains(&value) => inner[at],
                    _ => value,
                });
            }
            self.nodes[phi.index()].op = Op::Phi(all);
        }
        self.blocks[to.index()].predecessors.remove(way);
        for from in &predecessors {
            self.turn(*from, block, to);
            self.blocks[to.index()].predecessors.push(*from);
        }
        let here = &mut self.blocks[block.index()];
        here.predecessors.clear();
        here.phis.clear();
        here.body.clear();
        here.end = End::Nothing;
        true
    }

    /// The way from a block to another leads elsewhere.
    pub(super) fn turn(&mut self, from: BlockId, old: BlockId, new: BlockId) {
        match &mut self.blocks[from.index()].end {
            End::Jump(to) => *to = new,
            End::Branch { yes, no, .. } => {
                let target = if *yes == old { yes } else { no };
                if *target == old {
                    *target = new;
                }
            }
            _ => {}
        }
    }

    /// Leads the ways past a block's decision for which it is known.
    fn lead_past(&mut self, block: BlockId, uses: &Uses, outside: &mut [Outside]) -> bool {
        let here = &self.blocks[block.index()];
        let End::Branch { test, of: (left, right), yes, no } = here.end else { return false };
        let (Op::Phi(all), Some(right)) = (self.op(left), self.constant(right)) else {
            return false;
        };
        if !here.phis.contains(&left)
            || !(2..=MAX_WAYS).contains(&here.predecessors.len())
            || here.phis.len() > MAX_PHIS
            || yes == no
            || yes == block
            || no == block
            || !self.does_nothing(block, uses)
        {
            return false;
        }
        let leads = |one: &ValueId| {
            let known = self.constant(*one)?;
            Some(if test.of(known, right) { yes } else { no })
        };
        // A block that leads here twice would have to be told apart from itself.
        let once = |at: &usize| {
            let from = here.predecessors[*at];
            here.predecessors.iter().filter(|one| **one == from).count() == 1
        };
        let ways: Vec<(usize, BlockId)> =
            (0..all.len()).filter(once).filter_map(|at| Some((at, leads(&all[at])?))).collect();
        // Nor may one lead to a block where it leads already.
        let is_new = |(at, to): &(usize, BlockId)| {
            !self.blocks[to.index()].predecessors.contains(&here.predecessors[*at])
        };
        let ways: Vec<_> = ways.into_iter().filter(is_new).collect();
        if ways.is_empty() {
            return false;
        }
        let places = self.redirect(block, (yes, no), &ways);
        self.repair(block, (yes, no), places, uses, outside);
        true
    }

    fn redirect(
        &mut self,
        block: BlockId,
        (yes, no): (BlockId, BlockId),
        leads: &[(usize, BlockId)],
    ) -> Places {
        let phis = self.blocks[block.index()].phis.clone();
        let predecessors = self.blocks[block.index()].predecessors.clone();
        self.blocks[block.index()].body.clear();
        let operand = |graph: &Self, phi: ValueId, at: usize| match graph.op(phi) {
            Op::Phi(all) => all[at],
            _ => phi,
        };
        // Behind the decision, each value is what it was here, or on the way that led past.
        let mut places = Places::new();
        for to in [yes, no] {
            let ways: Vec<usize> =
                leads.iter().filter(|(_, one)| *one == to).map(|(at, _)| *at).collect();
            if ways.is_empty() {
                continue;
            }
            let before = self.blocks[to.index()].predecessors.clone();
            for phi in self.blocks[to.index()].phis.clone() {
                let Op::Phi(mut all) = self.op(phi).clone() else { continue };
                let Some(from) = before.iter().position(|one| *one == block) else { continue };
                for way in &ways {
                    let value = all[from];
                    all.push(if phis.contains(&value) {
                        operand(self, value, *way)
                    } else {
                        value
                    });
                }
                self.nodes[phi.index()].op = Op::Phi(all);
            }
            for phi in &phis {
                let mut all = vec![*phi; before.len()];
                all.extend(ways.iter().map(|way| operand(self, *phi, *way)));
                let span = self.nodes[phi.index()].span;
                let new = self.add(Op::Phi(all), span);
                self.blocks[to.index()].phis.push(new);
                self.homes.insert(new, to);
                places.entry(*phi).or_default().insert(to, new);
            }
            for way in &ways {
                self.turn(predecessors[*way], block, to);
                self.blocks[to.index()].predecessors.push(predecessors[*way]);
            }
        }
        let stays = |at: &usize| leads.iter().all(|(gone, _)| gone != at);
        for phi in &phis {
            if let Op::Phi(all) = self.op(*phi).clone() {
                let left = (0..all.len()).filter(stays).map(|at| all[at]).collect();
                self.nodes[phi.index()].op = Op::Phi(left);
            }
        }
        let left = (0..predecessors.len()).filter(stays).map(|at| predecessors[at]).collect();
        self.blocks[block.index()].predecessors = left;
        places
    }

    /// Each use of a value finds what has come in its place on the way there.
    fn repair(
        &mut self,
        block: BlockId,
        (yes, no): (BlockId, BlockId),
        places: Places,
        uses: &Uses,
        outside: &mut [Outside],
    ) {
        let mut users: BTreeSet<BlockId> = [block, yes, no].into();
        let mut floats = false;
        for phi in places.keys() {
            for by in uses.by(*phi) {
                match by {
                    Use::In(at) | Use::Meeting(at, _) => {
                        users.insert(*at);
                    }
                    Use::Floating => floats = true,
                    Use::Outside => {}
                }
            }
        }
        if floats {
            // What floats is used anywhere.
            users.extend(self.order());
        }
        let mut repair = Repair { graph: self, block, places };
        for at in users {
            let here = repair.graph.blocks[at.index()].clone();
            for id in &here.phis {
                let Op::Phi(mut operands) = repair.graph.op(*id).clone() else { continue };
                for (one, from) in operands.iter_mut().zip(&here.predecessors) {
                    *one = repair.used(*one, *from);
                }
                repair.graph.nodes[id.index()].op = Op::Phi(operands);
            }
            if at == block {
                continue;
            }
            for id in &here.body {
                let mut op = repair.graph.op(*id).clone();
                op.each_operand(|one| *one = repair.used(*one, at));
                repair.graph.nodes[id.index()].op = op;
            }
            let mut end = here.end;
            end.each_operand(|one| *one = repair.used(*one, at));
            repair.graph.blocks[at.index()].end = end;
        }
        for (last, values) in outside {
            for value in values {
                *value = repair.used(*value, *last);
            }
        }
    }
}

/// Of values, what they are at the end of blocks.
type Places = HashMap<ValueId, HashMap<BlockId, ValueId>>;

struct Repair<'g> {
    graph: &'g mut Graph,
    /// Where the values were made.
    block: BlockId,
    places: Places,
}

impl Repair<'_> {
    /// What a value is for somebody who uses it in a block, behind its phis.
    fn used(&mut self, value: ValueId, at: BlockId) -> ValueId {
        if let Op::Field { at: first, bit, width, bytes } = *self.graph.op(value) {
            let now = self.used(first, at);
            if now == first {
                return value;
            }
            let span = self.graph.nodes[value.index()].span;
            return self.graph.add(Op::Field { at: now, bit, width, bytes }, span);
        }
        if !self.places.contains_key(&value) {
            return value;
        }
        self.reaching(value, at)
    }

    fn reaching(&mut self, value: ValueId, at: BlockId) -> ValueId {
        // Up to where it is known, by the only way there is; then the ways that meet.
        let mut path = Vec::new();
        let mut here = at;
        let found = loop {
            if here == self.block {
                break value;
            }
            if let Some(known) = self.places[&value].get(&here) {
                break *known;
            }
            path.push(here);
            match self.graph.blocks[here.index()].predecessors[..] {
                [] => break value,
                [one] => here = one,
                _ => break self.meeting(value, here),
            }
        };
        if let Some(places) = self.places.get_mut(&value) {
            places.extend(path.into_iter().map(|at| (at, found)));
        }
        found
    }

    /// Where ways meet, a value is what it was on each.
    fn meeting(&mut self, value: ValueId, at: BlockId) -> ValueId {
        let span = self.graph.nodes[value.index()].span;
        let phi = self.graph.add(Op::Phi(Vec::new()), span);
        self.graph.blocks[at.index()].phis.push(phi);
        self.graph.homes.insert(phi, at);
        if let Some(places) = self.places.get_mut(&value) {
            places.insert(at, phi);
        }
        let predecessors = self.graph.blocks[at.index()].predecessors.clone();
        let all = predecessors.into_iter().map(|from| self.reaching(value, from)).collect();
        self.graph.nodes[phi.index()].op = Op::Phi(all);
        phi
    }
}
