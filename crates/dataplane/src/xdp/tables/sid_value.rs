//! The value of a SID in the program's tables: its behavior, with the arguments in the form that the
//! program reads.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use bpf::srv6::types::{self, behavior, sid_flag};
use ipnet::Ipv6Net;
use srv6::{GtpTunnel, LookUp, PduSession};

use super::Tables;
use crate::Error;
use crate::forwarding::{Behavior, Endpoint, PolicyId, Proxy};

impl Tables {
    /// Returns the value of a SID, without counter and version, and writes the entries that it
    /// refers to. `returned`: counter of packets that return from a service function.
    pub(super) fn sid_value(
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
        let (flavors, pdu_session) = (endpoint.flavors, endpoint.behavior.pdu_session());
        for (set, bit) in [
            (flavors.psp, sid_flag::SID_PSP),
            (flavors.usd, sid_flag::SID_USD),
            (flavors.next_csid.is_some(), sid_flag::SID_NEXT_CSID),
            (flavors.replace_csid.is_some(), sid_flag::SID_REPLACE_CSID),
            (endpoint.in_kernel, sid_flag::SID_IN_KERNEL),
            (pdu_session.is_some(), sid_flag::SID_PDU_SESSION),
            (pdu_session == Some(PduSession::Uplink), sid_flag::SID_UPLINK),
        ] {
            value.flags |= if set { bit.0 as u8 } else { 0 };
        }
        if let Some(lengths) = flavors.csid() {
            value.csid = ((lengths.block_bits / 8) << 4) | (lengths.node_function_bits / 8);
        }
        let (number, params) = self.params(sid, &endpoint.behavior, returned)?;
        (value.behavior, value.params) = (number.0 as u8, params);
        Ok(value)
    }

    /// Returns the number of a behavior in the program, and its parameters.
    fn params(
        &mut self,
        sid: Ipv6Net,
        of: &Behavior,
        returned: u32,
    ) -> Result<(behavior, types::sid_params), Error> {
        // The bytes that a member leaves are zero.
        let mut params = types::sid_params::default();
        let number = match of {
            Behavior::End => behavior::BEHAVIOR_END,
            Behavior::EndX { next_hop } => {
                params.next_hop6 = bpf::words(*next_hop);
                behavior::BEHAVIOR_END_X
            }
            Behavior::EndT { table } => {
                params.table = looked_up_in(*table);
                behavior::BEHAVIOR_END_T
            }
            Behavior::EndDx2 { port } => {
                params.port = *port;
                behavior::BEHAVIOR_END_DX2
            }
            Behavior::EndDx2v { vlans } => {
                let mut table = [types::sid_vlan::default(); 4];
                for (entry, (vlan, port)) in table.iter_mut().zip(vlans) {
                    // The port's entry in `ports`, which fits.
                    let port = (port & (types::limit::LIMIT_PORTS.0 - 1)) as u16;
                    *entry = types::sid_vlan { vlan: *vlan, port };
                }
                params.vlans = table;
                behavior::BEHAVIOR_END_DX2V
            }
            Behavior::EndDx4 { next_hop } => {
                params.next_hop4 = u32::from_ne_bytes(next_hop.octets());
                behavior::BEHAVIOR_END_DX4
            }
            Behavior::EndDx6 { next_hop } => {
                params.next_hop6 = bpf::words(*next_hop);
                behavior::BEHAVIOR_END_DX6
            }
            Behavior::EndDt4 { table } => {
                params.table = looked_up_in(*table);
                behavior::BEHAVIOR_END_DT4
            }
            Behavior::EndDt6 { table } => {
                params.table = looked_up_in(*table);
                behavior::BEHAVIOR_END_DT6
            }
            Behavior::EndDt46 { table } => {
                params.table = looked_up_in(*table);
                behavior::BEHAVIOR_END_DT46
            }
            Behavior::EndB6Encaps { policy } => {
                params.policy = self.policy_index(policy)?;
                behavior::BEHAVIOR_END_B6_ENCAPS
            }
            Behavior::EndB6Insert { policy } => {
                params.policy = self.policy_index(policy)?;
                behavior::BEHAVIOR_END_B6_INSERT
            }
            Behavior::EndMGtp6D { policy } | Behavior::EndMGtp6DDi { policy } => {
                params.policy = self.policy_index(policy)?;
                behavior::BEHAVIOR_END_M_GTP6_D
            }
            Behavior::EndMGtp4E { tunnel, source_args } => {
                params.gtp = gtp(tunnel, *source_args);
                behavior::BEHAVIOR_END_M_GTP4_E
            }
            Behavior::EndMGtp6E { tunnel } => {
                params.gtp = gtp(tunnel, 0);
                behavior::BEHAVIOR_END_M_GTP6_E
            }
            Behavior::EndAnNf { answers } => {
                let answers = answers.as_ref().map_or(Ok(0), |policy| self.way_back(policy))?;
                params.netfilter = types::sid_netfilter { returned, answers };
                behavior::BEHAVIOR_END_AN_NF
            }
            Behavior::EndAs { proxy, policy } => {
                let (number, policy) = (behavior::BEHAVIOR_END_AS, self.policy_index(policy)?);
                params.proxy = self.proxy(sid, proxy, number, policy, returned);
                number
            }
            Behavior::EndAd { proxy } => {
                let number = behavior::BEHAVIOR_END_AD;
                params.proxy = self.proxy(sid, proxy, number, 0, returned);
                number
            }
            Behavior::EndAm { proxy } => {
                let number = behavior::BEHAVIOR_END_AM;
                params.proxy = self.proxy(sid, proxy, number, 0, returned);
                number
            }
        };
        Ok((number, params))
    }

