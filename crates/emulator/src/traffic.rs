//! Cross traffic: background packets generated at one end of a link and consumed at the other.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::{
    ETHERNET, Ethernet, Ipv4, Ipv6, Mac, Udp, WireError, ethertype, protocol, transport_checksum,
};

use crate::dice::Use;
use crate::{Dice, Nanos, Packet};

/// Distribution of packets over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Constant gaps.
    Constant,
    /// Exponentially distributed gaps.
    Poisson,
    /// Alternates between constant gaps and pauses; both phases are exponentially distributed.
    OnOff {
        /// Mean duration of the on phase.
        on: Nanos,
        /// Mean duration of the off phase.
        off: Nanos,
    },
}

/// Cross traffic on one direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// Layer-2 bits per second; for [`Pattern::OnOff`], in the on phase.
    pub bps: u64,
    /// Duration.
    pub duration: Nanos,
    /// Distribution of packets over time.
    pub pattern: Pattern,
    /// Layer-2 bytes of each packet.
    pub size: u16,
    /// True for UDP over IPv6, false for UDP over IPv4.
    pub ipv6: bool,
}

/// Counters of the cross traffic on one direction of a link. The link's own counters include them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CrossCounts {
    /// Packets sent.
    pub sent: u64,
    /// Layer-2 bytes sent.
    pub sent_bytes: u64,
    /// Packets due but not sent; see [`crate::Network::skip_cross`].
    pub overdue: u64,
    /// Packets delivered, including duplicates.
    pub arrived: u64,
    /// Layer-2 bytes delivered.
    pub arrived_bytes: u64,
}

/// Error: the parameters yield no traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoTraffic;

/// A source of cross traffic.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    traffic: Traffic,
    dice: Dice,
    end: Nanos,
    sent: u64,
    next: Nanos,
    /// For [`Pattern::OnOff`]: total off time so far; end of the present on phase, on a clock that
    /// counts on time only; number of phases so far.
    pauses: Nanos,
    on_until: Nanos,
    phases: u64,
    /// The first packet, template of the others.
    packet: Packet,
    begin: Nanos,
}

/// Size of the sequence number and its complement, at the start of the UDP payload.
const NUMBER: usize = 8;
/// The discard port (RFC 863).
const DISCARD: u16 = 9;

impl Source {
    /// Creates a source that starts now.
    pub(crate) fn new(dice: Dice, traffic: Traffic, now: Nanos) -> Result<Self, NoTraffic> {
        if traffic.bps == 0 || traffic.duration == 0 {
            return Err(NoTraffic);
        }
        let packet = packet(&traffic).ok_or(NoTraffic)?;
        let mut source = Self {
            traffic,
            dice,
            end: now.saturating_add(traffic.duration),
            sent: 0,
            next: now,
            pauses: 0,
            on_until: 0,
            phases: 0,
            packet,
            begin: now,
        };
        match traffic.pattern {
            Pattern::Constant => {}
            Pattern::Poisson => source.next = now.saturating_add(source.gap()),
            Pattern::OnOff { on, .. } => source.on_until = source.exponential(Use::On, on),
        }
        Ok(source)
    }

    /// Returns the time of the next packet, or `None` after the end.
    pub(crate) fn next(&self) -> Option<Nanos> {
        (self.next < self.end).then_some(self.next)
    }

    /// Returns the packet that is due.
    pub(crate) fn send(&mut self) -> Packet {
        let mut packet = self.packet.clone();
        // Write the sequence number and its complement, so that the checksum stays the same (RFC
        // 1071 section 2).
        let number = self.sent as u32;
        let at = packet.bytes().len() - self.payload();
        let bytes = &mut packet.bytes_mut()[at..at + NUMBER];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        bytes[4..].copy_from_slice(&(!number).to_be_bytes());
        self.sent += 1;
        self.next = match self.traffic.pattern {
            // Compute from the start, so that rounding errors do not accumulate.
            Pattern::Constant => self.begin.saturating_add(self.even()),
            Pattern::Poisson => self.next.saturating_add(self.gap()),
            Pattern::OnOff { on, off } => self.next_while_on(on, off),
        };
        packet
    }

    /// Stops the source.
    pub(crate) fn stop(&mut self) {
        self.end = 0;
    }

    /// Skips packets due before `until`. Returns their number.
    pub(crate) fn skip(&mut self, until: Nanos) -> u64 {
        let until = until.min(self.end);
        if self.next >= until {
            return 0;
        }
        let before = self.sent;
        match self.traffic.pattern {
            Pattern::Constant => {
                self.sent = self.due_in(until - self.begin);
                self.next = self.begin.saturating_add(self.even());
            }
            // The process is memoryless: skip the mean number of packets.
            Pattern::Poisson => {
                let others = (until - self.next) as f64 / self.mean_gap();
                self.sent += 1 + others as u64;
                self.next = until.saturating_add(self.gap());
            }
            Pattern::OnOff { on, off } => {
                while self.next < until {
                    let time = (until - self.begin - self.pauses).min(self.on_until);
                    self.sent = self.due_in(time).max(self.sent + 1);
                    self.next = self.next_while_on(on, off);
                }
            }
        }
        self.sent - before
    }

    /// Returns the time of the next packet, which lies in an on phase.
    fn next_while_on(&mut self, on: Nanos, off: Nanos) -> Nanos {
        let at = self.even();
        while self.on_until <= at {
            self.pauses = self.pauses.saturating_add(self.exponential(Use::Off, off));
            self.phases += 1;
            self.on_until = self.on_until.saturating_add(self.exponential(Use::On, on)).max(1);
        }
        self.begin.saturating_add(at).saturating_add(self.pauses)
    }

