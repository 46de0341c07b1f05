//! Flat intermediate representation: one control flow graph of basic blocks for the whole program,
//! in static single assignment (SSA) form over 64-bit values. The back end generates code from it.
//!
//! Every call is inlined. P4 has no recursion, so each variable needs only one set of slots. A
//! number wider than 64 bits occupies several values, least significant first; a narrower one is
//! zero-extended. Values out of range cannot occur: each operation yields a value of its type.
//!
//! A read of the received packet ([`Op::Field`]) is not placed in a block until the end of
//! optimization. The packet does not change until the deparser writes it, so the load is sunk to
//! its use.

mod build;
mod dominators;
mod edges;
mod fold;
mod jump_threading;
mod lower;
mod merge;
mod place;
mod repair;
mod replacements;
pub(crate) mod shape;
mod simplify;
mod split;

#[cfg(test)]
pub(crate) use fold::swap;
pub use lower::NotCompiled;
pub(crate) use lower::{Paths, lower};
pub(crate) use replacements::Replacements;

use std::collections::HashMap;
use std::sync::Arc;

use p4_syntax::source::Span;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) struct $name(pub u32);

        impl $name {
            /// Returns the index into the list that the id refers to.
            pub(crate) fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// Id of an entry of [`Graph::nodes`]: a value, or an operation with a side effect.
    ValueId;
    /// Id of an entry of [`Graph::blocks`].
    BlockId;
}

/// Operations on two 64-bit numbers with eBPF semantics (RFC 9669, section 4.1): arithmetic wraps,
/// division by zero gives 0, modulo zero gives the dividend, and shift counts use the lowest six
/// bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Binary {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`, unsigned
    Divide,
    /// `%`, unsigned
    Modulo,
    /// `&`
    And,
    /// `|`
    Or,
    /// `^`
    Xor,
    /// `<<`
    ShiftLeft,
    /// `>>`, logical
    ShiftRight,
    /// `>>`, arithmetic
    ShiftRightSigned,
}

/// Comparisons of two 64-bit numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Compare {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `<`, in two's complement
    LessSigned,
    /// `<=`, in two's complement
    LessOrEqualSigned,
}

/// Size of a memory access in bytes: 1, 2, 4 or 8.
pub(crate) type Size = u8;

/// Function that is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Function {
    /// Helper function, by its number.
    Helper(i32),
    /// Function of a library, by its index in [`Graph::linked`].
    Linked(usize),
}

/// Operation of a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    /// A constant.
    Constant(u64),
    /// An arbitrary value, used where no result depends on it.
    Undefined,
    /// An argument of the program: 0 is the context, 1 the metadata.
    Argument(u8),
    /// Address of the first byte of the received packet.
    Packet,
    /// `width` bits of the received packet, starting `bit` bits after byte `at`. At least
    /// `bytes` bytes are known to follow `at`.
    Field {
        /// Byte offset from the start of the packet.
        at: ValueId,
        /// Bit offset from `at`.
        bit: u32,
        /// Width in bits, at most 64.
        width: u32,
        /// Number of bytes after `at` that are known to exist.
        bytes: u32,
    },
    /// SSA phi: one operand per predecessor, in the order of [`Block::predecessors`].
    Phi(Vec<ValueId>),
    /// A binary operation.
    Binary(Binary, ValueId, ValueId),
    /// 1 if the comparison holds, otherwise 0.
    Compare(Compare, ValueId, ValueId),
    /// The second operand if the first is not 0, otherwise the third.
    Select(ValueId, ValueId, ValueId),
    /// The lowest `Size` bytes in reverse order.
    Swap(Size, ValueId),
    /// A load from memory, little-endian.
    Load {
        /// Base address.
        base: ValueId,
        /// Offset from the base, in bytes.
        offset: i16,
        /// Size in bytes.
        size: Size,
        /// True if the memory does not change before the deparser writes the packet.
        constant: bool,
    },
    /// A store to memory.
    Store {
        /// Base address.
        base: ValueId,
        /// Offset from the base, in bytes.
        offset: i16,
        /// Size in bytes.
        size: Size,
        /// Value to store.
        value: ValueId,
    },
    /// A call.
    Call(Function, Vec<ValueId>),
    /// Address of a scratch area in the stack frame. Its contents are valid only until the next
    /// call.
    Frame,
    /// A map, by its index.
    Map(u32),
}

/// An operation and the source location it was generated from.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// Operation.
    pub(crate) op: Op,
    /// Source location.
    pub(crate) span: Span,
}

/// Basic block.
#[derive(Debug, Clone, Default)]
pub(crate) struct Block {
    /// Predecessors. A block with two edges to this one is listed twice.
    pub(crate) predecessors: Vec<BlockId>,
    /// Phis.
    pub(crate) phis: Vec<ValueId>,
    /// Instructions, in execution order.
    pub(crate) body: Vec<ValueId>,
    /// Terminator.
    pub(crate) end: Terminator,
}

/// Terminator of a block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Terminator {
    /// None yet, or the block is unreachable.
    #[default]
    Nothing,
    /// Unconditional jump.
    Jump(BlockId),
    /// Conditional branch.
    Branch {
        /// Comparison.
        condition: Compare,
        /// Operands of the comparison.
        operands: (ValueId, ValueId),
        /// Target if the comparison holds.
        then: BlockId,
        /// Target if it does not.
        otherwise: BlockId,
    },
    /// Return from the program.
    Return(ValueId),
}

