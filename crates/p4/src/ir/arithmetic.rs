//! Semantics of operators (P4_16 specification, sections 8.5 to 8.11).

use num_bigint::BigInt;
use num_traits::{One, Signed, ToPrimitive, Zero};
use p4_syntax::ast::{Binary, Unary};

use super::types::Type;
use super::value::Value;

/// Maximum width in bits of an arbitrary-precision number.
const MAX_BITS: u64 = 65_536;

/// The reason why an operation has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undefined {
    /// Division by zero.
    DivisionByZero,
    /// Division of, or by, a negative number.
    NegativeDivision,
    /// Shift by a negative number.
    NegativeShift,
    /// The result has too many bits for the compiler.
    TooLarge,
    /// The operator does not apply to these types.
    Types,
}

/// Wraps a number to its type: modulo 2^W, and in two's complement if it is signed.
pub fn wrap(value: BigInt, of: &Type) -> BigInt {
    let Type::Bits { width, signed } = of else { return value };
    let low = value & mask(*width);
    if *signed && *width > 0 && low.bit(u64::from(*width - 1)) {
        low - (BigInt::one() << width)
    } else {
        low
    }
}

/// Returns a mask of `width` ones.
pub fn mask(width: u32) -> BigInt {
    (BigInt::one() << width) - 1
}

/// Returns the minimum and maximum of a type; None if it is unbounded.
pub fn range(of: &Type) -> Option<(BigInt, BigInt)> {
    match of {
        Type::Bits { width, signed: false } => Some((BigInt::zero(), mask(*width))),
        Type::Bits { width, signed: true } => {
            let half = BigInt::one() << width.saturating_sub(1);
            Some((-half.clone(), half - 1))
        }
        _ => None,
    }
}

/// Evaluates `operator value`; `of` is the type of the value.
///
/// # Errors
///
/// If the operator does not apply to this type.
pub fn unary(operator: Unary, value: &Value, of: &Type) -> Result<Value, Undefined> {
    Ok(match (operator, value) {
        (Unary::Not, Value::Bool(value)) => Value::Bool(!value),
        (Unary::Complement, Value::Integer(value)) => wrap(!value, of).into(),
        (Unary::Minus, Value::Integer(value)) => wrap(-value, of).into(),
        (Unary::Plus, Value::Integer(value)) => value.clone().into(),
        _ => return Err(Undefined::Types),
    })
}

/// Evaluates `left operator right`, each with its type.
///
/// # Errors
///
/// If the operation has no result for these operands.
pub fn binary(
    operator: Binary,
    (left, left_of): (&Value, &Type),
    (right, right_of): (&Value, &Type),
) -> Result<Value, Undefined> {
    match (operator, left, right) {
        (Binary::Equal, ..) => Ok(equal(left, right).into()),
        (Binary::NotEqual, ..) => Ok((!equal(left, right)).into()),
        (Binary::LogicalAnd, Value::Bool(left), Value::Bool(right)) => Ok((*left && *right).into()),
        (Binary::LogicalOr, Value::Bool(left), Value::Bool(right)) => Ok((*left || *right).into()),
        (_, Value::Integer(left), Value::Integer(right)) => {
            numbers(operator, (left, left_of), (right, right_of))
        }
        _ => Err(Undefined::Types),
    }
}

fn numbers(
    operator: Binary,
    (left, of): (&BigInt, &Type),
    (right, right_of): (&BigInt, &Type),
) -> Result<Value, Undefined> {
    let result = match operator {
        Binary::Less => return Ok((left < right).into()),
        Binary::LessOrEqual => return Ok((left <= right).into()),
        Binary::Greater => return Ok((left > right).into()),
        Binary::GreaterOrEqual => return Ok((left >= right).into()),
        Binary::Add => left + right,
        Binary::Subtract => left - right,
        Binary::Multiply => left * right,
        Binary::Divide | Binary::Modulo if right.is_zero() => {
            return Err(Undefined::DivisionByZero);
        }
        Binary::Divide | Binary::Modulo if left.is_negative() || right.is_negative() => {
            return Err(Undefined::NegativeDivision);
        }
        Binary::Divide => left / right,
        Binary::Modulo => left % right,
        Binary::AddSaturating => saturate(left + right, of),
        Binary::SubtractSaturating => saturate(left - right, of),
        Binary::And => left & right,
        Binary::Or => left | right,
        Binary::Xor => left ^ right,
        Binary::ShiftLeft | Binary::ShiftRight => shift(operator, left, right, of)?,
        Binary::Concatenate => return concatenate((left, of), (right, right_of)),
        _ => return Err(Undefined::Types),
    };
    if result.bits() > MAX_BITS {
        return Err(Undefined::TooLarge);
    }
    Ok(wrap(result, of).into())
}

