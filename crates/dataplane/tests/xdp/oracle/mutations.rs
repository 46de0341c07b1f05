//! Valid frames, corrupted in each of the ways that an attacker would try first.

use wire::Checksum;

use super::malformed::{cases_for_one, good, in_both};
use super::node::with_node;

const ETHERNET: usize = 14;
const IPV6: usize = 40;
const SRH: usize = ETHERNET + IPV6;

/// Returns true if an SRH follows the IPv6 header.
fn has_srh(frame: &[u8]) -> bool {
    frame[12..14] == [0x86, 0xdd] && frame[20] == 43 && frame[SRH + 2] == 4
}

fn with(frame: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut frame = frame.to_vec();
    change(&mut frame);
    frame
}

/// Returns frames with invalid SRH fields: length, Segments Left and Last Entry, separately and
/// combined.
fn lies(frame: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    if !has_srh(frame) {
        return out;
    }
    for value in (0..16u8).chain([31, 62, 63, 64, 126, 127, 128, 129, 254, 255]) {
        for at in [SRH + 1, SRH + 3, SRH + 4] {
            out.push(with(frame, |frame| frame[at] = value));
        }
        // A length that matches Last Entry, and more segments than the packet has bytes for.
        out.push(with(frame, |frame| {
            (frame[SRH + 1], frame[SRH + 4]) = (value.wrapping_add(1).wrapping_mul(2), value);
        }));
        out.push(with(frame, |frame| {
            (frame[SRH + 3], frame[SRH + 4]) = (value.wrapping_add(1), value);
        }));
    }
    out
}

/// Returns frames with a second SRH after or before the first one, with the same SID.
fn nested(frame: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    if !has_srh(frame) {
        return out;
    }
    let length = 8 + 8 * usize::from(frame[SRH + 1]);
    let srh = frame[SRH..SRH + length].to_vec();
    for times in [1, 2, 5] {
        out.push(with(frame, |frame| {
            for _ in 0..times {
                let mut outer = srh.clone();
                outer[0] = 43;
                frame.splice(SRH..SRH, outer);
            }
            let payload = (frame.len() - SRH) as u16;
            frame[18..20].copy_from_slice(&payload.to_be_bytes());
        }));
    }
    out
}

/// Returns frames with one to three tags of both types after the MAC addresses, including truncated
/// ones.
fn tagged(frame: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    for tags in [
        &[0x8100_0007u32][..],
        &[0x88a8_0064],
        &[0x88a8_0064, 0x8100_0007],
        &[0x8100_0064, 0x8100_0007],
        &[0x8100_0064, 0x8100_0007, 0x8100_0009],
        &[0x8100_0000],
        &[0x8100_ffff, 0x8100_ffff],
    ] {
        let bytes: Vec<u8> = tags.iter().flat_map(|tag| tag.to_be_bytes()).collect();
        let whole = with(frame, |frame| {
            frame.splice(12..12, bytes.clone());
        });
        out.extend((14..14 + bytes.len() + 4).map(|length| whole[..length].to_vec()));
        out.push(whole);
    }
    out
}

/// Returns mutations of IPv4: options, all kinds of fragments, wrong lengths. The checksum is
/// correct.
fn of_ipv4(frame: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    if frame[12..14] != [8, 0] {
        return out;
    }
    let sealed = |change: &dyn Fn(&mut Vec<u8>)| {
        with(frame, |frame| {
            change(frame);
            let header = (usize::from(frame[14] & 0xf) * 4).max(20).min(frame.len() - 14);
            frame[24..26].fill(0);
            let sum = Checksum::default().with(&frame[14..14 + header]).finish();
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        })
    };
    for words in 1..=10 {
        for byte in [0, 1, 7, 0x83, 0x94, 0xff] {
            out.push(sealed(&|frame| {
                frame.splice(34..34, vec![byte; 4 * words]);
                frame[14] = 0x45 + words as u8;
                let total = (frame.len() - 14) as u16;
                frame[16..18].copy_from_slice(&total.to_be_bytes());
            }));
        }
    }
    for fragment in [0x2000u16, 0x2001, 1, 0x1fff, 0x8000, 0x6000, 0xffff] {
        out.push(sealed(&|frame| frame[20..22].copy_from_slice(&fragment.to_be_bytes())));
    }
    for total in [0u16, 1, 19, 20, 21, 0xffff] {
        out.push(sealed(&|frame| frame[16..18].copy_from_slice(&total.to_be_bytes())));
    }
    for length in 0..16 {
        out.push(sealed(&|frame| frame[14] = 0x40 | length));
        out.push(sealed(&|frame| frame[14] = length << 4 | 5));
    }
    out
}

