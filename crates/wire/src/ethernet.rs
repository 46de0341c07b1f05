//! Ethernet and its VLAN tags (IEEE 802.3 section 3, IEEE 802.1Q section 9).

use std::fmt;

use crate::WireError;
use crate::bytes::{array_at, need, u16_at};

/// Numbers of the EtherType field.
pub mod ethertype {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// Customer VLAN tag (C-TAG).
    pub const VLAN: u16 = 0x8100;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// Service VLAN tag (S-TAG).
    pub const SERVICE_VLAN: u16 = 0x88a8;

    /// The EtherType of an IP packet.
    pub fn of_ip(packet: &[u8]) -> u16 {
        if packet.first().is_some_and(|first| first >> 4 == 4) { IPV4 } else { IPV6 }
    }
}

/// A MAC address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// A view of an Ethernet frame without its FCS.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                          Destination                          |
/// +                               +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                               |            Source             |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+                               +
/// |                                                               |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |           EtherType           |  payload
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Debug, Clone, Copy)]
pub struct EthernetPacket<T>(T);

/// The length of an Ethernet header without tags.
pub const ETHERNET: usize = 14;

impl<T: AsRef<[u8]>> EthernetPacket<T> {
    /// The length of the header.
    pub const HEADER: usize = ETHERNET;

    /// A view of `bytes`, if they hold the header.
    #[inline]
    pub fn new_checked(bytes: T) -> Result<Self, WireError> {
        need("Ethernet", bytes.as_ref(), Self::HEADER)?;
        Ok(Self(bytes))
    }

    /// The destination address.
    #[inline]
    pub fn dst(&self) -> Mac {
        Mac(array_at(self.0.as_ref(), 0))
    }

    /// The source address.
    #[inline]
    pub fn src(&self) -> Mac {
        Mac(array_at(self.0.as_ref(), 6))
    }

    /// The EtherType of the payload.
    #[inline]
    pub fn ethertype(&self) -> u16 {
        u16_at(self.0.as_ref(), 12)
    }

    /// The payload.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[Self::HEADER..]
    }
}

/// An Ethernet header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ethernet {
    /// The destination address.
    pub dst: Mac,
    /// The source address.
    pub src: Mac,
    /// The EtherType of the payload.
    pub ethertype: u16,
}

impl Ethernet {
    /// The header of a frame.
    pub fn parse<T: AsRef<[u8]>>(packet: &EthernetPacket<T>) -> Self {
        Self { dst: packet.dst(), src: packet.src(), ethertype: packet.ethertype() }
    }

    /// Appends the header to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend(self.dst.0);
        out.extend(self.src.0);
        out.extend(self.ethertype.to_be_bytes());
    }
}

/// A view of a VLAN tag, without its leading EtherType, and its payload.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// | PCP |D|          VID          |           EtherType           |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Debug, Clone, Copy)]
pub struct VlanPacket<T>(T);

impl<T: AsRef<[u8]>> VlanPacket<T> {
    /// The length of the tag without its own EtherType, including the EtherType of the payload.
    pub const HEADER: usize = 4;

    /// A view of `bytes`, if they hold the tag.
    #[inline]
    pub fn new_checked(bytes: T) -> Result<Self, WireError> {
        need("802.1Q", bytes.as_ref(), Self::HEADER)?;
        Ok(Self(bytes))
    }

    /// The priority code point, 0 to 7.
    #[inline]
    pub fn priority(&self) -> u8 {
        self.0.as_ref()[0] >> 5
    }

    /// Returns true if the frame is drop eligible (DEI).
    #[inline]
    pub fn drop_eligible(&self) -> bool {
        self.0.as_ref()[0] & 0x10 != 0
    }

    /// The VLAN ID, 0 to 4095.
    #[inline]
    pub fn id(&self) -> u16 {
        u16_at(self.0.as_ref(), 0) & 0x0fff
    }

    /// The EtherType of the payload.
    #[inline]
    pub fn ethertype(&self) -> u16 {
        u16_at(self.0.as_ref(), 2)
    }

    /// The payload.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[Self::HEADER..]
    }
}

