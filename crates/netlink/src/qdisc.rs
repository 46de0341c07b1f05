//! Queueing disciplines: a token bucket filter as an interface's root, and the counters of every
//! root.

use std::collections::HashMap;

use model::Bandwidth;
use netlink_packet_core::DecodeError;

use crate::attribute::{Writer, after, each, text, u32_at, u64_at};
use crate::socket::{CREATE, REPLACE};
use crate::{Handle, Request, Result};

// linux/pkt_sched.h, linux/rtnetlink.h
pub(crate) const TC_H_ROOT: u32 = 0xffff_ffff;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_PKT64: u16 = 8;
const TC_LINKLAYER_ETHERNET: u8 = 1;
/// struct tcmsg: family and padding, interface, handle, parent, info
const HEADER: usize = 20;
/// Handle 1:0 of the root qdisc, by which a change refers to it.
pub(crate) const HANDLE: u32 = 0x1_0000;
/// Handle 2:0 of the child qdisc, which is attached to the root's class 1:1.
const BELOW: u32 = 0x2_0000;
/// Handle and parent of a root qdisc.
const ROOT: (u32, u32) = (HANDLE, TC_H_ROOT);
/// A 64 KiB GSO packet with its headers. TBF segments frames that are longer than the bucket,
/// at a cost in CPU time that the simulated link does not have.
const SUPER_FRAME: u64 = 68 << 10;

/// A token bucket filter: a rate limit with a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tbf {
    /// The rate, in layer-2 bits per second.
    pub rate: Bandwidth,
    /// The depth of the bucket: the largest burst.
    pub burst_bytes: u32,
    /// The length of the queue. Excess packets are dropped.
    pub limit_bytes: u32,
}

impl Tbf {
    /// A bucket for `rate` on an interface of `mtu`, and a queue of `limit_bytes`.
    ///
    /// The bucket holds at least two frames and 1 ms of the rate. Softirqs can be late by about
    /// that much, and tokens that overflow meanwhile are lost bandwidth. From 280 Mbit/s on, where
    /// a GSO packet takes at most 2 ms, the bucket also holds a GSO packet, so that fast links
    /// need not segment. Slower links keep the short bursts of a real link.
    pub fn new(rate: Bandwidth, mtu: u32, limit_bytes: u32) -> Self {
        let per_ms = rate.bytes_per_second() / 1000;
        let frames = 2 * (u64::from(mtu) + wire::ETHERNET as u64);
        let burst = frames.max(per_ms).max(if per_ms * 2 >= SUPER_FRAME { SUPER_FRAME } else { 0 });
        Self { rate, burst_bytes: u32::try_from(burst).unwrap_or(u32::MAX), limit_bytes }
    }
}

/// Replaces the interface's root qdisc with `tbf`.
pub fn replace_tbf(interface: u32, tbf: &Tbf) -> Request {
    Request::new(libc::RTM_NEWQDISC, CREATE | REPLACE, tbf_message(interface, ROOT, tbf))
}

/// Attaches `tbf` as a child of the interface's root qdisc (netem), which holds its packets in the
/// child's queue.
pub fn replace_tbf_below(interface: u32, tbf: &Tbf) -> Request {
    let below = (BELOW, HANDLE | 1);
    Request::new(libc::RTM_NEWQDISC, CREATE | REPLACE, tbf_message(interface, below, tbf))
}

/// Changes the root qdisc, which must be a token bucket from [`replace_tbf`], and keeps its queue.
pub fn change_tbf(interface: u32, tbf: &Tbf) -> Request {
    Request::new(libc::RTM_NEWQDISC, 0, tbf_message(interface, ROOT, tbf))
}

/// Deletes the interface's root qdisc. The kernel's default qdisc replaces it.
pub fn delete_root(interface: u32) -> Request {
    Request::new(libc::RTM_DELQDISC, 0, header(interface, 0, TC_H_ROOT))
}

/// Deletes the child of the interface's root qdisc, from [`replace_tbf_below`].
pub fn delete_below(interface: u32) -> Request {
    Request::new(libc::RTM_DELQDISC, 0, header(interface, 0, HANDLE | 1))
}