/// Returns mutations of IPv6: wrong lengths, wrong versions, and a fragment header before the
/// payload.
fn of_ipv6(frame: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    if frame[12..14] != [0x86, 0xdd] {
        return out;
    }
    let whole = (frame.len() - SRH) as u16;
    for length in [0, 1, 7, 8, 39, 40, whole - 1, whole + 1, 0x7fff, 0xffff] {
        out.push(with(frame, |frame| frame[18..20].copy_from_slice(&length.to_be_bytes())));
    }
    out.extend((0..16).map(|version| with(frame, |frame| frame[14] = version << 4)));
    for next in [0u8, 44, 51, 60, 135, 43, 59, 255] {
        for fragment in [[0, 0], [0, 1], [0, 9], [0xff, 0xf8]] {
            out.push(with(frame, |frame| {
                let mut header = vec![frame[20], 0, fragment[0], fragment[1], 0, 0, 0, 7];
                if next == 51 {
                    // The Authentication Header counts in units of four octets (RFC 4302 section
                    // 2.2).
                    header[1] = 0;
                }
                frame[20] = next;
                frame.splice(SRH..SRH, header);
                frame[18..20].copy_from_slice(&(whole + 8).to_be_bytes());
            }));
        }
    }
    out
}

fn mutations(frame: &[u8]) -> Vec<Vec<u8>> {
    let all = [lies(frame), nested(frame), tagged(frame), of_ipv4(frame), of_ipv6(frame)];
    all.concat()
}

#[test]
fn root_mutations_are_forwarded_left_or_dropped_whole() {
    in_both(|node, _, account| {
        let mut cases = (0..cases_for_one()).cycle();
        for frame in good() {
            node.survives(&frame, account);
            for mutation in mutations(&frame) {
                if cases.next() == Some(0) {
                    node.survives(&mutation, account);
                }
            }
        }
    });
}

/// If the program forwards an invalid frame, the kernel forwards it too, with the same bytes.
#[test]
fn root_mutations_are_as_the_kernels() {
    with_node(|node| {
        node.configure_all(true);
        let mut cases = (0..cases_for_one()).cycle();
        let mut differences = Vec::new();
        for frame in good() {
            for mutation in
                [lies(&frame), nested(&frame), of_ipv4(&frame), of_ipv6(&frame)].concat()
            {
                if cases.next() != Some(0) {
                    continue;
                }
                if let Err(what) = node.both(&mutation) {
                    differences.push(what);
                }
            }
        }
        let (count, shown) = (differences.len(), differences.iter().take(5));
        assert!(count == 0, "{count}:\n{}", shown.cloned().collect::<Vec<_>>().join("\n"));
    });
}

#[test]
fn root_mutations_of_every_bit() {
    in_both(|node, _, account| {
        let mut cases = (0..cases_for_one()).cycle();
        for frame in good() {
            for bit in 12 * 8..frame.len().min(120) * 8 {
                if cases.next() == Some(0) {
                    node.survives(&with(&frame, |frame| frame[bit / 8] ^= 1 << (bit % 8)), account);
                }
            }
        }
    });
}