/// Clamps a number to the range of its type.
fn saturate(value: BigInt, of: &Type) -> BigInt {
    match range(of) {
        Some((least, greatest)) => value.clamp(least, greatest),
        None => value,
    }
}

fn shift(operator: Binary, left: &BigInt, by: &BigInt, of: &Type) -> Result<BigInt, Undefined> {
    if by.is_negative() {
        return Err(Undefined::NegativeShift);
    }
    let most = match of {
        Type::Bits { width, .. } => u64::from(*width),
        _ => MAX_BITS,
    };
    let by = match by.to_u64() {
        Some(by) if by <= most => by,
        _ if operator == Binary::ShiftRight || of.is_bits() => most.max(left.bits()),
        _ => return Err(Undefined::TooLarge),
    };
    // A right shift rounds down, so a negative number keeps its sign.
    Ok(if operator == Binary::ShiftLeft { left << by } else { left >> by })
}

fn concatenate(
    (left, left_of): (&BigInt, &Type),
    (right, right_of): (&BigInt, &Type),
) -> Result<Value, Undefined> {
    let (Type::Bits { width, signed }, Type::Bits { width: low, .. }) = (left_of, right_of) else {
        return Err(Undefined::Types);
    };
    let joined = (left << *low) | (right & mask(*low));
    Ok(wrap(joined, &Type::Bits { width: width + low, signed: *signed }).into())
}

/// Returns `value[high:low]`.
pub fn slice(value: &BigInt, high: u32, low: u32) -> BigInt {
    (value >> low) & mask(high - low + 1)
}

/// Replaces bits `[high:low]` of a value of type `of` by `part`.
pub fn with_slice(value: &BigInt, (high, low): (u32, u32), part: &BigInt, of: &Type) -> BigInt {
    let hole = mask(high - low + 1) << low;
    let rest = value - (value & &hole);
    wrap(rest + ((part & mask(high - low + 1)) << low), of)
}

/// Evaluates `(to) value`. Serializable enumerations are already represented as numbers.
pub fn cast(value: &Value, to: &Type) -> Value {
    match (value, to) {
        (Value::Bool(value), Type::Bits { .. }) => BigInt::from(u8::from(*value)).into(),
        (Value::Integer(value), Type::Bool) => (!value.is_zero()).into(),
        (Value::Integer(value), Type::Bits { .. }) => wrap(value.clone(), to).into(),
        _ => value.clone(),
    }
}

