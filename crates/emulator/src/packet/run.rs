//! Batching of consecutive datagrams of a flow into one packet.

use wire::{Checksum, ETHERNET, ethertype, protocol};

use super::buffer::Buffer;
use super::{Cut, Packet, Segments, Unfinished};

/// Maximum number of datagrams in a run, and of bytes in its IP packet.
const MAX_DATAGRAMS: usize = 64;
const MAX_BYTES: usize = 65_535;

/// Field offsets in a frame without VLAN tags and IP options.
mod ipv4 {
    pub(super) const HEADER: usize = 20;
    pub(super) const IDENTIFICATION: std::ops::Range<usize> = 18..20;
    pub(super) const FRAGMENT: std::ops::Range<usize> = 20..22;
    pub(super) const PROTOCOL: usize = 23;
    pub(super) const CHECKSUM: std::ops::Range<usize> = 24..26;
}
mod ipv6 {
    pub(super) const HEADER: usize = 40;
    pub(super) const NEXT: usize = 20;
}
const UDP: usize = 8;
/// Offset of the UDP checksum.
const SUM: usize = 6;
const DONT_FRAGMENT: u16 = 0x4000;

/// Consecutive datagrams that differ only in their payload. On an unimpaired path they are
/// forwarded as one packet: a router then spends the same time on all as on one, and so does the
/// kernel's path to the next host.
///
/// Only datagrams that [`Packet::split`] restores byte by byte are accepted: their checksums are
/// valid or pending, their payloads have the same size, and their IPv4 identifications are
/// consecutive.
#[derive(Debug, Clone, Default)]
pub struct Run {
    packets: Vec<Packet>,
    /// Header length of each datagram, or `None` if the first packet cannot be merged.
    headers: Option<usize>,
}

impl Run {
    /// Starts a run with a packet.
    pub fn begin(&mut self, packet: Packet) {
        self.headers = headers_of(&packet);
        self.packets.clear();
        self.packets.push(packet);
    }

    /// Returns true if a packet can be appended.
    pub fn goes_on_with(&self, next: &Packet) -> bool {
        let (Some(headers), Some(last)) = (self.headers, self.packets.last()) else { return false };
        let payload = next.bytes.len().saturating_sub(headers);
        let bytes = headers - ETHERNET + payload * (self.packets.len() + 1);
        self.packets.len() < MAX_DATAGRAMS && bytes <= MAX_BYTES && follows(last, next, headers)
    }

    /// Appends a packet for which [`Run::goes_on_with`] has returned true.
    pub fn add(&mut self, next: Packet) {
        self.packets.push(next);
    }

