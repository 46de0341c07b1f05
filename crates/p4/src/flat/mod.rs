//! The flat form of a program: one graph of blocks without calls, whose values are numbers of 64 bits,
//! each made once (static single assignment). Code is made of it.
//!
//! Everything is written out at the place where it is called: nothing calls itself, so that each
//! variable has one place. A number wider than 64 bits is several values, the lowest first; one that
//! is narrower has zeros above. Wrong values are kept out by construction: each operation gives what
//! the type has.
//!
//! What reads the packet as it came ([`Op::Field`]) has no place of its own until the end: the packet
//! does not change until the deparser writes, so a field is loaded where it is used.

mod apart;
mod build;
mod dominators;
mod edges;
mod fold;
mod instead;
mod lower;
mod merge;
mod place;
mod shape;
mod simplify;
mod thread;

#[cfg(test)]
pub(crate) use fold::swap;
pub(crate) use instead::Instead;
pub use lower::NotCompiled;
pub(crate) use lower::{Ways, lower};

use std::collections::HashMap;
use std::sync::Arc;

use crate::source::Span;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) struct $name(pub u32);

        impl $name {
            /// Its place in its list.
            pub(crate) fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// One of [`Graph::nodes`]: a value, or something that is done.
    ValueId;
    /// One of [`Graph::blocks`].
    BlockId;
}

/// Operations on two numbers of 64 bits, as eBPF has them (RFC 9669, section 4.1): they wrap, nothing
/// is left of a division by zero, and shifts are by the lowest six bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Binary {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`, without signs
    Divide,
    /// `%`, without signs
    Modulo,
    /// `&`
    And,
    /// `|`
    Or,
    /// `^`
    Xor,
    /// `<<`
    ShiftLeft,
    /// `>>` with zeros
    ShiftRight,
    /// `>>` with the sign
    ShiftRightSigned,
}

/// Comparisons of two numbers of 64 bits.
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

/// Bytes that are loaded or stored at once: 1, 2, 4 or 8.
pub(crate) type Size = u8;

/// What a value is, or what is done.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    /// A number.
    Constant(u64),
    /// Any number: nobody looks at it.
    Undefined,
    /// What the program is called with: the context, then the metadata.
    Argument(u8),
    /// Where the packet begins, as it came.
    Packet,
    /// `width` bits of the packet as it came, from bit `bit` behind byte `at` on. `bytes` are known
    /// to be there behind `at`.
    Field {
        /// A byte of the packet, counted from its first.
        at: ValueId,
        /// The first bit, counted from there.
        bit: u32,
        /// Bits: at most 64.
        width: u32,
        /// Bytes that are there.
        bytes: u32,
    },
    /// The value of the predecessor that was left, in the order of [`Block::predecessors`].
    Phi(Vec<ValueId>),
    /// An operation.
    Binary(Binary, ValueId, ValueId),
    /// 1 if it holds, else 0.
    Compare(Compare, ValueId, ValueId),
    /// The second if the first is not 0, else the third.
    Select(ValueId, ValueId, ValueId),
    /// The lowest bytes in the other order.
    Swap(Size, ValueId),
    /// What memory holds, lowest byte first.
    Load {
        /// An address.
        base: ValueId,
        /// Bytes behind it.
        offset: i16,
        /// Bytes.
        size: Size,
        /// Whether nothing changes what is there before the deparser writes.
        constant: bool,
    },
    /// Puts a value there.
    Store {
        /// An address.
        base: ValueId,
        /// Bytes behind it.
        offset: i16,
        /// Bytes.
        size: Size,
        /// What is put there.
        value: ValueId,
    },
    /// Calls a helper by its number.
    Call(i32, Vec<ValueId>),
    /// The address of a few words of the stack frame: what is put there is used up by the next call.
    Frame,
    /// A map, by its place.
    Map(u32),
}

/// A value, and the place in the source that it comes from.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// What it is.
    pub(crate) op: Op,
    /// Where that is said.
    pub(crate) span: Span,
}

/// Code that is run from its beginning to its end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Block {
    /// The blocks that lead here; one that leads here twice stands here twice.
    pub(crate) predecessors: Vec<BlockId>,
    /// Values that depend on where it was come from.
    pub(crate) phis: Vec<ValueId>,
    /// What is done, one behind the other.
    pub(crate) body: Vec<ValueId>,
    /// What comes then.
    pub(crate) end: End,
}