/// Control flow graph of a program. The first block is the entry; it has no predecessors.
#[derive(Debug, Clone, Default)]
pub(crate) struct Graph {
    /// Values and operations.
    pub(crate) nodes: Vec<Node>,
    /// Basic blocks.
    pub(crate) blocks: Vec<Block>,
    /// Size of the area that [`Op::Frame`] points to, in 8-byte words.
    pub(crate) frame: u32,
    /// Last blocks before the packet is written. A later load would read modified bytes.
    pub(crate) barriers: Vec<BlockId>,
    /// Names of the keys that the program reads from the tenant's VM, indexed by key number.
    pub(crate) keys: Vec<Arc<str>>,
    /// Names of the functions of libraries.
    pub(crate) linked: Vec<String>,
    /// Existing constants by value, so that each exists only once.
    constants: HashMap<u64, ValueId>,
    /// Block of each phi.
    homes: HashMap<ValueId, BlockId>,
}

impl Op {
    /// Returns the operands.
    pub(crate) fn operands(&self) -> Vec<ValueId> {
        let mut all = Vec::new();
        self.visit_operands(|one| all.push(one));
        all
    }

    /// Calls `with` for each operand.
    pub(crate) fn visit_operands(&self, mut with: impl FnMut(ValueId)) {
        match self {
            Self::Phi(all) | Self::Call(_, all) => all.iter().for_each(|one| with(*one)),
            // The other operations are small, so a clone is cheap.
            other => other.clone().visit_operands_mut(|one| with(*one)),
        }
    }

    /// Calls `with` for each operand, which it may replace.
    pub(crate) fn visit_operands_mut(&mut self, mut with: impl FnMut(&mut ValueId)) {
        match self {
            Self::Constant(_)
            | Self::Undefined
            | Self::Argument(_)
            | Self::Packet
            | Self::Frame
            | Self::Map(_) => {}
            Self::Field { at: one, .. } | Self::Swap(_, one) | Self::Load { base: one, .. } => {
                with(one);
            }
            Self::Binary(_, one, other) | Self::Compare(_, one, other) => {
                with(one);
                with(other);
            }
            Self::Store { base, value, .. } => {
                with(base);
                with(value);
            }
            Self::Select(condition, then, otherwise) => {
                with(condition);
                with(then);
                with(otherwise);
            }
            Self::Phi(all) | Self::Call(_, all) => all.iter_mut().for_each(with),
        }
    }

    /// Returns true if the operation is not placed in a block: its value is the same everywhere.
    pub(crate) fn floats(&self) -> bool {
        matches!(
            self,
            Self::Constant(_)
                | Self::Undefined
                | Self::Argument(_)
                | Self::Packet
                | Self::Field { .. }
                | Self::Frame
                | Self::Map(_)
        )
    }

    /// Returns true if the operation has side effects.
    pub(crate) fn has_side_effects(&self) -> bool {
        matches!(self, Self::Store { .. } | Self::Call(..))
    }

    /// Returns true if the result depends only on the operands.
    pub(crate) fn is_pure(&self) -> bool {
        match self {
            Self::Binary(..) | Self::Compare(..) | Self::Select(..) | Self::Swap(..) => true,
            Self::Load { constant, .. } => *constant,
            _ => self.floats(),
        }
    }
}

impl Terminator {
    /// Returns the successors.
    pub(crate) fn targets(self) -> impl Iterator<Item = BlockId> {
        let (one, other) = match self {
            Self::Jump(to) => (Some(to), None),
            Self::Branch { then, otherwise, .. } => (Some(then), Some(otherwise)),
            _ => (None, None),
        };
        one.into_iter().chain(other)
    }

    /// Calls `with` for each operand, which it may replace.
    pub(crate) fn visit_operands_mut(&mut self, mut with: impl FnMut(&mut ValueId)) {
        match self {
            Self::Branch { operands: (one, other), .. } => {
                with(one);
                with(other);
            }
            Self::Return(value) => with(value),
            _ => {}
        }
    }
}

impl Graph {
    /// Returns the operation of a value.
    pub(crate) fn op(&self, id: ValueId) -> &Op {
        &self.nodes[id.index()].op
    }

    /// Returns the number of a constant; `None` for any other value.
    pub(crate) fn constant(&self, id: ValueId) -> Option<u64> {
        match self.op(id) {
            Op::Constant(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns true if the code refers to `map`.
    pub(crate) fn uses_map(&self, map: Option<u32>) -> bool {
        let mut bodies = self.blocks.iter().flat_map(|block| &block.body);
        bodies.any(|id| {
            let operands = self.op(*id).operands();
            operands.iter().any(|one| matches!(self.op(*one), Op::Map(one) if Some(*one) == map))
        })
    }

    /// Adds a value that is not yet placed in a block. Equal constants share one value.
    pub(crate) fn add(&mut self, op: Op, span: Span) -> ValueId {
        if let Op::Constant(number) = op {
            let next = ValueId(self.nodes.len() as u32);
            let known = *self.constants.entry(number).or_insert(next);
            if known != next {
                return known;
            }
        }
        self.nodes.push(Node { op, span });
        ValueId(self.nodes.len() as u32 - 1)
    }

    /// Optimizes the graph: threads jumps, sinks packet loads to their uses, folds constants,
    /// merges common subexpressions and removes dead code.
    fn optimize(&mut self) {
        self.thread_jumps(None, &mut []);
        self.split_edges();
        self.place_fields();
        self.simplify();
        self.merge();
        self.simplify();
        self.remove_dead_code();
    }
}
