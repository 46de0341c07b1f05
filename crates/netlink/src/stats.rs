//! A sample of the counters of every interface and its queue.

use std::collections::HashMap;

use model::Bandwidth;

use crate::{Handle, Result};

/// An interface's counters since its creation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sample {
    /// The interface's index.
    pub interface: u32,
    /// The interface's name.
    pub name: String,
    /// True if both the interface and its peer are up.
    pub carrier: bool,
    /// Bytes sent, Ethernet header included.
    pub tx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes received, Ethernet header included.
    pub rx_bytes: u64,
    /// Packets received.
    pub rx_packets: u64,
    /// Outgoing packets that the queue or the interface dropped.
    pub drops: u64,
    /// Bytes queued.
    pub backlog_bytes: u64,
    /// The shaping rate of the queue, if it shapes.
    pub rate: Option<Bandwidth>,
}

impl Handle {
    /// Samples all interfaces except the loopback, by index, in three requests.
    pub fn samples(&mut self) -> Result<Vec<Sample>> {
        let (links, queues) = (self.links()?, self.qdisc_stats()?);
        let queues: HashMap<u32, _> =
            queues.into_iter().map(|queue| (queue.interface, queue)).collect();
        let loopback = 1;
        Ok(links
            .into_iter()
            .filter(|link| link.index != loopback)
            .map(|link| {
                let queue = queues.get(&link.index).copied().unwrap_or_default();
                Sample {
                    interface: link.index,
                    name: link.name,
                    carrier: link.up && link.carrier,
                    // A veth counts the headers of a GSO packet once. The qdisc
                    // (qdisc_pkt_len) counts them once per segment, as a wire would. The qdisc
                    // counters are 0 on an interface without a queue, and a qdisc that was attached
                    // later has missed earlier packets.
                    tx_bytes: link.stats.tx_bytes.max(queue.bytes),
                    tx_packets: link.stats.tx_packets.max(queue.packets),
                    rx_bytes: link.stats.rx_bytes,
                    rx_packets: link.stats.rx_packets,
                    drops: link.stats.tx_dropped + u64::from(queue.drops),
                    backlog_bytes: queue.backlog_bytes.into(),
                    rate: queue.rate,
                }
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{in_namespace, output, veth};
    use crate::{Mac, Tbf, add_neighbor, replace_tbf, set_down};

    #[test]
    fn root_a_sample_counts_sent_packets_and_notices_a_removed_peer() {
        in_namespace(|| {
            let mut handle = Handle::new().unwrap();
            let [a, b] = veth(&mut handle);
            let tbf = Tbf::new("1gbit".parse().unwrap(), 1500, 1 << 20);
            handle.request("tbf", replace_tbf(a, &tbf)).unwrap();
            output("ip", "addr add 10.0.0.1/24 dev a");
            let mac = Mac([2, 0, 0, 0, 0, 2]);
            let peer = "10.0.0.2".parse().unwrap();
            handle.request("neighbor", add_neighbor(a, peer, mac)).unwrap();

            let of = |handle: &mut Handle, name: &str| {
                handle.samples().unwrap().into_iter().find(|s| s.name == name).unwrap()
            };
            let before = of(&mut handle, "a");
            let socket = std::net::UdpSocket::bind("10.0.0.1:0").unwrap();
            for _ in 0..10 {
                socket.send_to(&[0; 1000], "10.0.0.2:9").unwrap();
            }
            let after = of(&mut handle, "a");
            // 14 Ethernet, 20 IPv4, 8 UDP; IPv6 router solicitations may add to this.
            let bytes = after.tx_bytes - before.tx_bytes;
            assert!((10_420..12_000).contains(&bytes), "{bytes}");
            assert!(after.carrier && after.drops == 0 && after.backlog_bytes == 0, "{after:?}");
            assert!(of(&mut handle, "b").rx_bytes >= 10_420);

            handle.request("down", set_down(b)).unwrap();
            assert!(!of(&mut handle, "a").carrier);
        });
    }
}
