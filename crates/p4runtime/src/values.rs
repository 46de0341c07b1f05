//! Big-endian byte strings ("Bytestrings"). Clients may write leading zeros; reads return the
//! canonical, shortest form.

/// A value of known width: the minimum number of bytes for the width, with zero bits above it.
/// Negative numbers use two's complement of that width.
pub type Bits = Box<[u8]>;

/// Parses an unsigned byte string; `None` if it exceeds the width.
pub(crate) fn unsigned(string: &[u8], width: u32) -> Option<Bits> {
    let string = match string {
        [] => return None,
        string => &string[string.iter().take_while(|byte| **byte == 0).count()..],
    };
    let used = string.first().map_or(0, |first| 8 * string.len() as u32 - first.leading_zeros());
    (used <= width).then(|| filled(string, width, 0))
}

/// Parses a byte string in two's complement of any length; `None` if it exceeds the width.
pub(crate) fn signed(string: &[u8], width: u32) -> Option<Bits> {
    let sign = if string.first()? & 0x80 == 0 { 0 } else { 0xff };
    let rest = &string[string.iter().take_while(|byte| **byte == sign).count()..];
    // The significant bits and the sign bit.
    let used =
        rest.first().map_or(0, |first| 8 * rest.len() as u32 - (first ^ sign).leading_zeros()) + 1;
    (used <= width).then(|| cut(filled(rest, width, sign), width))
}

/// The canonical byte string of a value.
pub(crate) fn shortest(bits: &[u8]) -> Vec<u8> {
    let zeros = bits.iter().take_while(|byte| **byte == 0).count();
    bits[zeros.min(bits.len().saturating_sub(1))..].to_vec()
}

/// The canonical byte string of a signed value.
pub(crate) fn shortest_signed(bits: &[u8], width: u32) -> Vec<u8> {
    let spare = (8 * bits.len() as u32).wrapping_sub(width);
    if spare > 7 {
        return shortest(bits); // Not of this width.
    }
    let negative = bits.first().is_some_and(|first| first >> (7 - spare) & 1 == 1);
    let sign = if negative { 0xff } else { 0 };
    let mut whole = bits.to_vec();
    if negative && let Some(first) = whole.first_mut() {
        *first |= !(0xff_u32 >> spare) as u8;
    }
    let same = |at: usize| {
        whole[at] == sign && whole.get(at + 1).is_some_and(|next| next & 0x80 == sign & 0x80)
    };
    let skipped = (0..whole.len()).take_while(|at| same(*at)).count();
    whole[skipped..].to_vec()
}

/// All bits one.
pub(crate) fn ones(width: u32) -> Bits {
    cut(filled(&[], width, 0xff), width)
}

/// Zero.
pub(crate) fn zero(width: u32) -> Bits {
    filled(&[], width, 0)
}

/// Prefix mask of this length.
pub(crate) fn prefix(length: u32, width: u32) -> Bits {
    let mut mask = ones(width);
    for bit in 0..width.saturating_sub(length) {
        let at = mask.len() - 1 - (bit / 8) as usize;
        mask[at] &= !(1 << (bit % 8));
    }
    mask
}

/// Returns true if the value has bits outside the mask.
pub(crate) fn is_outside(value: &[u8], mask: &[u8]) -> bool {
    value.iter().zip(mask).any(|(value, mask)| value & !mask != 0)
}

/// Extends or truncates a string to the width, padding on the left.
fn filled(string: &[u8], width: u32, with: u8) -> Bits {
    let bytes = width.div_ceil(8) as usize;
    let mut bits = vec![with; bytes];
    let kept = string.len().min(bytes);
    bits[bytes - kept..].copy_from_slice(&string[string.len() - kept..]);
    bits.into()
}

/// Clears the bits above the width.
fn cut(mut bits: Bits, width: u32) -> Bits {
    let spare = 8 * bits.len() as u32 - width;
    if let Some(first) = bits.first_mut() {
        *first &= (0xff_u32 >> spare) as u8;
    }
    bits
}

/// An action with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Action id.
    pub action: u32,
    /// Arguments in p4info order.
    pub arguments: Vec<Bits>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of valid and invalid strings in the specification.
    #[test]
    fn strings_are_read_as_the_specification_says() {
        let is = |width, string: &[u8], value: &[u8]| {
            assert_eq!(unsigned(string, width).as_deref(), Some(value), "bit<{width}> {string:x?}");
        };
        is(8, b"\x63", b"\x63");
        is(16, b"\x00\x63", b"\x00\x63");
        is(16, b"\x63", b"\x00\x63");
        is(16, b"\x00\x30\x64", b"\x30\x64");
        is(12, b"\x00\x00\x63", b"\x00\x63");
        is(1, b"\x00\x00\x00\x01", b"\x01");
        for (width, string) in [
            (8, &b"\x01\x63"[..]),
            (8, b""),
            (16, b"\x01\x00\x63"),
            (12, b"\x10\x63"),
            (12, b"\x00\x40\x63"),
        ] {
            assert_eq!(unsigned(string, width), None, "bit<{width}> {string:x?}");
        }
    }

    #[test]
    fn numbers_with_a_sign_are_read_and_written() {
        for (width, string, value, shortest) in [
            (8, &b"\x63"[..], &b"\x63"[..], &b"\x63"[..]),
            (8, b"\x9d", b"\x9d", b"\x9d"),
            (8, b"\xff\x9d", b"\x9d", b"\x9d"),
            (12, b"\xfd\x1d", b"\x0d\x1d", b"\xfd\x1d"),
            (16, b"\x00\x00", b"\x00\x00", b"\x00"),
            (16, b"\xff", b"\xff\xff", b"\xff"),
            (1, b"\xff\xff", b"\x01", b"\xff"),
            (9, b"\x00\x80", b"\x00\x80", b"\x00\x80"),
        ] {
            let bits = signed(string, width);
            assert_eq!(bits.as_deref(), Some(value), "int<{width}> {string:x?}");
            assert_eq!(shortest_signed(value, width), shortest, "int<{width}> {value:x?}");
        }
        for (width, string) in [(8, &b"\x00\x9d"[..]), (12, b"\x8d\x1d"), (16, b""), (1, b"\x01")] {
            assert_eq!(signed(string, width), None, "int<{width}> {string:x?}");
        }
    }

    #[test]
    fn values_are_written_in_the_shortest_form() {
        assert_eq!(shortest(b"\x00\x00\x63"), b"\x63");
        assert_eq!(shortest(b"\x00\x00"), b"\x00");
        assert_eq!(&*ones(12), b"\x0f\xff");
        assert_eq!(&*prefix(5, 12), b"\x0f\x80");
        assert_eq!(&*prefix(0, 9), b"\x00\x00");
        assert!(is_outside(b"\x01", b"\xf0") && !is_outside(b"\x10", b"\xf0"));
    }
}
