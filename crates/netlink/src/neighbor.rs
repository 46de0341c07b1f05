//! The neighbor table: link-layer addresses, learned or configured, and probing of neighbors.

use std::net::IpAddr;
use std::time::Duration;

use netlink_packet_core::DecodeError;

use crate::attribute::{Writer, after, array, each, u32_at};
use crate::route::address as ip;
use crate::socket::{CREATE, EXCL, REPLACE};
use crate::{Handle, Mac, Request, Result};

// linux/neighbour.h
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NDA_IFINDEX: u16 = 8;
const NUD_INCOMPLETE: u16 = 0x01;
const NUD_REACHABLE: u16 = 0x02;
const NUD_STALE: u16 = 0x04;
const NUD_DELAY: u16 = 0x08;
const NUD_PROBE: u16 = 0x10;
const NUD_FAILED: u16 = 0x20;
const NUD_NOARP: u16 = 0x40;
const NUD_PERMANENT: u16 = 0x80;
const NTF_USE: u8 = 1 << 0;
const NTF_PROXY: u8 = 1 << 3;
/// struct ndmsg: family, three bytes of padding, interface, state (u16), flags, type.
const HEADER: usize = 12;

/// The state of a neighbor entry (RFC 4861 section 7.3.2; the same for ARP).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NeighborState {
    /// No resolution has started yet.
    None,
    /// Resolution is in progress: solicited, no reply yet.
    Incomplete,
    /// Reachability was confirmed recently.
    Reachable,
    /// Reachability was confirmed once. The next use triggers a probe.
    Stale,
    /// In use; a probe follows after a short delay.
    Delay,
    /// Probes are being sent.
    Probe,
    /// Resolution failed: the neighbor did not answer.
    Failed,
    /// No resolution needed: loopback, multicast.
    NoArp,
    /// Configured by an administrator.
    Permanent,
}

impl NeighborState {
    /// Returns true if packets are sent to the known MAC address in this state (the kernel's
    /// NUD_VALID).
    pub fn is_valid(self) -> bool {
        !matches!(self, Self::None | Self::Incomplete | Self::Failed)
    }

    /// NUD_*: at most one bit is set.
    fn from_bits(bits: u16) -> Self {
        match bits {
            NUD_INCOMPLETE => Self::Incomplete,
            NUD_REACHABLE => Self::Reachable,
            NUD_STALE => Self::Stale,
            NUD_DELAY => Self::Delay,
            NUD_PROBE => Self::Probe,
            NUD_FAILED => Self::Failed,
            NUD_NOARP => Self::NoArp,
            NUD_PERMANENT => Self::Permanent,
            _ => Self::None,
        }
    }
}

/// A neighbor entry, identified by interface and address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Neighbor {
    /// The interface's index.
    pub interface: u32,
    /// The IPv4 or IPv6 address.
    pub address: IpAddr,
    /// The MAC address, once resolved. It stays after reachability has expired, so check the state
    /// too.
    pub mac: Option<Mac>,
    /// The state of the entry.
    pub state: NeighborState,
}

/// Adds a permanent entry that maps `address` on `interface` to `mac`.
pub fn add_neighbor(interface: u32, address: IpAddr, mac: Mac) -> Request {
    let mut body = body(interface, address, NUD_PERMANENT, 0);
    body.put(NDA_LLADDR, &mac.0);
    Request::new(libc::RTM_NEWNEIGH, CREATE | REPLACE, body.0)
}

fn body(interface: u32, address: IpAddr, state: u16, flags: u8) -> Writer {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let mut body = vec![family as u8, 0, 0, 0];
    body.extend_from_slice(&interface.to_ne_bytes());
    body.extend_from_slice(&state.to_ne_bytes());
    body.extend_from_slice(&[flags, 0]);
    let mut body = Writer(body);
    match address {
        IpAddr::V4(address) => body.put(NDA_DST, &address.octets()),
        IpAddr::V6(address) => body.put(NDA_DST, &address.octets()),
    };
    body
}

impl Handle {
    /// The IPv4 and IPv6 neighbors of one interface, or of all.
    pub fn neighbors(&mut self, interface: Option<u32>) -> Result<Vec<Neighbor>> {
        let mut body = Writer(vec![0; HEADER]);
        if let Some(interface) = interface {
            body.put(NDA_IFINDEX, &interface.to_ne_bytes());
        }
        self.socket.dump("list the neighbors", libc::RTM_GETNEIGH, &body.0, |body| {
            Ok(neighbor(body)?.filter(|n| interface.is_none_or(|index| index == n.interface)))
        })
    }

