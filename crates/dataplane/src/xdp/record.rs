//! The record of a SID in the program's tables: its behavior, with the arguments in the form that the
//! program reads.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::{Ipv4Addr, Ipv6Addr};

use bpf::srv6::types::{self, behavior, sid_flag};
use ipnet::Ipv6Net;
use srv6::LookUp;

use super::{Behavior, Endpoint, PolicyId, Proxy, Tables};
use crate::Error;

impl Tables {
    /// Returns the record of a SID, without counter and version, and writes the entries that it
    /// refers to. `returned`: counter of packets that return from a service function.
    pub(super) fn sid_record(
        &mut self,
        sid: Ipv6Net,
        endpoint: &Endpoint,
        returned: u32,
    ) -> Result<types::sid, Error> {
        let mut value = types::sid {
            address: bpf::words(sid.network()),
            length: sid.prefix_len(),
            outer: endpoint.tags.outer,
            inner: endpoint.tags.inner,
            ..types::sid::default()
        };
        let flavors = endpoint.flavors;
        for (set, bit) in [
            (flavors.psp, sid_flag::SID_PSP),
            (flavors.usp, sid_flag::SID_USP),
            (flavors.usd, sid_flag::SID_USD),
            (flavors.next_csid.is_some(), sid_flag::SID_NEXT_CSID),
            (endpoint.in_kernel, sid_flag::SID_IN_KERNEL),
        ] {
            value.flags |= if set { bit.0 as u8 } else { 0 };
        }
        if let Some(lengths) = flavors.next_csid {
            value.csid = ((lengths.block_bits / 8) << 4) | (lengths.node_function_bits / 8);
        }
        let (number, target) = self.argument(sid, &endpoint.behavior, returned)?;
        (value.behavior, value.target) = (number.0 as u8, target);
        Ok(value)
    }

    /// Returns the number of a behavior in the program, and its argument.
    fn argument(
        &mut self,
        sid: Ipv6Net,
        of: &Behavior,
        returned: u32,
    ) -> Result<(behavior, [u64; 2]), Error> {
        Ok(match of {
            Behavior::End => (behavior::BEHAVIOR_END, [0; 2]),
            Behavior::EndX { next_hop } => (behavior::BEHAVIOR_END_X, next_hop6(*next_hop)),
            Behavior::EndT { table } => (behavior::BEHAVIOR_END_T, looked_up_in(*table)),
            Behavior::EndDx2 { port } => (behavior::BEHAVIOR_END_DX2, [u64::from(*port), 0]),
            Behavior::EndDx4 { next_hop } => (behavior::BEHAVIOR_END_DX4, next_hop4(*next_hop)),
            Behavior::EndDx6 { next_hop } => (behavior::BEHAVIOR_END_DX6, next_hop6(*next_hop)),
            Behavior::EndDt4 { table } => (behavior::BEHAVIOR_END_DT4, looked_up_in(*table)),
            Behavior::EndDt6 { table } => (behavior::BEHAVIOR_END_DT6, looked_up_in(*table)),
            Behavior::EndDt46 { table } => (behavior::BEHAVIOR_END_DT46, looked_up_in(*table)),
            Behavior::EndB6Encaps { policy } => {
                (behavior::BEHAVIOR_END_B6_ENCAPS, [u64::from(self.record(policy)?), 0])
            }
            Behavior::EndAnNf { answers } => {
                let way = answers.as_ref().map_or(Ok(0), |policy| self.way_back(policy))?;
                (behavior::BEHAVIOR_END_AN_NF, [u64::from(returned), u64::from(way)])
            }
            Behavior::EndAs { proxy, policy } => {
                let number = behavior::BEHAVIOR_END_AS;
                (number, self.proxy(sid, proxy, number, self.record(policy)?, returned))
            }
            Behavior::EndAd { proxy } => {
                let number = behavior::BEHAVIOR_END_AD;
                (number, self.proxy(sid, proxy, number, 0, returned))
            }
            Behavior::EndAm { proxy } => {
                let number = behavior::BEHAVIOR_END_AM;
                (number, self.proxy(sid, proxy, number, 0, returned))
            }
        })
    }

    /// Writes a SID's proxy and returns its argument.
    fn proxy(
        &self,
        sid: Ipv6Net,
        proxy: &Proxy,
        number: behavior,
        policy: u32,
        returned: u32,
    ) -> [u64; 2] {
        let at = self.proxies.place(&self.srv6, sid, proxy, number, policy, returned);
        [u64::from(returned), u64::from(at)]
    }

    /// Returns the number of the return policy for replies to a service function's packets, after
    /// writing its current policy; 0 for none.
    fn way_back(&mut self, id: &PolicyId) -> Result<u32, Error> {
        let way = way_back(id);
        if *self.ways_back.entry(way).or_insert_with(|| id.clone()) != *id {
            tracing::warn!("answers of one service function are dropped: two ways have one number");
            return Ok(0);
        }
        self.srv6.ways_back.set(&way, &self.record(id)?)?;
        Ok(way)
    }
}

fn next_hop4(address: Ipv4Addr) -> [u64; 2] {
    [u64::from(u32::from_ne_bytes(address.octets())), 0]
}

fn next_hop6(address: Ipv6Addr) -> [u64; 2] {
    bpf::words(address)
}

/// The VRF, if there is one, determines the table.
fn looked_up_in(LookUp { table, vrf }: LookUp) -> [u64; 2] {
    match vrf {
        Some(vrf) => [0, u64::from(vrf)],
        None => [u64::from(table), 0],
    }
}

/// Returns the number of a return policy, not 0, in 28 bits (`passage.h`). It is the same in every
/// process of a build, since packets in service functions outlive the daemon. Replies for another
/// build's numbers are dropped.
fn way_back(policy: &PolicyId) -> u32 {
    let mut hasher = DefaultHasher::new();
    policy.hash(&mut hasher);
    ((hasher.finish() >> 36) as u32).max(1)
}
