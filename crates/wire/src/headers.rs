//! All headers of a frame, from Ethernet to the transport header.

use std::net::{IpAddr, Ipv6Addr};
use std::ops::Range;

use crate::bytes::{need, u16_at};
use crate::{
    Ethernet, EthernetPacket, Ipv4Packet, Ipv6Packet, Srh, SrhPacket, TcpPacket, UdpPacket, Vlan,
    WireError, behind_tags, ethertype, protocol,
};

/// The headers of a frame, for finding an application's packets in a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headers {
    /// The Ethernet header.
    pub ethernet: Ethernet,
    /// The VLAN tags, outermost first.
    pub vlans: Vec<Vlan>,
    /// The IP headers, outermost first; never empty.
    pub layers: Vec<IpLayer>,
    /// The protocol of the innermost packet's payload.
    pub protocol: u8,
    /// The ports of TCP, UDP and SCTP; absent in all fragments but the first.
    pub ports: Option<Ports>,
    /// Range of the transport payload in the frame: the bytes after the TCP or UDP header, or after
    /// the innermost IP header for other protocols.
    pub payload: Range<usize>,
}

/// One IP header of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpLayer {
    /// The source address.
    pub src: IpAddr,
    /// The destination address; with a segment list, the active segment.
    pub dst: IpAddr,
    /// The differentiated services code point.
    pub dscp: u8,
    /// The remaining hop limit.
    pub hop_limit: u8,
    /// The segment routing header, if present.
    pub srh: Option<Srh>,
}

/// The ports of a transport header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    /// The source port.
    pub src: u16,
    /// The destination port.
    pub dst: u16,
}

/// Limit on nested headers.
const MAX_DEPTH: usize = 16;

impl Headers {
    /// Parses the headers of `frame`, which starts with an Ethernet header. The frame may be
    /// truncated after the transport header, as in captures.
    pub fn dissect(frame: &[u8]) -> Result<Self, WireError> {
        let packet = EthernetPacket::new_checked(frame)?;
        let ethernet = Ethernet::parse(&packet);
        let mut vlans = Vec::new();
        let (next, at) = behind_tags(frame, |tag| vlans.push(Vlan::parse(&tag)))?;
        let rest = &frame[at..];
        let first = match next {
            ethertype::IPV4 => protocol::IPV4,
            ethertype::IPV6 => protocol::IPV6,
            other => return Err(WireError::NotIp(other)),
        };
        let mut walk = Walk { layers: Vec::new(), next: first, rest, fragment: false, steps: 0 };
        while walk.step()? {}
        let (ports, rest) = walk.transport()?;
        // `rest` has always been a subslice of the frame, possibly without trailing padding.
        let start = rest.as_ptr().addr() - frame.as_ptr().addr();
        Ok(Self {
            ethernet,
            vlans,
            layers: walk.layers,
            protocol: walk.next,
            ports,
            payload: start..start + rest.len(),
        })
    }

    /// The outer IP header, if the packet is encapsulated.
    pub fn outer(&self) -> Option<&IpLayer> {
        if self.layers.len() > 1 { self.layers.first() } else { None }
    }

    /// The innermost IP header, which is the application's.
    pub fn inner(&self) -> &IpLayer {
        self.layers.last().expect("a dissected frame has an IP header")
    }
}

impl IpLayer {
    /// The final destination: the last segment if segments are left, otherwise the destination
    /// address.
    pub fn final_dst(&self) -> IpAddr {
        let last = self.srh.as_ref().filter(|srh| srh.segments_left > 0);
        last.and_then(|srh| srh.segments.first()).map_or(self.dst, |dst: &Ipv6Addr| (*dst).into())
    }
}

/// The state while parsing the IP headers.
struct Walk<'f> {
    layers: Vec<IpLayer>,
    /// The protocol of the header at the start of `rest`.
    next: u8,
    rest: &'f [u8],
    /// True in a later fragment, which does not contain the transport header.
    fragment: bool,
    steps: usize,
}