    /// Makes the kernel behave as if a packet for `address` had just left through `interface`. An
    /// unknown neighbor is solicited immediately. A stale one is probed unless its reachability is
    /// confirmed within `delay_first_probe_time` (5 s). Reachable and permanent entries are
    /// unaffected. The result appears in [`Handle::neighbors`] and as an event.
    pub fn probe_neighbor(&mut self, interface: u32, address: IpAddr) -> Result<()> {
        let operation = format!("probe the neighbor {address}");
        let mut known = self.find_neighbor(&operation, interface, address)?;
        if known.is_some_and(|known| known.state == NeighborState::None) {
            // An entry that is being added has no state for a moment (Linux 6.14 and later, which
            // answers without the RTNL lock).
            std::thread::park_timeout(Duration::from_millis(1));
            known = self.find_neighbor(&operation, interface, address)?;
        }
        // NTF_USE would turn a permanent entry into a non-permanent one and discard its MAC address
        // (NEIGH_UPDATE_F_USE), and an administrator may set the entry between the request above
        // and the one below. So each request fails or does nothing if the entry is no longer as it
        // was read. Only a failed entry has no such request.
        let of_use = |flags| {
            let body = body(interface, address, 0, NTF_USE);
            Request::new(libc::RTM_NEWNEIGH, flags, body.0)
        };
        let request = match known {
            None => of_use(CREATE | EXCL),
            Some(Neighbor { state: NeighborState::Stale, mac: Some(mac), .. }) => {
                let mut body = body(interface, address, NUD_DELAY, 0);
                // Without NLM_F_REPLACE the kernel ignores the request if the MAC address differs.
                body.put(NDA_LLADDR, &mac.0);
                Request::new(libc::RTM_NEWNEIGH, 0, body.0)
            }
            Some(Neighbor { state: NeighborState::None | NeighborState::Failed, .. }) => of_use(0),
            // Confirmed, configured, or being resolved.
            Some(_) => return Ok(()),
        };
        match self.request(operation, request) {
            // Added or removed since it was read.
            Err(error) if error.is_exists() || error.is_not_found() => Ok(()),
            result => result,
        }
    }

    fn find_neighbor(
        &mut self,
        operation: &str,
        interface: u32,
        address: IpAddr,
    ) -> Result<Option<Neighbor>> {
        let question = body(interface, address, 0, 0).0;
        match self.socket.get(operation, libc::RTM_GETNEIGH, &question, neighbor) {
            Err(error) if error.is_not_found() => Ok(None),
            known => known,
        }
    }
}