/// A VLAN tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vlan {
    /// The priority code point, 0 to 7.
    pub priority: u8,
    /// True if the frame is drop eligible (DEI).
    pub drop_eligible: bool,
    /// The VLAN ID, 0 to 4095.
    pub id: u16,
    /// The EtherType of the payload.
    pub ethertype: u16,
}

impl Vlan {
    /// The tag of a frame.
    pub fn parse<T: AsRef<[u8]>>(packet: &VlanPacket<T>) -> Self {
        Self {
            priority: packet.priority(),
            drop_eligible: packet.drop_eligible(),
            id: packet.id(),
            ethertype: packet.ethertype(),
        }
    }

    /// Appends the tag to `out`. Values are truncated to their fields.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let priority = u16::from(self.priority & 7) << 13;
        let drop = u16::from(self.drop_eligible) << 12;
        out.extend((priority | drop | self.id & 0x0fff).to_be_bytes());
        out.extend(self.ethertype.to_be_bytes());
    }
}

/// Limit on stacked tags.
const MAX_TAGS: usize = 16;

/// Skips the VLAN tags of `frame`, which starts with an Ethernet header. Returns the EtherType of
/// the payload and its offset. `tag` is called for each tag, outermost first.
#[inline]
pub fn behind_tags(
    frame: &[u8],
    mut tag: impl FnMut(VlanPacket<&[u8]>),
) -> Result<(u16, usize), WireError> {
    let mut next = EthernetPacket::new_checked(frame)?.ethertype();
    let mut at = ETHERNET;
    let mut left = MAX_TAGS;
    while matches!(next, ethertype::VLAN | ethertype::SERVICE_VLAN) {
        let vlan = VlanPacket::new_checked(&frame[at..])?;
        left = left.checked_sub(1).ok_or(WireError::TooDeep)?;
        next = vlan.ethertype();
        at += VlanPacket::<&[u8]>::HEADER;
        tag(vlan);
    }
    Ok((next, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: [u8; 19] =
        [0x02, 0, 0, 0, 0, 0x01, 0x02, 0, 0, 0, 0, 0x02, 0x81, 0x00, 0xb0, 0x64, 0x86, 0xdd, 0x60];

    #[test]
    fn bytes_and_values() {
        let frame = EthernetPacket::new_checked(&FRAME).unwrap();
        let ethernet = Ethernet::parse(&frame);
        assert_eq!(ethernet.dst.to_string(), "02:00:00:00:00:01");
        assert_eq!(ethernet.src, Mac([2, 0, 0, 0, 0, 2]));
        assert_eq!(ethernet.ethertype, ethertype::VLAN);
        let tag = VlanPacket::new_checked(frame.payload()).unwrap();
        let vlan = Vlan::parse(&tag);
        let expected =
            Vlan { priority: 5, drop_eligible: true, id: 100, ethertype: ethertype::IPV6 };
        assert_eq!(vlan, expected);
        assert_eq!(tag.payload(), [0x60]);
        let mut out = Vec::new();
        ethernet.emit(&mut out);
        vlan.emit(&mut out);
        assert_eq!(out, FRAME[..18]);
    }

    #[test]
    fn tags_are_walked_over() {
        let mut frame = FRAME[..12].to_vec();
        frame.extend([0x88, 0xa8, 0, 7, 0x81, 0, 0, 8, 0x86, 0xdd, 0x60]);
        let mut ids = Vec::new();
        let behind = behind_tags(&frame, |tag| ids.push(tag.id()));
        assert_eq!((behind, ids), (Ok((ethertype::IPV6, 22)), vec![7, 8]));
        assert_eq!(behind_tags(&FRAME[..18], |_| ()), Ok((ethertype::IPV6, 18)));
        assert!(behind_tags(&FRAME[..17], |_| ()).is_err());
        frame.truncate(12);
        frame.extend([0x81, 0, 0, 1].repeat(40));
        assert_eq!(behind_tags(&frame, |_| ()), Err(WireError::TooDeep));
    }

    #[test]
    fn too_few_bytes_are_refused() {
        let error = WireError::Truncated { header: "Ethernet", need: 14, have: 13 };
        assert_eq!(EthernetPacket::new_checked(&FRAME[..13]).unwrap_err(), error);
        assert!(VlanPacket::new_checked(&FRAME[..3]).is_err());
    }
}