/// Returns true if the values are equal. Invalid headers are equal, regardless of their fields.
pub fn equal(left: &Value, right: &Value) -> bool {
    let all = |left: &[Value], right: &[Value]| {
        left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
    };
    match (left, right) {
        (Value::Record { valid, fields }, Value::Record { valid: other, fields: others }) => {
            valid == other && (!valid || all(fields, others))
        }
        (Value::Stack { elements, .. }, Value::Stack { elements: others, .. }) => {
            all(elements, others)
        }
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const U8: Type = Type::bit(8);
    const S8: Type = Type::Bits { width: 8, signed: true };

    fn number(value: i64) -> Value {
        BigInt::from(value).into()
    }

    fn gives(operator: Binary, of: &Type, left: i64, right: i64) -> Result<i64, Undefined> {
        match binary(operator, (&number(left), of), (&number(right), of))? {
            Value::Integer(value) => Ok(value.to_i64().unwrap()),
            Value::Bool(value) => Ok(i64::from(value)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn numbers_wrap_and_saturate_by_width_and_sign() {
        use Binary as B;
        for (operator, of, left, right, result) in [
            (B::Add, &U8, 250, 10, 4),
            (B::Add, &S8, 127, 1, -128),
            (B::Subtract, &U8, 1, 2, 255),
            (B::Subtract, &S8, -128, 1, 127),
            (B::Multiply, &U8, 16, 17, 16),
            (B::Multiply, &S8, -128, -1, -128),
            (B::AddSaturating, &U8, 250, 10, 255),
            (B::AddSaturating, &S8, 100, 100, 127),
            (B::SubtractSaturating, &U8, 1, 2, 0),
            (B::SubtractSaturating, &S8, -100, 100, -128),
            (B::ShiftLeft, &U8, 0x81, 1, 2),
            (B::ShiftLeft, &S8, 0x41, 1, -126),
            (B::ShiftLeft, &U8, 1, 8, 0),
            (B::ShiftRight, &U8, 0x81, 1, 0x40),
            (B::ShiftRight, &S8, -127, 1, -64),
            (B::ShiftRight, &S8, -1, 100, -1),
            (B::ShiftRight, &U8, 255, 100, 0),
            (B::And, &S8, -1, 0x0f, 0x0f),
            (B::Xor, &S8, -1, 0x0f, -16),
            (B::Divide, &U8, 255, 16, 15),
            (B::Modulo, &U8, 255, 16, 15),
            (B::Less, &S8, -1, 0, 1),
            (B::GreaterOrEqual, &U8, 3, 3, 1),
            (B::Add, &Type::Integer, 250, 10, 260),
            (B::Equal, &U8, 3, 3, 1),
            (B::NotEqual, &U8, 3, 3, 0),
        ] {
            assert_eq!(gives(operator, of, left, right), Ok(result), "{left} {operator:?} {right}");
        }
        // The bits of the left operand come first, and it determines the sign.
        assert_eq!(gives(B::Concatenate, &S8, -1, 1), Ok(-255));
        assert_eq!(gives(B::Concatenate, &U8, 1, 255), Ok(511));
    }

    #[test]
    fn operations_without_a_result_are_refused() {
        use Binary as B;
        for (operator, left, right, why) in [
            (B::Divide, 1, 0, Undefined::DivisionByZero),
            (B::Modulo, 1, 0, Undefined::DivisionByZero),
            (B::Divide, -1, 2, Undefined::NegativeDivision),
            (B::ShiftLeft, 1, -1, Undefined::NegativeShift),
            (B::ShiftLeft, 1, 70_000, Undefined::TooLarge),
            (B::LogicalAnd, 1, 1, Undefined::Types),
            (B::Concatenate, 1, 1, Undefined::Types),
        ] {
            assert_eq!(gives(operator, &Type::Integer, left, right), Err(why), "{operator:?}");
        }
    }

    #[test]
    fn one_value_is_turned_cut_and_cast() {
        assert_eq!(unary(Unary::Complement, &number(1), &U8), Ok(number(254)));
        assert_eq!(unary(Unary::Minus, &number(-128), &S8), Ok(number(-128)));
        assert_eq!(unary(Unary::Plus, &number(3), &U8), Ok(number(3)));
        assert_eq!(unary(Unary::Not, &true.into(), &Type::Bool), Ok(false.into()));
        assert_eq!(unary(Unary::Not, &number(1), &U8), Err(Undefined::Types));
        assert_eq!(cast(&number(-1), &U8), number(255));
        assert_eq!(cast(&number(255), &S8), number(-1));
        assert_eq!(cast(&true.into(), &Type::bit(1)), number(1));
        assert_eq!(cast(&number(1), &Type::Bool), true.into());
        assert_eq!(slice(&0xabcd.into(), 11, 4), 0xbc.into());
        assert_eq!(slice(&(-1).into(), 6, 0), 0x7f.into());
        let with =
            |value: i64, at, part: i64, of: &Type| with_slice(&value.into(), at, &part.into(), of);
        assert_eq!(with(0xab, (3, 0), 0xc, &U8), 0xac.into());
        assert_eq!(with(-1, (7, 4), 0, &S8), 0x0f.into());
        assert_eq!(with(0, (7, 7), 1, &S8), (-128).into());
    }

    #[test]
    fn headers_that_are_not_valid_are_equal() {
        let header = |valid, field| Value::Record { valid, fields: vec![number(field)] };
        assert!(equal(&header(false, 1), &header(false, 2)));
        assert!(!equal(&header(true, 1), &header(true, 2)));
        assert!(!equal(&header(true, 1), &header(false, 1)));
        let stack = |next, field| Value::Stack { next, elements: vec![header(true, field)] };
        assert!(equal(&stack(0, 1), &stack(1, 1)));
    }
}
