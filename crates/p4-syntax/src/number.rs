//! Integer literals (P4_16 specification, section 6.3.3.2).

use num_bigint::BigInt;
use num_traits::Num;

/// An integer literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integer {
    /// The value. Signed literals in a base other than ten are two's complement: `8s0xff` is -1.
    pub value: BigInt,
    /// The width in bits and the signedness; None for arbitrary precision.
    pub width: Option<(u32, bool)>,
}

/// Maximum width of a literal in bits.
pub const MAX_WIDTH: u32 = 65_536;

/// The reason why a text is not a valid literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadInteger {
    /// A character that is not a digit of the base.
    Digit(char),
    /// No digits.
    Empty,
    /// A missing width, or one that is too large.
    Width,
    /// The value does not fit into the width. Holds the number of bits that it needs.
    TooLarge(u64),
}

/// Parses an optional width `[0-9]+[ws]`, an optional base `0x`, `0o`, `0b` or `0d`, and digits
/// with optional `_`.
///
/// # Errors
///
/// If the text is not a valid literal.
pub fn parse(text: &str) -> Result<Integer, BadInteger> {
    let (width, digits) = match text.find(|c: char| !c.is_ascii_digit()) {
        Some(at) if matches!(&text[at..=at], "w" | "s") => {
            let signed = &text[at..=at] == "s";
            let bits: u32 = text[..at].parse().map_err(|_| BadInteger::Width)?;
            if bits > MAX_WIDTH || (signed && bits == 0) {
                return Err(BadInteger::Width);
            }
            (Some((bits, signed)), &text[at + 1..])
        }
        _ => (None, text),
    };
    let lower = digits.get(..2).unwrap_or("").to_ascii_lowercase();
    let (base, digits) = match lower.as_str() {
        "0x" => (16, &digits[2..]),
        "0o" => (8, &digits[2..]),
        "0b" => (2, &digits[2..]),
        "0d" => (10, &digits[2..]),
        _ => (10, digits),
    };
    let digits: String = digits.chars().filter(|&c| c != '_').collect();
    if let Some(odd) = digits.chars().find(|c| !c.is_digit(base)) {
        return Err(BadInteger::Digit(odd));
    }
    // Converting decimal digits takes quadratic time.
    if digits.len() > MAX_WIDTH as usize {
        return Err(BadInteger::TooLarge(digits.len() as u64));
    }
    let value = BigInt::from_str_radix(&digits, base).map_err(|_| BadInteger::Empty)?;
    let Some((bits, signed)) = width else { return Ok(Integer { value, width }) };
    if value.bits() <= u64::from(bits - u32::from(signed)) {
        return Ok(Integer { value, width });
    }
    // The minimum of a signed type can only be written as a negation: `-8s128`.
    let is_least = value == BigInt::from(1) << (bits - u32::from(signed));
    if signed && value.bits() <= u64::from(bits) && (base != 10 || is_least) {
        return Ok(Integer { value: value - (BigInt::from(1) << bits), width });
    }
    Err(BadInteger::TooLarge(value.bits() + u64::from(signed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_read() {
        let is = |text, value: i64, width| {
            assert_eq!(parse(text), Ok(Integer { value: value.into(), width }), "{text}");
        };
        is("10", 10, None);
        is("8w10", 10, Some((8, false)));
        is("8s127", 127, Some((8, true)));
        is("0xF_f", 255, None);
        is("2w0B11", 3, Some((2, false)));
        is("16w0o17", 15, Some((16, false)));
        is("0d19", 19, None);
        is("08", 8, None);
        is("0w0", 0, Some((0, false)));
        is("4w0b0___1", 1, Some((4, false)));
        is("8s0b1010_1010", -86, Some((8, true)));
        is("8s0x80", -128, Some((8, true)));
        is("8s128", -128, Some((8, true)));
        is("1s1", -1, Some((1, true)));
        let wide = parse("128w0xffffffffffffffffffffffffffffffff").unwrap();
        assert_eq!(wide.value, (BigInt::from(1) << 128) - 1);
    }

    #[test]
    fn others_are_not() {
        for (text, why) in [
            ("12a", BadInteger::Digit('a')),
            ("0b12", BadInteger::Digit('2')),
            ("0x", BadInteger::Empty),
            ("8w", BadInteger::Empty),
            ("0s0", BadInteger::Width),
            ("99999w1", BadInteger::Width),
            ("99999999999w1", BadInteger::Width),
            ("8w256", BadInteger::TooLarge(9)),
            ("8s129", BadInteger::TooLarge(9)),
            ("8s0x100", BadInteger::TooLarge(10)),
        ] {
            assert_eq!(parse(text), Err(why), "{text}");
        }
    }
}
