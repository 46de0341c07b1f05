//! Software segmentation.

use wire::{Checksum, ETHERNET};

use super::Packet;
use super::buffer::Buffer;
use super::headers::{IPV6, Layout, Transport};

// TCP flags (RFC 9293 section 3.1, RFC 3168 section 6.1).
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

pub(super) fn split(packet: Packet, mut each: impl FnMut(Packet)) {
    let layout = packet.segments.and_then(|segments| Layout::parse(&packet.bytes, segments));
    let (Some(layout), Some(segments)) = (layout, packet.segments) else { return each(packet) };
    let count = layout.count();
    let (headers, payload) = packet.bytes.split_at(layout.payload);
    for number in 0..count {
        let size = usize::from(segments.size);
        let part = &payload[number * size..payload.len().min((number + 1) * size)];
        let mut bytes = Buffer::with_capacity(headers.len() + part.len());
        bytes.extend(headers);
        bytes.extend(part);
        adapt(&mut bytes, &layout, number, size, number + 1 == count);
        let length = bytes.len() as u32;
        let (is_cross, largest) = (packet.is_cross, length - ETHERNET as u32);
        let unfinished = packet.unfinished;
        each(Packet { bytes, unfinished, segments: None, length, largest, is_cross, count: 1 });
    }
}

/// Turns the headers of the whole packet into those of one segment.
fn adapt(bytes: &mut [u8], layout: &Layout, number: usize, size: usize, is_last: bool) {
    let Layout { is_ipv6, kind, network, transport, .. } = *layout;
    let length = bytes.len();
    let (ip, rest) = bytes[network..].split_at_mut(transport - network);
    let put = |to: &mut [u8], at: usize, value: u16| {
        to[at..at + 2].copy_from_slice(&value.to_be_bytes());
    };
    let get = |from: &[u8], at: usize| u16::from_be_bytes([from[at], from[at + 1]]);
    if is_ipv6 {
        put(ip, 4, (length - network - IPV6) as u16);
    } else {
        put(ip, 2, (length - network) as u16);
        put(ip, 4, get(ip, 4).wrapping_add(number as u16));
        put(ip, 10, 0);
        let sum = Checksum::default().with(ip).finish();
        put(ip, 10, sum);
    }
    let next = match kind {
        Transport::Tcp => {
            let sequence = u32::from_be_bytes([rest[4], rest[5], rest[6], rest[7]]);
            let sequence = sequence.wrapping_add((number * size) as u32);
            rest[4..8].copy_from_slice(&sequence.to_be_bytes());
            if !is_last {
                rest[13] &= !(FIN | PSH);
            }
            if number > 0 {
                rest[13] &= !CWR;
            }
            wire::protocol::TCP
        }
        Transport::Udp => {
            put(rest, 4, (length - transport) as u16);
            wire::protocol::UDP
        }
    };
    // Store the sum of the pseudo-header for checksum offload.
    let addresses = if is_ipv6 { &ip[8..40] } else { &ip[12..20] };
    let length = ((length - transport) as u32).to_be_bytes();
    let sum = Checksum::default().with(addresses).with(&length).with(&[0, next]).finish();
    put(rest, kind.checksum().into(), !sum);
}