/// Parses a neighbor; None for a bridge FDB entry or a proxy entry.
pub(crate) fn neighbor(body: &[u8]) -> Result<Option<Neighbor>, DecodeError> {
    let [family, ..] = array::<HEADER>(body, 0)?;
    let known = matches!(i32::from(family), libc::AF_INET | libc::AF_INET6);
    if !known || body[10] & NTF_PROXY != 0 {
        return Ok(None);
    }
    let state = NeighborState::from_bits(u16::from_ne_bytes(array(body, 8)?));
    let (mut address, mut mac) = (None, None);
    for attribute in each(after(body, HEADER)?) {
        let attribute = attribute?;
        match attribute.kind() {
            NDA_DST => address = Some(ip(attribute.value())?),
            NDA_LLADDR => mac = attribute.value().try_into().ok().map(Mac),
            _ => {}
        }
    }
    let interface = u32_at(body, 4)?;
    Ok(address.map(|address| Neighbor { interface, address, mac, state }))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::testing::{in_namespace, output, veth};
    use crate::{Address, Namespace, VethEnd, add_address, add_veth, set_up};

    #[test]
    fn root_neighbors_stay() {
        in_namespace(|| {
            let mut handle = Handle::new().unwrap();
            let [interface, other] = veth(&mut handle);
            for address in ["10.0.0.9", "fe80::9"] {
                let mac = Mac([2, 0, 0, 0, 0, 9]);
                let address = address.parse().unwrap();
                handle.request("neighbor", add_neighbor(interface, address, mac)).unwrap();
                let shown = output("ip", &format!("neigh show {address} dev a"));
                assert!(shown.contains("lladdr 02:00:00:00:00:09 PERMANENT"), "{shown}");
                let state = NeighborState::Permanent;
                let wanted = Neighbor { interface, address, mac: Some(mac), state };
                assert!(handle.neighbors(None).unwrap().contains(&wanted));
                assert!(handle.neighbors(Some(interface)).unwrap().contains(&wanted));
                assert!(!handle.neighbors(Some(other)).unwrap().contains(&wanted));
                // Probing changes nothing.
                handle.probe_neighbor(interface, address).unwrap();
                assert!(handle.neighbors(Some(interface)).unwrap().contains(&wanted));
            }
        });
    }

    #[test]
    fn root_a_probe_keeps_a_permanent_entry_that_is_set_meanwhile() {
        const ROUNDS: u32 = 5000;
        let address = |round: u32| IpAddr::from((0x0a00_0001 + round).to_be_bytes());
        in_namespace(|| {
            let mut handle = Handle::new().unwrap();
            let [interface, _] = veth(&mut handle);
            handle.request("up", set_up(interface)).unwrap();
            let (round, probes) = (AtomicU32::new(0), AtomicU32::new(0));
            let here = Namespace::current().unwrap();
            let probe = || {
                let mut handle = Handle::within(&here).unwrap();
                loop {
                    let round = round.load(Ordering::SeqCst);
                    if round == ROUNDS {
                        break;
                    }
                    handle.probe_neighbor(interface, address(round)).unwrap();
                    probes.fetch_add(1, Ordering::SeqCst);
                }
            };
            let mac = Mac([2, 0, 0, 0, 0, 9]);
            std::thread::scope(|scope| {
                scope.spawn(probe);
                for now in 0..ROUNDS {
                    round.store(now, Ordering::SeqCst);
                    // The addition falls into all phases of a probe.
                    let start = Instant::now();
                    while start.elapsed() < Duration::from_nanos(u64::from(now) * 10) {}
                    handle.request("add", add_neighbor(interface, address(now), mac)).unwrap();
                    let before = probes.load(Ordering::SeqCst);
                    // The second probe has begun after the entry was added.
                    while probes.load(Ordering::SeqCst) < before + 2 {
                        std::thread::yield_now();
                    }
                }
                round.store(ROUNDS, Ordering::SeqCst);
            });
            let found = HashSet::<_>::from_iter(handle.neighbors(Some(interface)).unwrap());
            for now in 0..ROUNDS {
                let (address, state) = (address(now), NeighborState::Permanent);
                let wanted = Neighbor { interface, address, mac: Some(mac), state };
                assert!(found.contains(&wanted), "{wanted:?}");
            }
        });
    }

    #[test]
    fn root_a_probe_finds_present_and_absent_neighbors() {
        in_namespace(|| {
            let (left, right) = (Namespace::unnamed().unwrap(), Namespace::unnamed().unwrap());
            let mac = Mac([2, 0, 0, 0, 0, 2]);
            let end =
                |namespace, mac| VethEnd { name: "a", namespace, mtu: 1500, mac, index: Some(7) };
            let mut here = Handle::new().unwrap();
            here.request("veth", add_veth(&end(&left, None), &end(&right, Some(mac)))).unwrap();
            let [mut left, mut right] = [&left, &right].map(|n| Handle::within(n).unwrap());
            for (handle, nets) in [
                (&mut left, ["10.0.0.1/24", "fd00:a::1/64"]),
                (&mut right, ["10.0.0.2/24", "fd00:a::2/64"]),
            ] {
                handle.request("up", set_up(7)).unwrap();
                for net in nets {
                    let address = Address { interface: 7, net: net.parse().unwrap() };
                    handle.request(net, add_address(address)).unwrap();
                }
            }
            let mut until = |address: &str, state: fn(&Neighbor) -> bool| {
                let address: IpAddr = address.parse().unwrap();
                let end = Instant::now() + Duration::from_secs(10);
                loop {
                    let found = left.neighbors(Some(7)).unwrap();
                    if let Some(one) = found.iter().find(|n| n.address == address && state(n)) {
                        return *one;
                    }
                    assert!(Instant::now() < end, "{address}: {found:?}");
                    left.probe_neighbor(7, address).unwrap();
                    std::thread::yield_now();
                }
            };
            for there in ["10.0.0.2", "fd00:a::2"] {
                let found = until(there, |n| n.state == NeighborState::Reachable);
                assert_eq!(found.mac, Some(mac));
                assert!(found.state.is_valid());
            }
            for nobody in ["10.0.0.9", "fd00:a::9"] {
                let found = until(nobody, |n| n.state == NeighborState::Incomplete);
                assert_eq!(found.mac, None);
                assert!(!found.state.is_valid());
            }
        });
    }
}
