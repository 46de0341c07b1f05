//! Constant folding and algebraic simplification.

use super::{Binary, Compare, Graph, Op, ValueId};

/// Result of folding an operation.
pub(super) enum Folded {
    /// Equal to this value.
    Value(ValueId),
    /// Equal to this constant.
    Constant(u64),
    /// Equal to this simpler operation.
    Op(Op),
    /// Equal to this operation with this constant as the right operand.
    By(Binary, ValueId, u64),
    /// Cannot be simplified.
    Same,
}

/// Depth to which operands are analysed.
const DEPTH: u32 = 6;
/// Number of operands that are analysed for a value. A join of parser states has one for each way
/// into it, and the same ones again at each depth.
const VISITS: u32 = 256;

impl Binary {
    /// Evaluates the operation.
    pub(crate) fn of(self, left: u64, right: u64) -> u64 {
        match self {
            Self::Add => left.wrapping_add(right),
            Self::Subtract => left.wrapping_sub(right),
            Self::Multiply => left.wrapping_mul(right),
            Self::Divide => left.checked_div(right).unwrap_or(0),
            Self::Modulo => left.checked_rem(right).unwrap_or(left),
            Self::And => left & right,
            Self::Or => left | right,
            Self::Xor => left ^ right,
            Self::ShiftLeft => left.wrapping_shl(right as u32),
            Self::ShiftRight => left.wrapping_shr(right as u32),
            Self::ShiftRightSigned => (left as i64).wrapping_shr(right as u32) as u64,
        }
    }

    /// Returns true if the operands may be exchanged.
    pub(crate) fn commutes(self) -> bool {
        matches!(self, Self::Add | Self::Multiply | Self::And | Self::Or | Self::Xor)
    }
}

impl Compare {
    /// Evaluates the comparison.
    pub(crate) fn of(self, left: u64, right: u64) -> bool {
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::LessSigned => (left as i64) < (right as i64),
            Self::LessOrEqualSigned => (left as i64) <= (right as i64),
        }
    }

    /// Returns the negated comparison. The flag is set if its operands have to be exchanged.
    pub(crate) fn opposite(self) -> (Self, bool) {
        match self {
            Self::Equal => (Self::NotEqual, false),
            Self::NotEqual => (Self::Equal, false),
            Self::Less => (Self::LessOrEqual, true),
            Self::LessOrEqual => (Self::Less, true),
            Self::LessSigned => (Self::LessOrEqualSigned, true),
            Self::LessOrEqualSigned => (Self::LessSigned, true),
        }
    }
}

/// Reverses the order of the lowest `size` bytes.
pub(crate) fn swap(size: u8, value: u64) -> u64 {
    match size {
        2 => u64::from((value as u16).swap_bytes()),
        4 => u64::from((value as u32).swap_bytes()),
        8 => value.swap_bytes(),
        _ => value & 0xff,
    }
}

impl Graph {
    /// Simplifies an operation.
    pub(super) fn fold(&self, op: &Op) -> Folded {
        match op {
            Op::Binary(operator, left, right) => self.fold_binary(*operator, *left, *right),
            Op::Compare(compare, left, right) => self.fold_compare(*compare, *left, *right),
            Op::Select(condition, yes, no) => match self.constant(*condition) {
                Some(0) => Folded::Value(*no),
                Some(_) => Folded::Value(*yes),
                None if yes == no => Folded::Value(*yes),
                None => match (self.constant(*yes), self.constant(*no)) {
                    (Some(1), Some(0)) if self.bits(*condition) <= 1 => Folded::Value(*condition),
                    _ => Folded::Same,
                },
            },
            Op::Swap(size, of) => match self.constant(*of) {
                Some(number) => Folded::Constant(swap(*size, number)),
                None if *size == 1 && self.bits(*of) <= 8 => Folded::Value(*of),
                // Two swaps cancel out.
                None => match self.op(*of) {
                    Op::Swap(other, inner)
                        if other == size && self.bits(*inner) <= u32::from(*size) * 8 =>
                    {
                        Folded::Value(*inner)
                    }
                    _ => Folded::Same,
                },
            },
            _ => Folded::Same,
        }
    }

    fn fold_binary(&self, operator: Binary, left: ValueId, right: ValueId) -> Folded {
        use Binary as B;
        let (one, other) = (self.constant(left), self.constant(right));
        match (operator, one, other) {
            (_, Some(one), Some(other)) => return Folded::Constant(operator.of(one, other)),
            // Move a constant to the right.
            (_, Some(_), None) if operator.commutes() => {
                return Folded::Op(Op::Binary(operator, right, left));
            }
            (
                B::Add
                | B::Subtract
                | B::Or
                | B::Xor
                | B::ShiftLeft
                | B::ShiftRight
                | B::ShiftRightSigned,
                None,
                Some(0),
            )
            | (B::Multiply | B::Divide, None, Some(1)) => return Folded::Value(left),
            (B::And | B::Multiply | B::Divide, None, Some(0))
            | (B::ShiftLeft | B::ShiftRight | B::Divide, Some(0), None)
            | (B::Modulo, None, Some(1)) => return Folded::Constant(0),
            (B::And, None, Some(u64::MAX)) | (B::Modulo, None, Some(0)) => {
                return Folded::Value(left);
            }
            // A mask of low-order ones has no effect on a value that has no higher bits.
            (B::And, None, Some(mask))
                if (mask & mask.wrapping_add(1)) == 0
                    && self.bits(left) <= mask.trailing_ones() =>
            {
                return Folded::Value(left);
            }
            (B::ShiftRight, None, Some(by)) if u64::from(self.bits(left)) <= by && by < 64 => {
                return Folded::Constant(0);
            }
            (B::Multiply, None, Some(by)) if by.is_power_of_two() => {
                return Folded::By(B::ShiftLeft, left, u64::from(by.trailing_zeros()));
            }
            _ => {}
        }
        if left == right {
            match operator {
                B::Subtract | B::Xor => return Folded::Constant(0),
                B::And | B::Or => return Folded::Value(left),
                _ => {}
            }
        }
        // (x op a) op b with constants a and b.
        if let (Some(other), Op::Binary(inner, of, by)) = (other, self.op(left))
            && *inner == operator
            && let Some(by) = self.constant(*by)
            && let Some(both) = match operator {
                B::Add => Some(by.wrapping_add(other)),
                B::And => Some(by & other),
                B::Or => Some(by | other),
                B::Xor => Some(by ^ other),
                _ => None,
            }
        {
            return Folded::By(operator, *of, both);
        }
        Folded::Same
    }

