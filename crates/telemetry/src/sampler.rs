//! Samples of every interface of one namespace.

use std::time::{SystemTime, UNIX_EPOCH};

use netlink::{Error, Handle, Namespace, Sample};

/// One interface at one point in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceSample {
    /// The time at which the counters were read, in nanoseconds since 1970. All nodes of a lab
    /// share this clock.
    pub sampled_ns: u64,
    /// The counters and the carrier state at that time.
    pub counters: Sample,
}

/// Reads the counters of all interfaces of a namespace, except the loopback. Create it once and
/// reuse it: a sample then costs three requests on its open socket.
#[derive(Debug)]
pub struct Sampler {
    handle: Handle,
}

impl Sampler {
    /// A sampler of the calling thread's namespace. It stays in that namespace even if another
    /// thread uses it.
    pub fn new() -> Result<Self, Error> {
        Ok(Self { handle: Handle::new()? })
    }

    /// A sampler of `namespace`.
    pub fn within(namespace: &Namespace) -> Result<Self, Error> {
        Ok(Self { handle: Handle::within(namespace)? })
    }

    /// The current counters of all interfaces, ordered by index. All have the same timestamp, the
    /// middle of the read, because a rate is a difference of counters divided by a difference of
    /// timestamps.
    pub fn sample(&mut self) -> Result<Vec<InterfaceSample>, Error> {
        let before = now_ns();
        let counters = self.handle.samples()?;
        let sampled_ns = before + now_ns().saturating_sub(before) / 2;
        let stamped = |counters| InterfaceSample { sampled_ns, counters };
        Ok(counters.into_iter().map(stamped).collect())
    }
}

/// CLOCK_REALTIME. A time before 1970 is returned as 1970.
fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // 64 bits of nanoseconds last until the year 2554.
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink::{VethEnd, add_veth, delete_link, set_up};

    #[test]
    fn root_interfaces_come_count_and_go() {
        let (left, right) = (Namespace::unnamed().unwrap(), Namespace::unnamed().unwrap());
        let mut sampler = Sampler::within(&left).unwrap();
        assert_eq!(sampler.sample().unwrap(), []);
        let end =
            |name, namespace| VethEnd { name, namespace, mtu: 1500, mac: None, index: Some(7) };
        let mut handle = Handle::within(&left).unwrap();
        handle.request("veth", add_veth(&end("a", &left), &end("b", &right))).unwrap();
        handle.request("up", set_up(7)).unwrap();
        let start = now_ns();
        let [first] = sampler.sample().unwrap().try_into().unwrap();
        assert_eq!((first.counters.name.as_str(), first.counters.interface), ("a", 7));
        assert!(!first.counters.carrier && first.counters.tx_packets == 0);
        assert!((start..now_ns()).contains(&first.sampled_ns));

        // The first packets: IPv6 neighbor discovery on the new link.
        Handle::within(&right).unwrap().request("up", set_up(7)).unwrap();
        let sent = (0..5000).find_map(|_| {
            let [sample] = sampler.sample().unwrap().try_into().unwrap();
            std::thread::yield_now();
            Some(sample).filter(|sample: &InterfaceSample| sample.counters.tx_packets > 0)
        });
        let sent = sent.expect("a packet within 5000 samples");
        assert!(sent.counters.carrier && sent.counters.tx_bytes >= 14);
        assert!(sent.sampled_ns > first.sampled_ns);
        handle.request("delete", delete_link("a")).unwrap();
        assert_eq!(sampler.sample().unwrap(), []);
    }
}