    fn payload(&self) -> usize {
        usize::from(self.traffic.size) - headers(self.traffic.ipv6)
    }

    /// Transmission time of all packets sent so far, at the constant rate.
    fn even(&self) -> Nanos {
        let bits = u128::from(self.sent) * u128::from(self.traffic.size) * 8;
        let time = bits * 1_000_000_000 / u128::from(self.traffic.bps);
        Nanos::try_from(time).unwrap_or(Nanos::MAX)
    }

    /// Number of packets due in `time` without pauses.
    fn due_in(&self, time: Nanos) -> u64 {
        let bits = u128::from(time) * u128::from(self.traffic.bps);
        let count = bits.div_ceil(u128::from(self.traffic.size) * 8 * 1_000_000_000);
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    fn mean_gap(&self) -> f64 {
        f64::from(self.traffic.size) * 8e9 / self.traffic.bps as f64
    }

    fn gap(&self) -> Nanos {
        self.exponential_of(Use::Gap, self.mean_gap(), self.sent)
    }

    fn exponential(&self, of: Use, mean: Nanos) -> Nanos {
        self.exponential_of(of, mean as f64, self.phases)
    }

    fn exponential_of(&self, of: Use, mean: f64, n: u64) -> Nanos {
        // Use the midpoint of one of 2^53 intervals: never 0, because its logarithm is infinite.
        let part = ((self.dice.roll(of, n) >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0;
        (-libm::log(part) * mean).round() as Nanos
    }
}

/// Length of the Ethernet, IP and UDP headers.
const fn headers(ipv6: bool) -> usize {
    ETHERNET + if ipv6 { 40 } else { 20 } + 8
}

/// Builds the first packet, with documentation addresses (RFC 5737, RFC 3849).
fn packet(traffic: &Traffic) -> Option<Packet> {
    let payload = usize::from(traffic.size).checked_sub(headers(traffic.ipv6))?;
    if payload < NUMBER {
        return None;
    }
    let mut data = vec![0; payload];
    data[4..NUMBER].fill(0xff);
    let ip = ip(traffic.ipv6, &data).ok()?;
    let mut frame = Vec::with_capacity(usize::from(traffic.size));
    let mac = |n| Mac([2, 0, 0, 0, 0, n]);
    let ethertype = if traffic.ipv6 { ethertype::IPV6 } else { ethertype::IPV4 };
    Ethernet { dst: mac(2), src: mac(1), ethertype }.emit(&mut frame);
    frame.extend(ip);
    let mut packet = Packet::new(&frame).ok()?;
    packet.make_cross();
    Some(packet)
}

fn ip(ipv6: bool, data: &[u8]) -> Result<Vec<u8>, WireError> {
    let four = |n| Ipv4Addr::new(192, 0, 2, n);
    let six = |n| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n);
    let (from, to): (IpAddr, IpAddr) =
        if ipv6 { (six(1).into(), six(2).into()) } else { (four(1).into(), four(2).into()) };
    let udp = Udp::new(DISCARD, DISCARD);
    let plain = udp.around(data)?;
    // A payload that is too long has already been rejected by `around`.
    let checksum = transport_checksum(from, to, protocol::UDP, &plain).unwrap_or(0);
    let udp = Udp { checksum, ..udp }.around(data)?;
    if ipv6 {
        Ipv6::new(six(1), six(2), protocol::UDP).around(&udp)
    } else {
        Ipv4::new(four(1), four(2), protocol::UDP).around(&udp)
    }
}

#[cfg(test)]
mod tests {
    use wire::{Ipv4Packet, Ipv6Packet};

    use super::*;

    #[test]
    fn packets_of_both_families_are_whole_and_have_numbers() {
        let four: (IpAddr, IpAddr) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let six = ["2001:db8::1", "2001:db8::2"].map(|text| text.parse::<IpAddr>().unwrap());
        for (ipv6, size) in [(false, 50), (false, 1514), (true, 70), (true, 1001)] {
            let (bps, duration) = (1_000_000, 1_000_000_000);
            let traffic = Traffic { bps, duration, pattern: Pattern::Poisson, size, ipv6 };
            let mut source = Source::new(Dice::new(1, "a"), traffic, 0).unwrap();
            let packets = [0, 1, 2].map(|_| source.send());
            for packet in &packets {
                let bytes = packet.bytes();
                assert_eq!(bytes.len(), usize::from(size));
                let ((from, to), udp) = if ipv6 {
                    let ip = Ipv6Packet::new_checked(&bytes[ETHERNET..]).unwrap();
                    ((six[0], six[1]), ip.payload().to_vec())
                } else {
                    let ip = Ipv4Packet::new_checked(&bytes[ETHERNET..]).unwrap();
                    assert!(ip.checksum_ok());
                    (four, ip.payload().to_vec())
                };
                // A valid checksum sums to zero.
                let rest = transport_checksum(from, to, protocol::UDP, &udp).unwrap();
                assert!([0, 0xffff].contains(&rest), "{rest:x}");
            }
            assert!(packets[0] != packets[1] && packets[1] != packets[2]);
        }
        let small =
            Traffic { bps: 1, duration: 1, pattern: Pattern::Constant, size: 49, ipv6: false };
        assert!(Source::new(Dice::new(1, "a"), small, 0).is_err());
    }
}
