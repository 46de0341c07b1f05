//! Explicit congestion notification (RFC 3168 section 5).

use wire::{Checksum, behind_tags, ethertype};

/// Not ECN-capable: the sender would ignore a mark.
const NOT_ECT: u8 = 0;
const CE: u8 = 3;

/// Sets CE in the outermost IP header of a frame if the packet is ECN-capable. Returns true if the
/// frame is marked now.
pub(super) fn mark(frame: &mut [u8]) -> bool {
    let Ok((kind, at)) = behind_tags(frame, |_| ()) else { return false };
    let ip = &mut frame[at..];
    match (kind, &mut *ip) {
        (ethertype::IPV4, [first, class, ..]) if *first >> 4 == 4 => {
            if *class & 3 == NOT_ECT {
                return false;
            }
            *class |= CE;
            let length = usize::from(*first & 0xf) * 4;
            if let Some(header) = ip.get_mut(..length).filter(|header| header.len() >= 20) {
                header[10..12].fill(0);
                let sum = Checksum::default().with(header).finish();
                header[10..12].copy_from_slice(&sum.to_be_bytes());
            }
            true
        }
        // The ECN field is the last two bits of the traffic class (RFC 8200 section 3).
        (ethertype::IPV6, [first, class, ..]) if *first >> 4 == 6 => {
            if (*class >> 4) & 3 == NOT_ECT {
                return false;
            }
            *class |= CE << 4;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use wire::{ETHERNET, Ethernet, Ipv4, Ipv4Packet, Ipv6, Ipv6Packet, Mac};

    use super::*;

    fn frame(kind: u16, ip: &[u8], tags: &[u16]) -> Vec<u8> {
        let mut frame = Vec::new();
        let (dst, src) = (Mac([2; 6]), Mac([4; 6]));
        let mut kinds = tags.iter().copied().chain([kind]);
        let ethertype = kinds.next().unwrap_or(kind);
        Ethernet { dst, src, ethertype }.emit(&mut frame);
        for kind in kinds {
            frame.extend([0, 7]);
            frame.extend(kind.to_be_bytes());
        }
        frame.extend(ip);
        frame
    }

    #[test]
    fn only_ecn_capable_packets_are_marked() {
        for (ecn, is_marked) in [(0, false), (1, true), (2, true), (3, true)] {
            let (service, customer) = (ethertype::SERVICE_VLAN, ethertype::VLAN);
            for tag in [&[][..], &[customer], &[service, customer]] {
                let behind = ETHERNET + 4 * tag.len();
                let ip = Ipv4 { ecn, ..Ipv4::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 6) };
                let mut four = frame(ethertype::IPV4, &ip.around(&[0; 20]).unwrap(), tag);
                assert_eq!(mark(&mut four), is_marked);
                let seen = Ipv4Packet::new_checked(&four[behind..]).unwrap();
                assert!(seen.checksum_ok());
                assert_eq!(seen.ecn(), if is_marked { CE } else { NOT_ECT });
                let (a, b) = ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
                let ip = Ipv6 { ecn, dscp: 46, flow_label: 0xabcde, ..Ipv6::new(a, b, 6) };
                let mut six = frame(ethertype::IPV6, &ip.around(&[0; 20]).unwrap(), tag);
                assert_eq!(mark(&mut six), is_marked);
                let seen = Ipv6Packet::new_checked(&six[behind..]).unwrap();
                assert_eq!(seen.ecn(), if is_marked { CE } else { NOT_ECT });
                assert_eq!((seen.dscp(), seen.flow_label()), (46, 0xabcde));
            }
        }
        for odd in [&[][..], &[0; 13], &[0; 14], &[8, 0], &[0x81, 0]] {
            assert!(!mark(&mut odd.to_vec()));
        }
    }
}