impl<'f> Walk<'f> {
    /// Parses one IP or extension header; false if the transport header is reached.
    fn step(&mut self) -> Result<bool, WireError> {
        self.steps += 1;
        if self.steps > MAX_DEPTH {
            return Err(WireError::TooDeep);
        }
        match self.next {
            _ if self.fragment => Ok(false),
            protocol::IPV4 => self.ipv4(),
            protocol::IPV6 => self.ipv6(),
            protocol::ROUTING if self.in_ipv6() => self.routing(),
            protocol::HOP_BY_HOP | protocol::DESTINATION_OPTIONS if self.in_ipv6() => {
                self.skip_extension()
            }
            protocol::FRAGMENT if self.in_ipv6() => {
                // RFC 8200 section 4.5
                need("IPv6 fragment header", self.rest, 8)?;
                self.fragment = u16_at(self.rest, 2) >> 3 != 0;
                self.next = self.rest[0];
                self.rest = &self.rest[8..];
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn in_ipv6(&self) -> bool {
        self.layers.last().is_some_and(|layer| layer.src.is_ipv6())
    }

    fn ipv4(&mut self) -> Result<bool, WireError> {
        let packet = Ipv4Packet::new_checked(self.rest)?;
        self.layers.push(IpLayer {
            src: packet.src().into(),
            dst: packet.dst().into(),
            dscp: packet.dscp(),
            hop_limit: packet.ttl(),
            srh: None,
        });
        self.next = packet.protocol();
        self.fragment = packet.fragment_offset() > 0;
        let payload = packet.header_len()..packet.header_len() + packet.payload().len();
        self.rest = &self.rest[payload];
        Ok(true)
    }

    fn ipv6(&mut self) -> Result<bool, WireError> {
        let packet = Ipv6Packet::new_checked(self.rest)?;
        self.layers.push(IpLayer {
            src: packet.src().into(),
            dst: packet.dst().into(),
            dscp: packet.dscp(),
            hop_limit: packet.hop_limit(),
            srh: None,
        });
        self.next = packet.next_header();
        let header = Ipv6Packet::<&[u8]>::HEADER;
        self.rest = &self.rest[header..header + packet.payload().len()];
        Ok(true)
    }

    fn routing(&mut self) -> Result<bool, WireError> {
        match SrhPacket::new_checked(self.rest) {
            Ok(packet) => {
                let srh = Srh::parse(&packet);
                if let Some(layer) = self.layers.last_mut() {
                    layer.srh = Some(srh);
                }
                self.skip_extension()
            }
            // Other types of routing headers are skipped like any extension header.
            Err(WireError::RoutingType(_)) => self.skip_extension(),
            Err(error) => Err(error),
        }
    }

    /// Next Header, length in units of 8 bytes without the first, data (RFC 8200 section 4).
    fn skip_extension(&mut self) -> Result<bool, WireError> {
        need("IPv6 extension header", self.rest, 8)?;
        let length = 8 + 8 * usize::from(self.rest[1]);
        need("IPv6 extension header", self.rest, length)?;
        self.next = self.rest[0];
        self.rest = &self.rest[length..];
        Ok(true)
    }

    /// The ports, and the bytes after the transport header.
    fn transport(&self) -> Result<(Option<Ports>, &'f [u8]), WireError> {
        let rest = self.rest;
        let ports = |src, dst| Some(Ports { src, dst });
        match self.next {
            _ if self.fragment => Ok((None, rest)),
            protocol::TCP => {
                let tcp = TcpPacket::new_checked(rest)?;
                Ok((ports(tcp.src_port(), tcp.dst_port()), &rest[tcp.header_len()..]))
            }
            protocol::UDP => {
                let udp = UdpPacket::new_checked(rest)?;
                let header = UdpPacket::<&[u8]>::HEADER;
                let payload = &rest[header..header + udp.payload().len()];
                Ok((ports(udp.src_port(), udp.dst_port()), payload))
            }
            protocol::SCTP => {
                // The ports are at the same offsets as in TCP; the common header has 12 bytes (RFC
                // 9260 section 3.1).
                need("SCTP", rest, 12)?;
                Ok((ports(u16_at(rest, 0), u16_at(rest, 2)), &rest[12..]))
            }
            _ => Ok((None, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Ipv4, Ipv6, Mac, Udp, VlanPacket};

    fn ethernet(ethertype: u16) -> Ethernet {
        Ethernet { dst: Mac([2, 0, 0, 0, 0, 1]), src: Mac([2, 0, 0, 0, 0, 2]), ethertype }
    }

    fn ipv6(next_header: u8, payload_len: usize, dst: &str) -> Ipv6 {
        Ipv6 {
            dscp: 0,
            ecn: 0,
            flow_label: 7,
            payload_len: payload_len as u16,
            next_header,
            hop_limit: 64,
            src: "fd01::1".parse().unwrap(),
            dst: dst.parse().unwrap(),
        }
    }

    /// IPv4, UDP from 1000 to 5201, `hi`.
    fn datagram() -> Vec<u8> {
        let mut out = Vec::new();
        let ipv4 = Ipv4 {
            dscp: 46,
            ecn: 0,
            identification: 1,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            ttl: 63,
            protocol: protocol::UDP,
            src: "10.0.2.1".parse().unwrap(),
            dst: "10.0.3.2".parse().unwrap(),
            options: vec![],
            payload_len: 10,
        };
        ipv4.emit(&mut out).unwrap();
        let udp = Udp { src_port: 1000, dst_port: 5201, payload_len: 2, checksum: 0 };
        udp.emit(&mut out).unwrap();
        out.extend(b"hi");
        out
    }

    /// A tagged frame: the datagram above, encapsulated with a list of two segments, and padding.
    fn encapsulated() -> Vec<u8> {
        let path = ["fd00:0:2:1::", "fd00:0:5:d4::"].map(|sid| sid.parse().unwrap());
        let srh = Srh::of_path(protocol::IPV4, &path);
        let inner = datagram();
        let mut out = Vec::new();
        ethernet(ethertype::VLAN).emit(&mut out);
        Vlan { priority: 0, drop_eligible: false, id: 5, ethertype: ethertype::IPV6 }
            .emit(&mut out);
        ipv6(protocol::ROUTING, srh.header_len() + inner.len(), "fd00:0:2:1::").emit(&mut out);
        srh.emit(&mut out).unwrap();
        out.extend(inner);
        out.extend([0xee; 4]);
        out
    }

    #[test]
    fn an_encapsulated_datagram() {
        let frame = encapsulated();
        let headers = Headers::dissect(&frame).unwrap();
        assert_eq!(headers.vlans[0].id, 5);
        let outer = headers.outer().unwrap();
        assert_eq!(outer.dst.to_string(), "fd00:0:2:1::");
        assert_eq!(outer.final_dst().to_string(), "fd00:0:5:d4::");
        assert_eq!(outer.srh.as_ref().unwrap().segments.len(), 2);
        let inner = headers.inner();
        assert_eq!(
            (inner.src.to_string(), inner.final_dst().to_string()),
            ("10.0.2.1".into(), "10.0.3.2".into())
        );
        assert_eq!((inner.dscp, inner.hop_limit), (46, 63));
        assert_eq!(headers.protocol, protocol::UDP);
        assert_eq!(headers.ports, Some(Ports { src: 1000, dst: 5201 }));
        // Without the frame's padding.
        assert_eq!(&frame[headers.payload.clone()], b"hi");
        // Truncated after the transport header.
        let short = &frame[..frame.len() - 5];
        assert_eq!(&short[Headers::dissect(short).unwrap().payload], b"h");
    }

    #[test]
    fn a_plain_datagram_has_no_outer_header() {
        let mut frame = Vec::new();
        ethernet(ethertype::IPV4).emit(&mut frame);
        frame.extend(datagram());
        let headers = Headers::dissect(&frame).unwrap();
        assert!(headers.outer().is_none());
        assert_eq!(headers.ports, Some(Ports { src: 1000, dst: 5201 }));
        // A later fragment has no ports, whatever its bytes look like.
        frame[14 + 7] = 1;
        let headers = Headers::dissect(&frame).unwrap();
        assert_eq!((headers.ports, headers.protocol), (None, protocol::UDP));
        assert_eq!(headers.payload.len(), 10);
    }

    #[test]
    fn extension_headers_are_walked_over() {
        let mut frame = Vec::new();
        ethernet(ethertype::IPV6).emit(&mut frame);
        ipv6(protocol::HOP_BY_HOP, 8 + 8 + 8 + 20, "fd01::2").emit(&mut frame);
        frame.extend([protocol::ROUTING, 0, 1, 4, 0, 0, 0, 0]);
        // A routing header of another type.
        frame.extend([protocol::FRAGMENT, 0, 3, 0, 0, 0, 0, 0]);
        // The first fragment.
        frame.extend([protocol::TCP, 0, 0, 1, 0, 0, 0, 9]);
        let mut tcp = [0_u8; 20];
        tcp[..4].copy_from_slice(&[0, 80, 0, 81]);
        tcp[12] = 0x50;
        frame.extend(tcp);
        let headers = Headers::dissect(&frame).unwrap();
        assert_eq!(headers.ports, Some(Ports { src: 80, dst: 81 }));
        assert!(headers.payload.is_empty());
        assert_eq!(headers.inner().srh, None);
    }

    #[test]
    fn a_packet_without_ip_or_with_endless_headers_is_refused() {
        let mut frame = Vec::new();
        ethernet(ethertype::ARP).emit(&mut frame);
        assert_eq!(Headers::dissect(&frame), Err(WireError::NotIp(ethertype::ARP)));
        let mut frame = Vec::new();
        ethernet(ethertype::IPV6).emit(&mut frame);
        for depth in (1..40).rev() {
            ipv6(protocol::IPV6, depth * 40, "fd01::2").emit(&mut frame);
        }
        assert_eq!(Headers::dissect(&frame), Err(WireError::TooDeep));
        let mut frame = Vec::new();
        ethernet(ethertype::VLAN).emit(&mut frame);
        frame.extend([0, 1, 0x81, 0].repeat(40));
        assert_eq!(Headers::dissect(&frame), Err(WireError::TooDeep));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = Headers::dissect(&bytes);
            let views = [
                Ipv4Packet::new_checked(&bytes).map(|p| (p.options().len(), p.payload().len())),
                Ipv6Packet::new_checked(&bytes).map(|p| (0, p.payload().len())),
                SrhPacket::new_checked(&bytes).map(|p| (p.segments().count(), p.payload().len())),
                UdpPacket::new_checked(&bytes).map(|p| (0, p.payload().len())),
                TcpPacket::new_checked(&bytes).map(|p| (0, p.payload().len())),
                VlanPacket::new_checked(&bytes).map(|p| (0, p.payload().len())),
            ];
            for (_, payload) in views.into_iter().flatten() {
                prop_assert!(payload <= bytes.len());
            }
        }

        #[test]
        fn no_change_of_a_good_frame_makes_it_panic(
            at in 0..encapsulated().len(), byte: u8, cut in 0..encapsulated().len(),
        ) {
            let mut frame = encapsulated();
            frame[at] = byte;
            if let Ok(headers) = Headers::dissect(&frame[..frame.len() - cut]) {
                prop_assert!(headers.payload.end <= frame.len() - cut);
                prop_assert!(headers.payload.start <= headers.payload.end);
            }
        }

        #[test]
        fn an_srh_survives_the_wire(
            next_header: u8,
            flags: u8,
            tag: u16,
            segments in proptest::collection::vec(any::<u128>(), 1..20),
            left in 0_usize..20,
            tlvs in 0_usize..4,
        ) {
            let srh = Srh {
                next_header,
                flags,
                tag,
                segments_left: left.min(segments.len()) as u8,
                segments: segments.into_iter().map(Ipv6Addr::from).collect(),
                tlvs: vec![0; 8 * tlvs],
            };
            let mut out = Vec::new();
            srh.emit(&mut out).unwrap();
            prop_assert_eq!(Srh::parse(&SrhPacket::new_checked(&out).unwrap()), srh);
        }
    }
}