pub(crate) fn header(interface: u32, handle: u32, parent: u32) -> Vec<u8> {
    let words = [0, interface, handle, parent, 0];
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn tbf_message(interface: u32, (handle, parent): (u32, u32), tbf: &Tbf) -> Vec<u8> {
    let bytes_per_second = tbf.rate.bytes_per_second();
    // struct tc_ratespec: cell_log, linklayer, overhead, cell_align, mpu, rate. A rate of all ones
    // means that TCA_TBF_RATE64 carries it.
    let rate = u32::try_from(bytes_per_second).unwrap_or(u32::MAX);
    let mut parameters = vec![0, TC_LINKLAYER_ETHERNET, 0, 0, 0, 0, 0, 0];
    parameters.extend_from_slice(&rate.to_ne_bytes());
    // struct tc_tbf_qopt: rate, no peak rate, limit, buffer (TCA_TBF_BURST carries it), mtu
    parameters.extend_from_slice(&[0; 12]);
    for word in [tbf.limit_bytes, 0, 0] {
        parameters.extend_from_slice(&word.to_ne_bytes());
    }
    let mut message = Writer(header(interface, handle, parent));
    message.put_text(TCA_KIND, "tbf").nest(TCA_OPTIONS, |options| {
        options.put(TCA_TBF_PARMS, &parameters);
        options.put(TCA_TBF_BURST, &tbf.burst_bytes.to_ne_bytes());
        if u64::from(rate) != bytes_per_second {
            options.put(TCA_TBF_RATE64, &bytes_per_second.to_ne_bytes());
        }
    });
    message.0
}

/// The counters of an interface's root qdisc since its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QdiscStats {
    /// The interface's index.
    pub interface: u32,
    /// Bytes sent, including the headers of every segment of a GSO packet.
    pub bytes: u64,
    /// Packets sent; every segment of a GSO packet counts.
    pub packets: u64,
    /// Packets dropped; wraps at 2³².
    pub drops: u32,
    /// Bytes queued.
    pub backlog_bytes: u32,
    /// Times a packet had to wait for tokens; wraps at 2³².
    pub overlimits: u32,
    /// The shaping rate, if the root is a token bucket or netem with one as its child.
    pub rate: Option<Bandwidth>,
}

impl Handle {
    /// The counters of every interface's root qdisc, in one request.
    pub fn qdisc_stats(&mut self) -> Result<Vec<QdiscStats>> {
        let body = header(0, 0, 0);
        let all = self.socket.dump("read the queues' counters", libc::RTM_GETQDISC, &body, read)?;
        let (roots, below): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.is_root);
        let buckets: HashMap<u32, _> =
            below.into_iter().map(|one| (one.stats.interface, one.stats.rate)).collect();
        let with_rate = |mut stats: QdiscStats| {
            if let Some(rate) = buckets.get(&stats.interface) {
                stats.rate = *rate;
            }
            stats
        };
        Ok(roots.into_iter().map(|root| with_rate(root.stats)).collect())
    }
}

/// A qdisc that is counted: a root, or the token bucket below one. The root reports the bucket's
/// rate.
struct Seen {
    is_root: bool,
    stats: QdiscStats,
}

/// Reads the counters; None for any other qdisc.
fn read(body: &[u8]) -> Result<Option<Seen>, DecodeError> {
    let parent = u32_at(body, 12)?;
    let is_root = parent == TC_H_ROOT;
    if !is_root && parent != HANDLE | 1 {
        return Ok(None);
    }
    let mut stats = QdiscStats { interface: u32_at(body, 4)?, ..QdiscStats::default() };
    let mut packets64 = None;
    let mut is_tbf = false;
    for attribute in each(after(body, HEADER)?) {
        let attribute = attribute?;
        match attribute.kind() {
            TCA_KIND => is_tbf = text(attribute.value()) == "tbf",
            TCA_OPTIONS if is_tbf => stats.rate = tbf_rate(attribute.value())?,
            TCA_STATS2 => read_counters(attribute.value(), &mut stats, &mut packets64)?,
            _ => {}
        }
    }
    stats.packets = packets64.unwrap_or(stats.packets);
    Ok(Some(Seen { is_root, stats }))
}

