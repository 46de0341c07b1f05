//! One-line text form of a frame's headers.

use std::fmt::Write as _;

use crate::{Headers, IpLayer, WireError, protocol};

/// Formats the headers, outermost first: `02:00:00:00:00:0a > 02:00:00:00:00:01, IPv4 10.1.0.1 >
/// 10.2.0.1 ttl 64, UDP 1111 > 2222`.
pub fn describe(frame: &[u8]) -> String {
    let headers = match Headers::dissect(frame) {
        Ok(headers) => headers,
        Err(WireError::NotIp(kind)) => return format!("ethertype {kind:#06x}"),
        Err(error) => return format!("not understood: {error}"),
    };
    let mut text = format!("{} > {}", headers.ethernet.src, headers.ethernet.dst);
    // Writing to a string cannot fail.
    for vlan in &headers.vlans {
        let _ = write!(text, ", VLAN {}", vlan.id);
    }
    for layer in &headers.layers {
        let _ = write!(text, ", {}", ip(layer));
    }
    let name = match headers.protocol {
        protocol::TCP => "TCP".into(),
        protocol::UDP => "UDP".into(),
        protocol::SCTP => "SCTP".into(),
        protocol::ICMP => "ICMP".into(),
        protocol::ICMPV6 => "ICMPv6".into(),
        other => format!("protocol {other}"),
    };
    let _ = write!(text, ", {name}");
    if let Some(ports) = headers.ports {
        let _ = write!(text, " {} > {}", ports.src, ports.dst);
    }
    text
}

fn ip(layer: &IpLayer) -> String {
    let (name, limit) = if layer.src.is_ipv4() { ("IPv4", "ttl") } else { ("IPv6", "hop limit") };
    let mut text = format!("{name} {} > {} {limit} {}", layer.src, layer.dst, layer.hop_limit);
    if let Some(srh) = &layer.srh {
        let path: Vec<String> = srh.segments.iter().rev().map(ToString::to_string).collect();
        let _ = write!(text, ", SRH <{}> {} left", path.join(", "), srh.segments_left);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_named_outermost_first() {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0xa, 0x81, 0, 0, 10, 8, 0];
        frame.extend([0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1]);
        frame.extend([4, 87, 8, 174, 0, 8, 0, 0]);
        assert_eq!(
            describe(&frame),
            "02:00:00:00:00:0a > 02:00:00:00:00:01, VLAN 10, IPv4 10.1.0.1 > 10.2.0.1 ttl 64, \
             UDP 1111 > 2222"
        );
        assert_eq!(describe(&[0; 60]), "ethertype 0x0000");
        assert!(describe(&frame[..20]).starts_with("not understood"));
    }
}
