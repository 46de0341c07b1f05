//! Field access in checked bytes. The views check the length first, so the indices are in range.

use crate::WireError;

/// Checks that `bytes` has at least `need` bytes.
#[inline]
pub(crate) fn need(header: &'static str, bytes: &[u8], need: usize) -> Result<(), WireError> {
    let have = bytes.len();
    if have < need { Err(WireError::Truncated { header, need, have }) } else { Ok(()) }
}

/// The length of a header's payload, if it fits the length field.
pub(crate) fn length_of(header: &'static str, payload: &[u8]) -> Result<u16, WireError> {
    let length = payload.len();
    u16::try_from(length).map_err(|_| WireError::Length { header, length })
}

/// Two bytes in network byte order.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// `N` bytes.
#[inline]
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}
