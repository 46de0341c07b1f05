//! Numbers of any width as 64-bit limbs, least significant first (P4_16 specification, sections 8.5
//! to 8.11). Bits above the width of a number are 0, also in signed numbers.

use num_bigint::{BigInt, Sign};
use num_traits::One;

use crate::flat::build::Builder;
use crate::flat::shape::{limb_bits, limbs, ones};
use crate::flat::{Binary, Compare, Op, ValueId};

/// Limbs of a number.
pub(super) type Number = Vec<ValueId>;

impl Builder {
    /// Returns a constant, modulo 2 to the power of `width`.
    pub(super) fn number(&mut self, value: &BigInt, width: u32) -> Number {
        let modulus = BigInt::one() << width;
        let wrapped = ((value % &modulus) + &modulus) % &modulus;
        debug_assert_ne!(wrapped.sign(), Sign::Minus);
        let digits = wrapped.to_u64_digits().1;
        let at = |at: u32| digits.get(at as usize).copied().unwrap_or(0);
        (0..limbs(width)).map(|one| self.constant(at(one))).collect()
    }

    pub(super) fn zeros(&mut self, width: u32) -> Number {
        (0..limbs(width)).map(|_| self.constant(0)).collect()
    }

    /// Returns the lowest `width` bits of a 64-bit value.
    pub(super) fn low(&mut self, of: ValueId, width: u32) -> ValueId {
        self.by(Binary::And, of, ones(width))
    }

    /// Clears the bits above the width of a number.
    fn trimmed(&mut self, mut of: Number, width: u32) -> Number {
        of.truncate(limbs(width) as usize);
        if let Some(last) = of.last_mut() {
            *last = self.low(*last, limb_bits(width, limbs(width) - 1));
        }
        of
    }

    /// Sign-extends a limb of `width` bits to 64 bits.
    pub(super) fn sign_extended(&mut self, limb: ValueId, width: u32) -> ValueId {
        if width >= 64 {
            return limb;
        }
        let up = self.by(Binary::ShiftLeft, limb, u64::from(64 - width));
        self.by(Binary::ShiftRightSigned, up, u64::from(64 - width))
    }

    /// Returns limb `at` of a number, with sign or zero extension above its width.
    fn limb(&mut self, of: &Number, width: u32, signed: bool, at: u32) -> ValueId {
        let count = limbs(width);
        match at.cmp(&(count.saturating_sub(1))) {
            _ if count == 0 => self.constant(0),
            std::cmp::Ordering::Less => of[at as usize],
            std::cmp::Ordering::Equal if signed => {
                self.sign_extended(of[at as usize], limb_bits(width, at))
            }
            std::cmp::Ordering::Equal => of[at as usize],
            std::cmp::Ordering::Greater if signed => {
                let top = limb_bits(width, count - 1);
                let top = self.sign_extended(of[count as usize - 1], top);
                self.by(Binary::ShiftRightSigned, top, 63)
            }
            std::cmp::Ordering::Greater => self.constant(0),
        }
    }

    /// Converts a number to another width.
    pub(super) fn resized(&mut self, of: &Number, from: u32, signed: bool, to: u32) -> Number {
        let all = (0..limbs(to)).map(|at| self.limb(of, from, signed, at)).collect();
        self.trimmed(all, to)
    }

    /// `of[low + width - 1 : low]`
    pub(super) fn slice(&mut self, of: &Number, low: u32, width: u32) -> Number {
        let (skip, shift) = ((low / 64) as usize, u64::from(low % 64));
        let mut all = Vec::with_capacity(limbs(width) as usize);
        for at in 0..limbs(width) as usize {
            let lower = of.get(skip + at).copied();
            let Some(lower) = lower else {
                all.push(self.constant(0));
                continue;
            };
            let mut limb = self.by(Binary::ShiftRight, lower, shift);
            if shift > 0
                && let Some(upper) = of.get(skip + at + 1)
            {
                let upper = self.by(Binary::ShiftLeft, *upper, 64 - shift);
                limb = self.binary(Binary::Or, limb, upper);
            }
            all.push(limb);
        }
        self.trimmed(all, width)
    }

    /// Shifts a number left by a constant and truncates it to a width.
    pub(super) fn moved_up(&mut self, of: &Number, by: u32, width: u32) -> Number {
        let (skip, shift) = ((by / 64) as usize, u64::from(by % 64));
        let mut all = Vec::with_capacity(limbs(width) as usize);
        for at in 0..limbs(width) as usize {
            let mut limb = self.constant(0);
            if let Some(lower) = at.checked_sub(skip).and_then(|at| of.get(at)) {
                limb = self.by(Binary::ShiftLeft, *lower, shift);
            }
            if shift > 0
                && let Some(below) = at.checked_sub(skip + 1).and_then(|at| of.get(at))
            {
                let below = self.by(Binary::ShiftRight, *below, 64 - shift);
                limb = self.binary(Binary::Or, limb, below);
            }
            all.push(limb);
        }
        self.trimmed(all, width)
    }

