//! Headend behaviors (RFC 8986 section 5): the modes, and the SRH as it appears in the kernel's
//! attributes.
//!
//! ```text
//!  0                   1                   2                   3      RFC 8754 section 2
//! |  Next Header  |  Hdr Ext Len  | Routing Type  | Segments Left |
//! |  Last Entry   |     Flags     |              Tag              |
//! |        Segment List[0]: the last segment, 128 bits            |
//! |        ...                                                    |
//! |        TLVs                                                   |
//! ```

use std::net::Ipv6Addr;

use srv6::{EncapMode, SegmentList, Sid};

use crate::attribute::{Writer, array, each, u32_at};

// linux/seg6_iptunnel.h
const SEG6_IPTUNNEL_SRH: u16 = 1;
const MODE_INLINE: u32 = 0;
const MODE_ENCAP: u32 = 1;
const MODE_L2ENCAP: u32 = 2;
const MODE_ENCAP_RED: u32 = 3;
const MODE_L2ENCAP_RED: u32 = 4;

/// Length of the fixed part of the SRH.
const SRH: usize = 8;
const SEGMENT: usize = 16;
const ROUTING_TYPE: u8 = 4;
/// Limited by Hdr Ext Len, which counts units of 8 bytes without the first.
const MAX_SEGMENTS: usize = 127;

/// Returns the kernel's number of a mode.
fn number(mode: EncapMode) -> u32 {
    match mode {
        EncapMode::Insert => MODE_INLINE,
        EncapMode::Encaps => MODE_ENCAP,
        EncapMode::EncapsRed => MODE_ENCAP_RED,
        EncapMode::EncapsL2 => MODE_L2ENCAP,
        EncapMode::EncapsL2Red => MODE_L2ENCAP_RED,
    }
}

fn from_number(number: u32) -> Option<EncapMode> {
    Some(match number {
        MODE_INLINE => EncapMode::Insert,
        MODE_ENCAP => EncapMode::Encaps,
        MODE_ENCAP_RED => EncapMode::EncapsRed,
        MODE_L2ENCAP => EncapMode::EncapsL2,
        MODE_L2ENCAP_RED => EncapMode::EncapsL2Red,
        _ => return None,
    })
}

/// The attributes nested in RTA_ENCAP.
pub(super) fn write(mode: EncapMode, segments: &SegmentList) -> Vec<u8> {
    let mut out = Writer::default();
    if let Some(srh) = srh(segments, mode == EncapMode::Insert) {
        // struct seg6_iptunnel_encap
        let mut value = number(mode).to_ne_bytes().to_vec();
        value.extend_from_slice(&srh);
        out.put(SEG6_IPTUNNEL_SRH, &value);
    }
    out.0
}

/// Parses the attributes. None for those that [`write()`] never produces.
pub(super) fn read(attributes: &[u8]) -> Option<(EncapMode, SegmentList)> {
    let mut found = None;
    for attribute in each(attributes) {
        let attribute = attribute.ok()?;
        // Later kernels may add attributes, such as a per-route source address. A mode and a list
        // cannot express them.
        if attribute.kind() != SEG6_IPTUNNEL_SRH {
            return None;
        }
        let mode = from_number(u32_at(attribute.value(), 0).ok()?)?;
        let srh = attribute.value().get(4..)?;
        found = Some((mode, segments(srh, mode == EncapMode::Insert)?));
    }
    found
}

/// The SRH of a list; None if no SRH can hold it. The kernel rejects a route without an SRH, and
/// the caller gets that error. In an `inline` SRH the kernel writes the packet's destination into
/// the last segment, which the caller must reserve.
pub(super) fn srh(segments: &SegmentList, inline: bool) -> Option<Vec<u8>> {
    let room = inline.then_some(Ipv6Addr::UNSPECIFIED);
    let count = segments.0.len() + usize::from(inline);
    if segments.0.is_empty() || count > MAX_SEGMENTS {
        return None;
    }
    // At most 127 (MAX_SEGMENTS), so all of them fit into a byte.
    let count = count as u8;
    let mut out = vec![0, count * 2, ROUTING_TYPE, count - 1, count - 1, 0, 0, 0];
    for segment in room.into_iter().chain(segments.0.iter().rev().map(|sid| sid.0)) {
        out.extend_from_slice(&segment.octets());
    }
    Some(out)
}

