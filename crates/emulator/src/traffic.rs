//! Cross traffic: packets of others, made at one end of a link and taken at the other.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::{
    ETHERNET, Ethernet, Ipv4, Ipv6, Mac, Udp, WireError, ethertype, protocol, transport_checksum,
};

use crate::dice::Use;
use crate::{Dice, Nanos, Packet};

/// How packets are spread over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// All gaps are the same.
    Constant,
    /// Gaps are exponentially distributed.
    Poisson,
    /// Evenly for a while, then nothing for a while; both are exponentially distributed.
    OnOff {
        /// How long it sends, on average.
        on: Nanos,
        /// How long it pauses, on average.
        off: Nanos,
    },
}

/// Cross traffic on one direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// Bits of layer 2 per second; of [`Pattern::OnOff`] while it is on.
    pub bps: u64,
    /// For how long.
    pub duration: Nanos,
    /// How packets are spread over time.
    pub pattern: Pattern,
    /// Bytes of layer 2 of each packet.
    pub size: u16,
    /// Whether it is UDP over IPv6, and not over IPv4.
    pub ipv6: bool,
}

/// What cross traffic has done on a direction of a link. It is in the link's own counts as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CrossCounts {
    /// Packets that were sent.
    pub sent: u64,
    /// Bytes of layer 2 that were sent.
    pub sent_bytes: u64,
    /// Packets that were due and not sent: see [`crate::Network::skip_cross`].
    pub overdue: u64,
    /// Packets that arrived, copies too.
    pub arrived: u64,
    /// Bytes of layer 2 that arrived.
    pub arrived_bytes: u64,
}

/// Why there is no such traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoTraffic;

/// Who sends cross traffic.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    traffic: Traffic,
    dice: Dice,
    end: Nanos,
    sent: u64,
    next: Nanos,
    /// Of [`Pattern::OnOff`]: how much of the time so far it was on, and when the present phase ends on
    /// that clock; off times so far; how many phases there were.
    pauses: Nanos,
    on_until: Nanos,
    phases: u64,
    /// Its first packet.
    packet: Packet,
    begin: Nanos,
}

/// Where in the packet its number is: the first bytes behind UDP's header.
const NUMBER: usize = 8;
/// Nobody listens there (RFC 863).
const DISCARD: u16 = 9;

impl Source {
    /// One that begins now.
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

    /// When it sends, as long as it does.
    pub(crate) fn next(&self) -> Option<Nanos> {
        (self.next < self.end).then_some(self.next)
    }

    /// The packet that it sends now.
    pub(crate) fn send(&mut self) -> Packet {
        let mut packet = self.packet.clone();
        // A number and its complement: together they leave the checksum as it is (RFC 1071 section 2).
        let number = self.sent as u32;
        let at = packet.bytes().len() - self.payload();
        let bytes = &mut packet.bytes_mut()[at..at + NUMBER];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        bytes[4..].copy_from_slice(&(!number).to_be_bytes());
        self.sent += 1;
        self.next = match self.traffic.pattern {
            // Not gap by gap: no rounding adds up.
            Pattern::Constant => self.begin.saturating_add(self.even()),
            Pattern::Poisson => self.next.saturating_add(self.gap()),
            Pattern::OnOff { on, off } => self.next_while_on(on, off),
        };
        packet
    }

    /// Sends no more.
    pub(crate) fn stop(&mut self) {
        self.end = 0;
    }

    /// Leaves out what is due before a moment. Returns how many packets that is.
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
            // What comes does not depend on what was: as many as there are on average.
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

    /// When the next is sent that falls into a time on.
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

    /// How long as many packets take as were sent.
    fn even(&self) -> Nanos {
        let bits = u128::from(self.sent) * u128::from(self.traffic.size) * 8;
        let time = bits * 1_000_000_000 / u128::from(self.traffic.bps);
        Nanos::try_from(time).unwrap_or(Nanos::MAX)
    }

    /// How many are due in a time without pauses.
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
        // The middle of one of 2^53 parts: never 0, whose logarithm is infinite.
        let part = ((self.dice.roll(of, n) >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0;
        (-libm::log(part) * mean).round() as Nanos
    }
}

/// Bytes of the headers of Ethernet, IP and UDP.
const fn headers(ipv6: bool) -> usize {
    ETHERNET + if ipv6 { 40 } else { 20 } + 8
}

/// The first packet: between addresses for documentation (RFC 5737, RFC 3849), which nobody has.
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
    // None can be made of what is too long, and `around` says so before.
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
                // With the sum in it, nothing is left.
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