/// What comes behind a block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum End {
    /// Nothing leads here, or it is not known yet.
    #[default]
    Nothing,
    /// Another block.
    Jump(BlockId),
    /// One of two.
    Branch {
        /// What is compared.
        test: Compare,
        /// With what.
        of: (ValueId, ValueId),
        /// If it holds.
        yes: BlockId,
        /// If it does not.
        no: BlockId,
    },
    /// The end of the program.
    Return(ValueId),
}

/// A program's code. The first block is where it begins; nothing leads there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Graph {
    /// Values.
    pub(crate) nodes: Vec<Node>,
    /// Blocks.
    pub(crate) blocks: Vec<Block>,
    /// Words of eight bytes behind [`Op::Frame`].
    pub(crate) frame: u32,
    /// The last blocks before the packet is written.
    pub(crate) barriers: Vec<BlockId>,
    /// What is read of the tenant's VM: names, by their numbers.
    pub(crate) keys: Vec<Arc<str>>,
    /// Numbers that there are.
    constants: HashMap<u64, ValueId>,
    /// The blocks in which phis stand.
    homes: HashMap<ValueId, BlockId>,
}

impl Op {
    /// The values that it is made of.
    pub(crate) fn operands(&self) -> Vec<ValueId> {
        let mut all = Vec::new();
        self.for_operands(|one| all.push(one));
        all
    }

    /// Looks at each value that it is made of.
    pub(crate) fn for_operands(&self, mut with: impl FnMut(ValueId)) {
        match self {
            Self::Phi(all) | Self::Call(_, all) => all.iter().for_each(|one| with(*one)),
            // The others are small.
            other => other.clone().each_operand(|one| with(*one)),
        }
    }

    /// Does something with each value that it is made of.
    pub(crate) fn each_operand(&mut self, mut with: impl FnMut(&mut ValueId)) {
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
            Self::Select(condition, yes, no) => {
                with(condition);
                with(yes);
                with(no);
            }
            Self::Phi(all) | Self::Call(_, all) => all.iter_mut().for_each(with),
        }
    }

    /// Whether it has no place of its own: it is the same wherever it is made.
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

    /// Whether it does something that others see.
    pub(crate) fn acts(&self) -> bool {
        matches!(self, Self::Store { .. } | Self::Call(..))
    }

    /// Whether it gives the same wherever its operands are known.
    pub(crate) fn is_pure(&self) -> bool {
        match self {
            Self::Binary(..) | Self::Compare(..) | Self::Select(..) | Self::Swap(..) => true,
            Self::Load { constant, .. } => *constant,
            _ => self.floats(),
        }
    }
}

impl End {
    /// The blocks that come behind.
    pub(crate) fn targets(self) -> impl Iterator<Item = BlockId> {
        let (one, other) = match self {
            Self::Jump(to) => (Some(to), None),
            Self::Branch { yes, no, .. } => (Some(yes), Some(no)),
            _ => (None, None),
        };
        one.into_iter().chain(other)
    }

    /// Does something with each value that it looks at.
    pub(crate) fn each_operand(&mut self, mut with: impl FnMut(&mut ValueId)) {
        match self {
            Self::Branch { of: (one, other), .. } => {
                with(one);
                with(other);
            }
            Self::Return(value) => with(value),
            _ => {}
        }
    }
}

impl Graph {
    /// What a value is.
    pub(crate) fn op(&self, id: ValueId) -> &Op {
        &self.nodes[id.index()].op
    }

    /// The number that a value is, if it is known.
    pub(crate) fn constant(&self, id: ValueId) -> Option<u64> {
        match self.op(id) {
            Op::Constant(number) => Some(*number),
            _ => None,
        }
    }

    /// Whether a map is used.
    pub(crate) fn uses_map(&self, map: Option<u32>) -> bool {
        let mut bodies = self.blocks.iter().flat_map(|block| &block.body);
        bodies.any(|id| {
            let operands = self.op(*id).operands();
            operands.iter().any(|one| matches!(self.op(*one), Op::Map(one) if Some(*one) == map))
        })
    }

    /// A new value, which stands nowhere yet. The same number is the same value.
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
}

impl Graph {
    /// Makes it small: what is known is counted, what nobody needs is left out, and what is read of
    /// the packet gets its place.
    fn optimise(&mut self) {
        self.thread(None, &mut []);
        self.split_edges();
        self.place_fields();
        self.simplify();
        self.merge();
        self.simplify();
        self.leave_out();
    }
}