fn read_counters(
    body: &[u8],
    stats: &mut QdiscStats,
    packets64: &mut Option<u64>,
) -> Result<(), DecodeError> {
    for attribute in each(body) {
        let attribute = attribute?;
        let value = attribute.value();
        match attribute.kind() {
            TCA_STATS_BASIC => {
                stats.bytes = u64_at(value, 0)?;
                stats.packets = u32_at(value, 8)?.into();
            }
            // Only present once 32 bits do not suffice.
            TCA_STATS_PKT64 => *packets64 = Some(u64_at(value, 0)?),
            // struct gnet_stats_queue: qlen, backlog, drops, requeues, overlimits
            TCA_STATS_QUEUE => {
                stats.backlog_bytes = u32_at(value, 4)?;
                stats.drops = u32_at(value, 8)?;
                stats.overlimits = u32_at(value, 16)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// The rate in a token bucket's options, which the kernel keeps in bytes per second.
fn tbf_rate(body: &[u8]) -> Result<Option<Bandwidth>, DecodeError> {
    let mut bytes_per_second = 0;
    for attribute in each(body) {
        let attribute = attribute?;
        match attribute.kind() {
            // struct tc_tbf_qopt starts with a struct tc_ratespec, which ends with the rate.
            TCA_TBF_PARMS => bytes_per_second = u32_at(attribute.value(), 8)?.into(),
            // Only present if the rate does not fit into 32 bits.
            TCA_TBF_RATE64 => {
                bytes_per_second = u64_at(attribute.value(), 0)?;
                break;
            }
            _ => {}
        }
    }
    Ok((bytes_per_second > 0).then(|| Bandwidth::from_bps(bytes_per_second.saturating_mul(8))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{in_namespace, output, veth};
    use crate::{Mac, add_neighbor};

    #[test]
    fn a_bucket_holds_two_frames_and_a_millisecond() {
        let burst = |rate: &str| Tbf::new(rate.parse().unwrap(), 1500, 1).burst_bytes;
        for (rate, expected) in [
            ("1mbit", 3028),
            ("100mbit", 12_500),
            ("250mbit", 31_250),
            ("300mbit", 68 << 10),
            ("5gbit", 625_000),
        ] {
            assert_eq!(burst(rate), expected, "{rate}");
        }
    }

    #[test]
    fn root_a_token_bucket_is_made_changed_counted_and_deleted() {
        in_namespace(|| {
            let mut handle = Handle::new().unwrap();
            let [interface, _] = veth(&mut handle);
            let show = || output("tc", "qdisc show dev a");
            let tbf = |rate: &str| Tbf::new(rate.parse().unwrap(), 1500, 30_000);

            handle.request("tbf", replace_tbf(interface, &tbf("100mbit"))).unwrap();
            assert!(show().contains("qdisc tbf 1: root refcnt"), "{}", show());
            assert!(show().contains("rate 100Mbit burst 12500b"), "{}", show());
            handle.request("tbf", change_tbf(interface, &tbf("40gbit"))).unwrap();
            assert!(show().contains("rate 40Gbit"), "{}", show());

            // 30 datagrams of 1042 bytes on the wire at 80 kbit/s: two leave at once, 20 of the
            // other 28 fit the queue, and the rest is dropped.
            let slow = Tbf { burst_bytes: 3028, limit_bytes: 20 * 1042, ..tbf("80kbit") };
            handle.request("tbf", change_tbf(interface, &slow)).unwrap();
            let address = "10.0.0.2".parse().unwrap();
            output("ip", "addr add 10.0.0.1/24 dev a");
            let mac = Mac([2, 0, 0, 0, 0, 2]);
            handle.request("neighbor", add_neighbor(interface, address, mac)).unwrap();
            let before = root(&mut handle, interface);
            let socket = std::net::UdpSocket::bind("10.0.0.1:0").unwrap();
            for _ in 0..30 {
                // A drop in the queue is returned as an error here, and is counted.
                let _ = socket.send_to(&[0; 1000], "10.0.0.2:9");
            }
            let stats = root(&mut handle, interface);
            assert!((15..=20).contains(&(stats.backlog_bytes / 1042)), "{stats:?}");
            assert!(stats.drops - before.drops >= 5, "{stats:?}");
            assert!(stats.overlimits > before.overlimits, "{stats:?}");
            assert!(stats.packets > before.packets && stats.bytes > before.bytes, "{stats:?}");

            handle.request("delete", delete_root(interface)).unwrap();
            assert!(!show().contains("tbf"), "{}", show());
            assert!(handle.request("tbf", change_tbf(interface, &slow)).is_err());
        });
    }

    fn root(handle: &mut Handle, interface: u32) -> QdiscStats {
        let all = handle.qdisc_stats().unwrap();
        *all.iter().find(|stats| stats.interface == interface).unwrap()
    }
}
