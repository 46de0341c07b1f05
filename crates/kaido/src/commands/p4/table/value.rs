//! Values of fields in the syntax of the command line.

use std::net::{Ipv4Addr, Ipv6Addr};

use num_bigint::BigUint;

/// Returns the number in as many bytes as the width needs.
pub(super) fn bytes(number: &BigUint, width: u32) -> Vec<u8> {
    let digits = number.to_bytes_be();
    let size = width.div_ceil(8) as usize;
    let mut bytes = vec![0; size.saturating_sub(digits.len())];
    bytes.extend(digits);
    bytes
}

/// Returns a mask with `length` leading ones.
pub(super) fn prefix(length: u32, width: u32) -> BigUint {
    let ones = |bits: u32| (BigUint::from(1_u8) << bits) - 1_u8;
    ones(width) - ones(width.saturating_sub(length))
}

/// Maximum length of a number: a value of 2048 bits (the widest of P4's types here) in binary digits,
/// with its prefix and some zeros.
const MAX_DIGITS: usize = 4096;

/// Returns the first characters of a long word, for messages.
pub(super) fn short(word: &str) -> String {
    /// Maximum number of characters.
    const SHOWN: usize = 64;
    match word.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &word[..end]),
        None => word.to_owned(),
    }
}

/// Parses a value of `width` bits.
pub(super) fn parse(text: &str, width: u32) -> Result<BigUint, String> {
    let does_not_fit = || format!("`{}` does not fit: {}", short(text), expected(width));
    // Conversion from decimal digits takes quadratic time. A digit has at least one bit, except leading
    // zeros.
    if text.len() > MAX_DIGITS {
        return Err(does_not_fit());
    }
    let number = number(text, width)
        .ok_or_else(|| format!("`{}` is not a valid value: {}", short(text), expected(width)))?;
    if number.bits() > u64::from(width) { Err(does_not_fit()) } else { Ok(number) }
}

/// Parses a number or an address. An address of another width is an error.
fn number(text: &str, width: u32) -> Option<BigUint> {
    match text {
        "true" => return Some(BigUint::from(1_u8)),
        "false" => return Some(BigUint::ZERO),
        _ => {}
    }
    if text.contains(['.', ':']) {
        return match width {
            32 => text.parse::<Ipv4Addr>().ok().map(|address| u32::from(address).into()),
            48 => hardware(text),
            128 => text.parse::<Ipv6Addr>().ok().map(|address| u128::from(address).into()),
            _ => None,
        };
    }
    let (digits, radix) = match text.get(..2) {
        Some("0x" | "0X") => (&text[2..], 16),
        Some("0b" | "0B") => (&text[2..], 2),
        _ => (text, 10),
    };
    // Reject `+1` and `1__2`, which BigUint would accept.
    let is_digits = digits.chars().all(|c| c.is_digit(radix)) && !digits.is_empty();
    if is_digits { BigUint::parse_bytes(digits.as_bytes(), radix) } else { None }
}

/// Parses an Ethernet address.
fn hardware(text: &str) -> Option<BigUint> {
    let parts: Vec<&str> = text.split(':').collect();
    let part = |part: &&str| {
        let fits = (1..=2).contains(&part.len());
        u8::from_str_radix(part, 16).ok().filter(|_| fits && !part.starts_with('+'))
    };
    let bytes: Vec<u8> = parts.iter().map(part).collect::<Option<_>>()?;
    (bytes.len() == 6).then(|| BigUint::from_bytes_be(&bytes))
}

/// Describes the valid values of this width.
fn expected(width: u32) -> String {
    let bits = if width == 1 { "1 bit".to_owned() } else { format!("{width} bits") };
    let forms = match width {
        1 => ", `true` or `false`",
        32 => " (also as 10.0.0.1)",
        48 => " (also as 02:00:00:00:00:01)",
        128 => " (also as 2001:db8::1)",
        _ => "",
    };
    match width {
        0..=64 => {
            let most = (BigUint::from(1_u8) << width) - 1_u8;
            format!("{bits} are expected, 0 to {most}{forms}")
        }
        _ => format!("{bits} are expected{forms}"),
    }
}

/// Prefixes and suffixes of the last part of a name that suggest an IPv4 address.
const ADDRESSES: [&str; 9] =
    ["addr", "ip", "src", "dst", "source", "destination", "saddr", "daddr", "hop"];

/// Formats the value of a field with this name: addresses as addresses, small numbers as decimals.
pub(super) fn show(value: &[u8], width: u32, name: &str) -> String {
    let number = BigUint::from_bytes_be(value);
    let last = name.rsplit('.').next().unwrap_or(name).to_lowercase();
    let is_address = ADDRESSES.iter().any(|one| last.starts_with(one) || last.ends_with(one));
    let whole = bytes(&number, width);
    match (width, &whole[..]) {
        (128, all) if all.len() == 16 => {
            let bits = all.iter().fold(0, |bits: u128, byte| bits << 8 | u128::from(*byte));
            Ipv6Addr::from(bits).to_string()
        }
        (48, all) => {
            let parts: Vec<_> = all.iter().map(|byte| format!("{byte:02x}")).collect();
            parts.join(":")
        }
        (32, [a, b, c, d]) if is_address => Ipv4Addr::new(*a, *b, *c, *d).to_string(),
        (0..=64, _) => number.to_string(),
        _ => format!("{number:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_are_refused() {
        let text = "9".repeat(20_000_000);
        let error = parse(&text, 32).unwrap_err();
        assert!(error.len() < 200 && error.contains("999...` does not fit"), "{error}");
        assert_eq!(parse(&format!("{}7", "0".repeat(100)), 32), Ok(BigUint::from(7_u8)));
    }

    #[test]
    fn values_are_read_and_shown() {
        for (text, width, shown) in [
            ("10.0.0.1", 32, "10.0.0.1"),
            ("0x0a000001", 32, "10.0.0.1"),
            ("2001:db8::1", 128, "2001:db8::1"),
            ("02:00:00:00:00:0a", 48, "02:00:00:00:00:0a"),
            ("0b101", 3, "5"),
            ("443", 16, "443"),
            ("true", 1, "1"),
            ("0x10000000000000000", 65, "0x10000000000000000"),
        ] {
            let number = parse(text, width).unwrap();
            assert_eq!(show(&bytes(&number, width), width, "ipv4.dst"), shown, "{text}");
        }
        assert_eq!(show(&[0, 0, 1, 0], 32, "teid"), "256");
        for (text, width, why) in [
            ("256", 8, "0 to 255"),
            ("10.0.0.1", 16, "not a valid value"),
            ("::1", 32, "also as 10.0.0.1"),
            ("00:00:0a:00:00:01", 32, "also as 10.0.0.1"),
            ("10.0.0.1", 48, "also as 02:"),
            ("10.0.0.1", 128, "also as 2001:"),
            ("ten", 32, "also as 10.0.0.1"),
            ("0x", 8, "not a valid value"),
            ("+1", 8, "not a valid value"),
            ("1:2:3:4:5:g", 48, "also as 02:"),
            ("", 8, "not a valid value"),
        ] {
            let error = parse(text, width).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert_eq!(prefix(8, 32), BigUint::from(0xff00_0000_u32));
        assert_eq!(prefix(0, 32), BigUint::ZERO);
    }
}