    /// Returns all packets of the run as one, or `None` if the run is empty.
    pub fn end(&mut self) -> Option<Packet> {
        let count = self.packets.len();
        let Some(headers) = self.headers.filter(|_| count > 1) else { return self.packets.pop() };
        let first = &self.packets[0];
        let size = first.bytes.len() - headers;
        let mut bytes = Buffer::with_capacity(headers + count * size);
        bytes.extend(&first.bytes[..headers]);
        for packet in &self.packets {
            bytes.extend(&packet.bytes[headers..]);
        }
        set_lengths(&mut bytes, headers);
        let length = self.packets.iter().map(|packet| packet.length).sum();
        let joined = Packet {
            bytes,
            unfinished: Some(Unfinished { start: (headers - UDP) as u16, offset: SUM as u16 }),
            // The size fits, because a frame does.
            segments: Some(Segments { cut: Cut::Udp, size: size as u16 }),
            length,
            largest: first.largest,
            is_cross: false,
            count: count as u32,
        };
        self.packets.clear();
        Some(joined)
    }
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Returns the length of the headers of a datagram that can be merged with others.
fn headers_of(packet: &Packet) -> Option<usize> {
    let bytes: &[u8] = &packet.bytes;
    if bytes.len() <= ETHERNET + ipv4::HEADER + UDP || packet.is_cross {
        return None;
    }
    let (ip, length, is_udp) = match word(bytes, ETHERNET - 2) {
        ethertype::IPV4 => {
            let fragment = word(bytes, ipv4::FRAGMENT.start);
            // Neither options nor a fragment.
            let is_whole = bytes[ETHERNET] == 0x45 && fragment & !DONT_FRAGMENT == 0;
            let is_udp = is_whole && bytes[ipv4::PROTOCOL] == protocol::UDP;
            (ipv4::HEADER, usize::from(word(bytes, ETHERNET + 2)), is_udp)
        }
        ethertype::IPV6 => {
            let is_udp = bytes[ETHERNET] >> 4 == 6 && bytes[ipv6::NEXT] == protocol::UDP;
            (ipv6::HEADER, ipv6::HEADER + usize::from(word(bytes, ETHERNET + 4)), is_udp)
        }
        _ => return None,
    };
    let transport = ETHERNET + ip;
    let headers = transport + UDP;
    let fits = is_udp
        && packet.segments.is_none()
        && ETHERNET + length == bytes.len()
        && bytes.len() > headers
        && usize::from(word(bytes, transport + 4)) == bytes.len() - transport;
    (fits && is_right(packet, ip)).then_some(headers)
}

/// Returns true if the checksums are valid or pending. A datagram with an invalid checksum must
/// arrive unchanged.
fn is_right(packet: &Packet, ip: usize) -> bool {
    let bytes: &[u8] = &packet.bytes;
    let (transport, is_ipv6) = (ETHERNET + ip, ip == ipv6::HEADER);
    let header = &bytes[ETHERNET..transport];
    if !is_ipv6 && Checksum::default().with(header).finish() != 0 {
        return false;
    }
    if let Some(Unfinished { start, offset }) = packet.unfinished {
        return (usize::from(start), usize::from(offset)) == (transport, SUM);
    }
    let (addresses, udp) = (&header[if is_ipv6 { 8 } else { 12 }..], &bytes[transport..]);
    let sum = Checksum::default().with(addresses).with(&[0, protocol::UDP]);
    // The pseudo-header contains the UDP length a second time. A checksum of 0 means none (RFC
    // 768).
    word(udp, SUM) != 0 && sum.with(&udp[4..6]).with(udp).finish() == 0
}

/// Returns true if `next` directly follows `last`: all headers are equal, except for consecutive
/// IPv4 identifications.
fn follows(last: &Packet, next: &Packet, headers: usize) -> bool {
    let (a, b): (&[u8], &[u8]) = (&last.bytes, &next.bytes);
    let is_alike = a.len() == b.len()
        && last.unfinished == next.unfinished
        && next.segments.is_none()
        && !next.is_cross;
    if !is_alike {
        return false;
    }
    let ip = headers - UDP - ETHERNET;
    // A complete checksum covers the payload and so differs; exclude it.
    let end = if next.unfinished.is_some() { headers } else { headers - 2 };
    let is_next = if ip == ipv6::HEADER {
        a[..end] == b[..end]
    } else {
        let number = |bytes| word(bytes, ipv4::IDENTIFICATION.start);
        let (behind, sum) = (ipv4::FRAGMENT.start, ipv4::CHECKSUM);
        a[..ipv4::IDENTIFICATION.start] == b[..ipv4::IDENTIFICATION.start]
            && a[behind..sum.start] == b[behind..sum.start]
            && a[sum.end..end] == b[sum.end..end]
            && number(a).wrapping_add(1) == number(b)
    };
    is_next && is_right(next, ip)
}

/// Sets the length fields of the merged headers, and the checksums that cover them.
fn set_lengths(bytes: &mut [u8], headers: usize) {
    let (transport, length) = (headers - UDP, bytes.len());
    let mut put = |at: usize, value: u16| bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
    // The length fits, because a run is not longer than an IP packet.
    let udp = (length - transport) as u16;
    put(transport + 4, udp);
    let addresses = if transport == ETHERNET + ipv6::HEADER {
        put(ETHERNET + 4, udp);
        ETHERNET + 8..transport
    } else {
        put(ETHERNET + 2, (length - ETHERNET) as u16);
        put(ipv4::CHECKSUM.start, 0);
        let sum = Checksum::default().with(&bytes[ETHERNET..transport]).finish();
        bytes[ipv4::CHECKSUM].copy_from_slice(&sum.to_be_bytes());
        ETHERNET + 12..transport
    };
    // Store the sum of the pseudo-header for checksum offload.
    let sum = Checksum::default().with(&bytes[addresses]);
    let sum = !sum.with(&udp.to_be_bytes()).with(&[0, protocol::UDP]).finish();
    bytes[transport + SUM..headers].copy_from_slice(&sum.to_be_bytes());
}