    fn fold_compare(&self, compare: Compare, left: ValueId, right: ValueId) -> Folded {
        use Compare as C;
        if let (Some(one), Some(other)) = (self.constant(left), self.constant(right)) {
            return Folded::Constant(u64::from(compare.of(one, other)));
        }
        if left == right {
            let holds = matches!(compare, C::Equal | C::LessOrEqual | C::LessOrEqualSigned);
            return Folded::Constant(u64::from(holds));
        }
        match (compare, self.constant(left), self.constant(right)) {
            (C::Equal | C::NotEqual, Some(_), None) => {
                Folded::Op(Op::Compare(compare, right, left))
            }
            (C::LessOrEqual, Some(0), None) => Folded::Constant(1),
            (C::Less, None, Some(0)) => Folded::Constant(0),
            (C::Less, Some(0), None) => Folded::Op(Op::Compare(C::NotEqual, right, left)),
            (C::Equal | C::NotEqual | C::Less | C::LessOrEqual, None, Some(number)) => {
                let bits = self.bits(left);
                // The constant is out of the value's range.
                if bits < 64 && number >> bits != 0 {
                    return Folded::Constant(u64::from(compare != C::Equal));
                }
                match (compare, number, bits) {
                    (C::NotEqual, 0, 1) | (C::Equal, 1, 1) => Folded::Value(left),
                    // Negation of a comparison.
                    (C::Equal, 0, 1) | (C::NotEqual, 1, 1) => match self.op(left) {
                        Op::Compare(inner, one, other) => {
                            let (opposite, turned) = inner.opposite();
                            let (one, other) = if turned { (*other, *one) } else { (*one, *other) };
                            Folded::Op(Op::Compare(opposite, one, other))
                        }
                        _ => Folded::Same,
                    },
                    _ => Folded::Same,
                }
            }
            _ => Folded::Same,
        }
    }

    /// Returns an upper bound for the number of significant bits of a value; higher bits are 0.
    pub(super) fn bits(&self, of: ValueId) -> u32 {
        self.bits_within(of, DEPTH, &mut { VISITS })
    }

    fn bits_within(&self, of: ValueId, depth: u32, visits: &mut u32) -> u32 {
        if depth == 0 || *visits == 0 {
            return 64;
        }
        *visits -= 1;
        let mut inside = |of: ValueId| self.bits_within(of, depth - 1, visits);
        match self.op(of) {
            Op::Constant(number) => 64 - number.leading_zeros(),
            Op::Field { width, .. } => *width,
            Op::Compare(..) => 1,
            Op::Load { size, .. } | Op::Swap(size, _) => u32::from(*size) * 8,
            Op::Phi(all) => all.iter().map(|one| inside(*one)).max().unwrap_or(64),
            Op::Select(_, yes, no) => inside(*yes).max(inside(*no)),
            Op::Binary(operator, left, right) => match (operator, self.constant(*right)) {
                (Binary::And, _) => inside(*left).min(inside(*right)),
                (Binary::Or | Binary::Xor, _) => inside(*left).max(inside(*right)),
                (Binary::Add, _) => (inside(*left).max(inside(*right)) + 1).min(64),
                (Binary::Multiply, _) => (inside(*left) + inside(*right)).min(64),
                (Binary::ShiftLeft, Some(by)) if by < 64 => (inside(*left) + by as u32).min(64),
                (Binary::ShiftRight, Some(by)) if by < 64 => {
                    inside(*left).saturating_sub(by as u32)
                }
                (Binary::ShiftRight | Binary::Divide | Binary::Modulo, _) => inside(*left),
                _ => 64,
            },
            _ => 64,
        }
    }

    /// Returns the number of a value's lowest bits that are known to be 0.
    pub(super) fn trailing_zeros(&self, of: ValueId) -> u32 {
        self.zeros_within(of, DEPTH, &mut { VISITS })
    }

    fn zeros_within(&self, of: ValueId, depth: u32, visits: &mut u32) -> u32 {
        if depth == 0 || *visits == 0 {
            return 0;
        }
        *visits -= 1;
        let mut inside = |of: ValueId| self.zeros_within(of, depth - 1, visits);
        match self.op(of) {
            Op::Constant(number) => number.trailing_zeros(),
            Op::Phi(all) => all.iter().map(|one| inside(*one)).min().unwrap_or(0),
            Op::Select(_, yes, no) => inside(*yes).min(inside(*no)),
            Op::Binary(operator, left, right) => match operator {
                Binary::Add | Binary::Subtract | Binary::Or | Binary::Xor => {
                    inside(*left).min(inside(*right))
                }
                Binary::And => inside(*left).max(inside(*right)),
                Binary::Multiply => (inside(*left) + inside(*right)).min(64),
                Binary::ShiftLeft => match self.constant(*right) {
                    Some(by) if by < 64 => (inside(*left) + by as u32).min(64),
                    _ => 0,
                },
                _ => 0,
            },
            _ => 0,
        }
    }
}