/// The segment list of an SRH; None if it also has TLVs, an HMAC, flags or a tag.
pub(super) fn segments(srh: &[u8], inline: bool) -> Option<SegmentList> {
    let [_, units, kind, left, last, flags, tag @ ..] = array::<SRH>(srh, 0).ok()?;
    let count = usize::from(last) + 1;
    let clean = flags == 0 && tag == [0, 0] && kind == ROUTING_TYPE && left == last;
    let length = SRH + SEGMENT * count;
    // Bytes after the segments are TLVs.
    if !clean || srh.len() != length || (usize::from(units) + 1) * 8 != length {
        return None;
    }
    let from = if inline { SRH + SEGMENT } else { SRH };
    let mut list: Vec<Sid> = srh[from..]
        .chunks_exact(SEGMENT)
        .filter_map(|segment| array::<SEGMENT>(segment, 0).ok())
        .map(|octets| Sid(octets.into()))
        .collect();
    list.reverse();
    (!list.is_empty()).then_some(SegmentList(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODES: [EncapMode; 5] = [
        EncapMode::Insert,
        EncapMode::Encaps,
        EncapMode::EncapsRed,
        EncapMode::EncapsL2,
        EncapMode::EncapsL2Red,
    ];

    fn sids(count: u16) -> SegmentList {
        SegmentList((1..=count).map(|n| Sid([0xfd00, 0, n, 1, 0, 0, 0, 0].into())).collect())
    }

    #[test]
    fn the_last_segment_is_first_on_the_wire() {
        let bytes = srh(&sids(2), false).unwrap();
        assert_eq!(bytes[..8], [0, 4, 4, 1, 1, 0, 0, 0]);
        assert_eq!(bytes[8..16], [0xfd, 0, 0, 0, 0, 2, 0, 1]);
        assert_eq!(bytes[24..32], [0xfd, 0, 0, 0, 0, 1, 0, 1]);
        // Inline: the last segment is reserved for the packet's destination.
        let bytes = srh(&sids(1), true).unwrap();
        assert_eq!(bytes[..8], [0, 4, 4, 1, 1, 0, 0, 0]);
        assert_eq!(bytes[8..24], [0; 16]);
    }

    #[test]
    fn every_mode_and_length_is_read_back_equal() {
        for mode in MODES {
            for count in [1, 2, 10, 126] {
                let list = sids(count);
                assert_eq!(read(&write(mode, &list)), Some((mode, list)), "{mode:?}");
            }
            assert!(write(mode, &sids(0)).is_empty());
            assert!(write(mode, &sids(128)).is_empty());
        }
        assert!(srh(&sids(127), false).is_some() && srh(&sids(127), true).is_none());
    }

    #[test]
    fn an_srh_that_a_segment_list_cannot_express_is_not_read() {
        let good = srh(&sids(2), false).unwrap();
        assert!(segments(&good, false).is_some());
        // Routing type, segments left, last entry, flags (HMAC), tag.
        for (at, value) in [(2, 3), (3, 0), (4, 0), (4, 2), (5, 8), (6, 1), (7, 1)] {
            let mut bad = good.clone();
            bad[at] = value;
            assert_eq!(segments(&bad, false), None, "{at}");
        }
        // A TLV after the segments, of 8 bytes and of the length of a segment.
        for (units, tlv) in [(5, 8), (6, 16)] {
            let mut bad = good.clone();
            bad[1] = units;
            bad.resize(good.len() + tlv, 4);
            assert_eq!(segments(&bad, false), None);
        }
        for length in 0..good.len() {
            assert_eq!(segments(&good[..length], false), None, "{length}");
        }
        // Only the segment reserved for the destination.
        assert_eq!(segments(&srh(&sids(1), false).unwrap(), true), None);
        let mut unknown = write(EncapMode::Encaps, &sids(1));
        unknown[4] = 9;
        assert_eq!(read(&unknown), None);
        let mut source = Writer(write(EncapMode::Encaps, &sids(1)));
        source.put(2, &[0; 16]);
        assert_eq!(read(&source.0), None);
        assert_eq!(read(&[]), None);
    }
}