    /// Returns the number with the bits `[low + bits - 1 : low]` replaced by `part`.
    pub(super) fn with_slice(
        &mut self,
        of: &Number,
        width: u32,
        (low, bits): (u32, u32),
        part: &Number,
    ) -> Number {
        let hole = ((BigInt::one() << bits) - 1) << low;
        let keep = (BigInt::one() << width) - 1 - hole;
        let keep = self.number(&keep, width);
        let kept = self.bitwise(Binary::And, of, &keep);
        let part = self.moved_up(part, low, width);
        self.bitwise(Binary::Or, &kept, &part)
    }

    /// `left ++ right`
    pub(super) fn concatenated(
        &mut self,
        left: &Number,
        right: &Number,
        (left_width, right_width): (u32, u32),
    ) -> Number {
        let width = left_width + right_width;
        let left = self.moved_up(left, right_width, width);
        let right = self.resized(right, right_width, false, width);
        self.bitwise(Binary::Or, &left, &right)
    }

    pub(super) fn bitwise(&mut self, operator: Binary, left: &Number, right: &Number) -> Number {
        left.iter().zip(right).map(|(left, right)| self.binary(operator, *left, *right)).collect()
    }

    pub(super) fn complement(&mut self, of: &Number, width: u32) -> Number {
        let all = of.iter().map(|one| self.by(Binary::Xor, *one, u64::MAX)).collect();
        self.trimmed(all, width)
    }

    pub(super) fn sum(&mut self, left: &Number, right: &Number, width: u32) -> Number {
        let mut carry = self.constant(0);
        let mut all = Vec::with_capacity(left.len());
        for (at, (left, right)) in left.iter().zip(right).enumerate() {
            let sum = self.binary(Binary::Add, *left, *right);
            let whole = self.binary(Binary::Add, sum, carry);
            if at + 1 < limbs(width) as usize {
                let first = self.compare(Compare::Less, sum, *left);
                let second = self.compare(Compare::Less, whole, sum);
                carry = self.binary(Binary::Or, first, second);
            }
            all.push(whole);
        }
        self.trimmed(all, width)
    }

    pub(super) fn difference(&mut self, left: &Number, right: &Number, width: u32) -> Number {
        let mut borrow = self.constant(0);
        let mut all = Vec::with_capacity(left.len());
        for (at, (left, right)) in left.iter().zip(right).enumerate() {
            let rest = self.binary(Binary::Subtract, *left, *right);
            let whole = self.binary(Binary::Subtract, rest, borrow);
            if at + 1 < limbs(width) as usize {
                let first = self.compare(Compare::Less, *left, *right);
                let second = self.compare(Compare::Less, rest, borrow);
                borrow = self.binary(Binary::Or, first, second);
            }
            all.push(whole);
        }
        self.trimmed(all, width)
    }

    pub(super) fn negated(&mut self, of: &Number, width: u32) -> Number {
        let zeros = self.zeros(width);
        self.difference(&zeros, of, width)
    }

    pub(super) fn product(&mut self, left: &Number, right: &Number, width: u32) -> Number {
        if let ([left], [right]) = (&left[..], &right[..]) {
            let product = self.binary(Binary::Multiply, *left, *right);
            return self.trimmed(vec![product], width);
        }
        // Multiply half limbs: their products fit into one limb.
        let mut sum = self.zeros(width);
        let zero = self.constant(0);
        let rights = self.halves(right);
        for (at, left) in self.halves(left).into_iter().enumerate() {
            for (behind, right) in rights.iter().copied().enumerate() {
                let low = (at + behind) as u32 * 32;
                if low >= width || left == zero || right == zero {
                    continue;
                }
                let product = self.binary(Binary::Multiply, left, right);
                let product = self.moved_up(&vec![product], low, width);
                sum = self.sum(&sum, &product, width);
            }
        }
        sum
    }

    fn halves(&mut self, of: &Number) -> Vec<ValueId> {
        let mut all = Vec::with_capacity(of.len() * 2);
        for limb in of {
            all.push(self.low(*limb, 32));
            all.push(self.by(Binary::ShiftRight, *limb, 32));
        }
        all
    }

    pub(super) fn equal(&mut self, left: &[ValueId], right: &[ValueId]) -> ValueId {
        if let ([left], [right]) = (left, right) {
            return self.compare(Compare::Equal, *left, *right);
        }
        let mut all = self.constant(1);
        for (left, right) in left.iter().zip(right) {
            let same = self.compare(Compare::Equal, *left, *right);
            all = self.binary(Binary::And, all, same);
        }
        all
    }

    /// Returns 1 if the left number is less than the right one or, with `or_equal`, not greater.
    pub(super) fn less(
        &mut self,
        left: &Number,
        right: &Number,
        (width, signed): (u32, bool),
        or_equal: bool,
    ) -> ValueId {
        let mut result = self.constant(u64::from(or_equal));
        for at in 0..limbs(width) {
            let is_top = at + 1 == limbs(width);
            let (one, other) = if is_top && signed {
                (self.limb(left, width, true, at), self.limb(right, width, true, at))
            } else {
                (left[at as usize], right[at as usize])
            };
            let (less, or_equal_test) = if is_top && signed {
                (Compare::LessSigned, Compare::LessOrEqualSigned)
            } else {
                (Compare::Less, Compare::LessOrEqual)
            };
            if at == 0 {
                result = self.compare(if or_equal { or_equal_test } else { less }, one, other);
            } else {
                let below = self.compare(less, one, other);
                let same = self.compare(Compare::Equal, one, other);
                let lower = self.binary(Binary::And, same, result);
                result = self.binary(Binary::Or, below, lower);
            }
        }
        result
    }

