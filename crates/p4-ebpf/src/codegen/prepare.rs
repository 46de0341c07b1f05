//! Prepares a graph for code generation: materialises the program's arguments and the packet
//! address in the entry block.

use std::collections::HashMap;

use p4_object::helper;
use p4_syntax::source::Span;

use crate::flat::{BlockId, Function, Graph, Op, Replacements, ValueId};

/// Prepares a graph. Returns its blocks in layout order.
pub(super) fn prepare(graph: &mut Graph) -> Vec<BlockId> {
    make_arguments(graph);
    graph.split_edges();
    graph.order()
}

/// Places the program's arguments and the packet address in the entry block.
fn make_arguments(graph: &mut Graph) {
    let nodes = (0..graph.nodes.len() as u32).map(ValueId);
    let floating = |id: &ValueId| matches!(graph.op(*id), Op::Argument(_) | Op::Packet);
    let all: Vec<_> = nodes.filter(floating).collect();
    let used = used(graph);
    let mut front = Vec::new();
    let mut existing: HashMap<Op, ValueId> = HashMap::new();
    let needs_packet = all.iter().any(|id| used[id.index()] && *graph.op(*id) == Op::Packet);
    for at in 0..2 {
        let op = Op::Argument(at);
        let is_used = all.iter().any(|id| used[id.index()] && *graph.op(*id) == op);
        if is_used || (at == 0 && needs_packet) {
            let id = graph.add(op.clone(), Span::default());
            existing.insert(op, id);
            front.push(id);
        }
    }
    if let (true, Some(context)) = (needs_packet, existing.get(&Op::Argument(0))) {
        let id = graph
            .add(Op::Call(Function::Helper(helper::PACKET_DATA), vec![*context]), Span::default());
        existing.insert(Op::Packet, id);
        front.push(id);
    }
    let mut replacements = Replacements::default();
    for id in all {
        if let Some(one) = existing.get(graph.op(id)) {
            replacements.insert(id, *one);
        }
    }
    graph.replace(&replacements);
    graph.blocks[0].body.splice(..0, front);
}

/// Returns, for each value, true if it is used as an operand.
fn used(graph: &Graph) -> Vec<bool> {
    let mut used = vec![false; graph.nodes.len()];
    for block in &graph.blocks {
        for id in block.phis.iter().chain(&block.body) {
            for operand in graph.op(*id).operands() {
                used[operand.index()] = true;
            }
        }
        let mut end = block.end;
        end.visit_operands_mut(|one| used[one.index()] = true);
    }
    used
}