    /// Writes a SID's proxy and returns its parameters.
    fn proxy(
        &self,
        sid: Ipv6Net,
        proxy: &Proxy,
        number: behavior,
        policy: u32,
        returned: u32,
    ) -> types::sid_proxy {
        let number = self.proxies.place(&self.srv6, sid, proxy, number, policy, returned);
        types::sid_proxy { returned, number }
    }

    /// Returns the number of the return policy for replies to a service function's packets, after
    /// writing its current policy; 0 for none.
    fn way_back(&mut self, id: &PolicyId) -> Result<u32, Error> {
        let way = way_back(id);
        if *self.ways_back.entry(way).or_insert_with(|| id.clone()) != *id {
            tracing::warn!(
                "replies of a service function are dropped: its return policy {id:?} has the same number as another one"
            );
            return Ok(0);
        }
        self.srv6.return_policies.set(&way, &self.policy_index(id)?)?;
        Ok(way)
    }
}

/// `source_at`: position of the IPv4 source, in bits.
fn gtp(tunnel: &GtpTunnel<LookUp>, source_at: u8) -> types::sid_gtp {
    let table = tunnel.table.map(looked_up_in).unwrap_or_default();
    types::sid_gtp { table, source_at: source_at.into() }
}

/// The VRF, if there is one, determines the table.
fn looked_up_in(LookUp { table, vrf }: LookUp) -> types::sid_table {
    match vrf {
        Some(vrf) => types::sid_table { number: 0, vrf },
        None => types::sid_table { number: table, vrf: 0 },
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

#[cfg(test)]
mod tests {
    use std::process::Command;

    use bpf::Srv6;
    use bpf::measure::{run_once, verdict};
    use bpf::srv6::Sizes;
    use netlink::Handle;
    use types::reason;
    use wire::{Ethernet, Ipv6, ethertype};

    use super::*;
    use crate::forwarding::{Kernel, Links, Names, SlowPath, Tenants, resolve};

    const FILE: &str = "locators: [\"fd00:1::/48\"]\nports: {l: {}, r: {}}\n\
                        sids: {\"fd00:1::d2\": {behavior: End.DX2V, vlans: {10: l, 20: r}}}\n";
    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

    /// Returns a frame with a VLAN tag, or untagged, of `length` bytes after the tag.
    fn tagged(vlan: Option<u16>, length: usize) -> Vec<u8> {
        let mut frame = vec![2; 12];
        if let Some(vlan) = vlan {
            frame.extend([ethertype::VLAN.to_be_bytes(), vlan.to_be_bytes()].concat());
        }
        frame.extend(ethertype::IPV4.to_be_bytes());
        frame.resize(frame.len() + length, 7);
        frame
    }

    fn in_namespace(test: impl FnOnce() + Send + 'static) {
        let inside = || {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
            for line in [
                "link add dev l address 02:00:00:00:00:01 type veth peer name lp",
                "link add dev r type veth peer name rp",
                "link set dev l up mtu 2000",
                "link set dev lp up",
                "link set dev r up mtu 1000",
                "link set dev rp up",
            ] {
                assert!(Command::new("ip").args(line.split(' ')).status().unwrap().success());
            }
            test();
        };
        std::thread::spawn(inside).join().unwrap();
    }

    #[test]
    fn root_dx2v_sends_a_frame_on_the_port_of_its_vlan() {
        in_namespace(|| {
            let links = Handle::new().unwrap().links().unwrap();
            let l = links.iter().find(|link| link.name == "l").unwrap().index;
            let kernel = Kernel { links: links.clone(), ..Kernel::default() };
            let file = dataplane_file::parse("x", FILE).unwrap();
            let mut tenants = Tenants::default();
            let wanted = resolve(&file, &Links::new(links, true), &mut tenants).unwrap();
            let names = Names { of: &wanted, tenant: &|_| String::new() };
            let alone = SlowPath::alone(names, &kernel, &mut |_| None).unwrap_err().to_string();
            assert!(
                alone.contains("the kernel has no End.DX2V: write `dataplane: xdp`"),
                "{alone}"
            );

            let sid = "fd00:1::d2/128".parse().unwrap();
            let text = names.endpoint(&wanted.sids[&sid]);
            assert_eq!(text, "End.DX2V vlan 10 l vlan 20 r");

            let mut tables = Tables::new(Srv6::load(Sizes::default()).unwrap());
            tables.change_to(wanted).unwrap();
            let send = |inner: &[u8]| {
                let [src, dst] = ["fd00:9::1", "fd00:1::d2"].map(|text| text.parse().unwrap());
                let packet = Ipv6::new(src, dst, 143).around(inner).unwrap();
                let mut frame = Vec::new();
                let [dst, src] = [wire::Mac(MAC), wire::Mac([2, 0, 0, 0, 0, 9])];
                Ethernet { dst, src, ethertype: ethertype::IPV6 }.emit(&mut frame);
                frame.extend(packet);
                run_once(tables.program().program(), l, &frame).unwrap()
            };
            let count = |counter| tables.program().count(counter).packets;
            let dropped = |of: reason| count(reason::REASONS.0 + of.0);

            let frame = tagged(Some(10), 1200);
            let run = send(&frame);
            assert_eq!((run.verdict, run.frame), (verdict::REDIRECT, frame), "unchanged");
            // Priority bits are not part of the VLAN ID.
            assert_eq!(send(&tagged(Some(0xe000 | 20), 800)).verdict, verdict::REDIRECT);
            // Another port has another MTU.
            assert_eq!(send(&tagged(Some(20), 1200)).verdict, verdict::DROP);
            assert_eq!(dropped(reason::REASON_TOO_BIG), 1);
            // No entry, no tag, a priority tag.
            for vlan in [Some(30), None, Some(0)] {
                assert_eq!(send(&tagged(vlan, 100)).verdict, verdict::DROP, "{vlan:?}");
            }
            assert_eq!(dropped(reason::REASON_NO_ENTRY), 3);
            assert_eq!(tables.count_of_sid(&sid).unwrap().packets, 2);
        });
    }
}