    pub(super) fn choose(&mut self, condition: ValueId, yes: &[ValueId], no: &[ValueId]) -> Number {
        yes.iter().zip(no).map(|(yes, no)| self.select(condition, *yes, *no)).collect()
    }

    /// `of << by` or `of >> by`, where `by` is a constant.
    pub(super) fn shifted_by(
        &mut self,
        left_shift: bool,
        of: &Number,
        (width, signed): (u32, bool),
        by: u32,
    ) -> Number {
        match left_shift {
            true if by >= width => self.zeros(width),
            true => self.moved_up(of, by, width),
            false if by >= width && !signed => self.zeros(width),
            false => {
                // Extend by `by` bits at the top, then take the upper part.
                let by = by.min(width.saturating_sub(1));
                let wide = self.resized(of, width, signed, width + by);
                self.slice(&wide, by, width)
            }
        }
    }

    /// `of << by` or `of >> by`.
    pub(super) fn shifted(
        &mut self,
        left_shift: bool,
        of: &Number,
        (width, signed): (u32, bool),
        by: &Number,
    ) -> Number {
        // A shift count with any bit set above the lowest limb shifts out all bits.
        let mut far = self.constant(0);
        for upper in by.iter().skip(1) {
            far = self.binary(Binary::Or, far, *upper);
        }
        let zero = self.constant(0);
        let far = self.compare(Compare::NotEqual, far, zero);
        let Some(&by) = by.first() else { return of.clone() };
        let most = self.constant(u64::from(width));
        let beyond = self.compare(Compare::LessOrEqual, most, by);
        let out = self.binary(Binary::Or, far, beyond);
        let gone = if signed && !left_shift {
            self.shifted_by(false, of, (width, signed), width)
        } else {
            self.zeros(width)
        };
        let moved = match (&of[..], left_shift) {
            ([one], true) => {
                let moved = self.binary(Binary::ShiftLeft, *one, by);
                self.trimmed(vec![moved], width)
            }
            ([one], false) if signed => {
                let one = self.sign_extended(*one, width);
                let moved = self.binary(Binary::ShiftRightSigned, one, by);
                self.trimmed(vec![moved], width)
            }
            ([one], false) => vec![self.binary(Binary::ShiftRight, *one, by)],
            _ => self.shifted_stepwise(left_shift, of, (width, signed), by),
        };
        self.choose(out, &gone, &moved)
    }

    /// Shifts by 1, 2, 4 and so on, according to the bits of `by`.
    fn shifted_stepwise(
        &mut self,
        left_shift: bool,
        of: &Number,
        shape: (u32, bool),
        by: ValueId,
    ) -> Number {
        let mut all = of.clone();
        let mut step = 1;
        while step < shape.0 {
            let bit = self.by(Binary::And, by, u64::from(step));
            let moved = self.shifted_by(left_shift, &all, shape, step);
            all = self.choose(bit, &moved, &all);
            step *= 2;
        }
        all
    }

    /// `left |+| right` or `left |-| right`.
    pub(super) fn saturated(
        &mut self,
        adds: bool,
        left: &Number,
        right: &Number,
        (width, signed): (u32, bool),
    ) -> Number {
        // Two extra bits hold any result of signed numbers; one is enough for unsigned numbers.
        let wide = width + 2;
        let (one, other) =
            (self.resized(left, width, signed, wide), self.resized(right, width, signed, wide));
        let result =
            if adds { self.sum(&one, &other, wide) } else { self.difference(&one, &other, wide) };
        let one = BigInt::one();
        let (least, greatest) = if signed {
            (-(&one << (width - 1)), (&one << (width - 1)) - 1)
        } else {
            (BigInt::ZERO, (&one << width) - 1)
        };
        let (low, high) = (self.number(&least, wide), self.number(&greatest, wide));
        let below = self.less(&result, &low, (wide, true), false);
        let above = self.less(&high, &result, (wide, true), false);
        let result = self.choose(below, &low, &result);
        let result = self.choose(above, &high, &result);
        self.resized(&result, wide, false, width)
    }

    /// A packet field: `width` bits, starting `bit` bits after byte `at`.
    pub(super) fn field(&mut self, at: ValueId, bit: u32, width: u32, bytes: u32) -> Number {
        let mut all = Vec::with_capacity(limbs(width) as usize);
        // The last bits form the least significant limb.
        for limb in 0..limbs(width) {
            let bits = limb_bits(width, limb);
            let first = bit + width - limb * 64 - bits;
            all.push(self.op(Op::Field { at, bit: first, width: bits, bytes }));
        }
        all
    }
}
