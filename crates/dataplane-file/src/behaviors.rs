//! Behaviors of SIDs: checks that each has its arguments, and no others.

use std::net::{IpAddr, Ipv6Addr};

use document::Address;
use ipnet::Ipv6Net;
use model::dataplane::{Attachment, Behavior, Name, Steer};
use srv6::{Kind, Payload, SESSION_BITS, SESSION4_BITS};

use super::checked::{At, Checked, key};
use super::sid_text::SidMap;

/// The argument of a service function's SID is a mark, which has at most 32 bits.
const MIN_PREFIX: u8 = 96;

impl Checked<'_> {
    /// Returns the behavior with its arguments.
    pub(crate) fn behavior(&mut self, at: At<'_>, sid: Ipv6Net, text: &mut SidMap) -> Behavior {
        let name = text.behavior.name();
        match text.behavior {
            Kind::End => Behavior::End,
            Kind::EndX => {
                let next_hop = self.next_hop6(at, text);
                let unspecified = Some(Address(IpAddr::V6(Ipv6Addr::UNSPECIFIED)));
                if text.next_hop == unspecified {
                    let help = "write a neighbor's address; End looks the packet's own up";
                    self.place.value(&key(at, "next_hop"), "`::` is not a neighbor", help);
                }
                Behavior::EndX { next_hop }
            }
            Kind::EndT => Behavior::EndT { table: self.look_up(at, text) },
            Kind::EndDx2 => match &text.port {
                Some(port) => {
                    let known = self.port(&|| key(at, "port"), port);
                    if let Some(known) = &known {
                        self.reject_trunk(at, known);
                    }
                    Behavior::EndDx2 { port: known.unwrap_or_else(|| "".into()) }
                }
                None => {
                    self.missing(at, name, "a port", "add `port:` with one of `ports:`");
                    Behavior::EndDx2 { port: "".into() }
                }
            },
            Kind::EndDx2v => Behavior::EndDx2v { vlans: self.l2_table(at, text) },
            Kind::EndDx4 => match text.next_hop {
                Some(Address(IpAddr::V4(next_hop))) => Behavior::EndDx4 { next_hop },
                Some(Address(IpAddr::V6(next_hop))) => {
                    let message = format!("{name} sends IPv4, and `{next_hop}` is an IPv6 address");
                    let help = "write an IPv4 address such as 10.0.0.1, or use End.DX6";
                    self.place.value(&key(at, "next_hop"), message, help);
                    Behavior::End
                }
                None => {
                    let help = "add `next_hop:` with an address such as 10.0.0.1";
                    self.missing(at, name, "a next hop", help);
                    Behavior::End
                }
            },
            Kind::EndDx6 => Behavior::EndDx6 { next_hop: self.next_hop6(at, text) },
            Kind::EndDt4 => Behavior::EndDt4 { table: self.look_up(at, text) },
            Kind::EndDt6 => Behavior::EndDt6 { table: self.look_up(at, text) },
            Kind::EndDt46 => Behavior::EndDt46 { table: self.look_up(at, text) },
            Kind::EndB6Encaps => match &mut text.policy {
                Some(policy) => {
                    let policy = self.steer(&|| key(at, "policy"), policy, Payload::Packet);
                    Behavior::EndB6Encaps { policy }
                }
                None => {
                    let help = "add `policy:` with one of `policies:`, or with a list";
                    self.missing(at, name, "a policy", help);
                    Behavior::EndB6Encaps { policy: Steer::Named("".into()) }
                }
            },
            Kind::EndB6Insert => {
                let message = "End.B6.Insert is for routes of the kernel: the SRH ends with the SID, to \
                               which the packet returns";
                self.place.value(&key(at, "behavior"), message, "use End.B6.Encaps");
                Behavior::End
            }
            Kind::EndAnNf => {
                if sid.prefix_len() < MIN_PREFIX {
                    let message = format!("`{sid}` leaves {} bits", 128 - sid.prefix_len());
                    let help = "write a prefix of /96 or more: a mark has 32 bits";
                    self.place.key(&at(), message, help);
                }
                let answers = text.answers.as_mut();
                let answers =
                    answers.map(|to| self.steer(&|| key(at, "answers"), to, Payload::Packet));
                Behavior::EndAnNf { answers }
            }
            Kind::EndAs => {
                let policy = self.return_policy(at, text);
                let proxy = self.proxy(at, text);
                proxy
                    .zip(policy)
                    .map_or(Behavior::End, |(proxy, policy)| Behavior::EndAs { proxy, policy })
            }
            Kind::EndAd => {
                self.proxy(at, text).map_or(Behavior::End, |proxy| Behavior::EndAd { proxy })
            }
            Kind::EndAm => {
                self.proxy(at, text).map_or(Behavior::End, |proxy| Behavior::EndAm { proxy })
            }
            Kind::EndMGtp4E => {
                let source_args = self.source_args(&key(at, "source_args"), text.source_args);
                let tunnel = self.tunnel(at, sid, text, SESSION4_BITS);
                Behavior::EndMGtp4E { tunnel, source_args }
            }
            Kind::EndMGtp6E => {
                Behavior::EndMGtp6E { tunnel: self.tunnel(at, sid, text, SESSION_BITS) }
            }
            Kind::EndMGtp6D => Behavior::EndMGtp6D { policy: self.session_policy(at, text, false) },
            Kind::EndMGtp6DDi => {
                Behavior::EndMGtp6DDi { policy: self.session_policy(at, text, true) }
            }
        }
    }

    /// Reports an End.DX2 to a port whose tagged frames belong to tenants or to the SR domain: the
    /// sender of the inner frame chooses its tag, and so another's VLAN.
    fn reject_trunk(&mut self, at: At<'_>, port: &Name) {
        if self.ports.get(port).is_some_and(|of| !of.vlans.is_empty()) {
            let message = format!(
                "End.DX2 sends frames with any tag to `{port}`, also into VLANs of the SR domain"
            );
            let help = format!(
                "name the VLANs that it may send to, such as {{behavior: End.DX2V, vlans: {{10: {port}}}}}"
            );
            self.place.value(&key(at, "port"), message, &help);
            return;
        }
        let attachments = self.tenants.iter().flat_map(|(name, tenant)| {
            tenant.attachments.iter().map(move |attachment| (name, attachment))
        });
        let of_port = |(_, of): &(&Name, &Attachment)| of.port == *port;
        let Some((tenant, attachment)) = attachments.into_iter().find(of_port) else { return };
        let vlan = attachment.tags.outer;
        let message = format!(
            "End.DX2 sends frames with any tag to `{port}`, also into VLAN {vlan} of `{tenant}`"
        );
        let help = format!(
            "name the VLANs that it may send to: {{behavior: End.DX2V, vlans: {{{vlan}: {port}}}}} drops all others"
        );
        self.place.value(&key(at, "port"), message, &help);
    }

    /// Reports arguments that the behavior does not take.
    pub(crate) fn reject_other_arguments(&mut self, at: At<'_>, text: &SidMap) {
        let given = [
            ("next_hop", text.next_hop.is_some()),
            ("port", text.port.is_some()),
            ("vlans", text.vlans.is_some()),
            ("tenant", text.tenant.is_some()),
            ("table", text.table.is_some()),
            ("vrf", text.vrf.is_some()),
            ("policy", text.policy.is_some()),
            ("answers", text.answers.is_some()),
            ("vlan", text.vlan.is_some()),
            ("inner", text.inner.is_some()),
            ("to", text.to.is_some()),
            ("back", text.back.is_some()),
            ("via", text.via.is_some()),
            ("health", text.health.is_some()),
            ("source_args", text.source_args.is_some()),
            ("pdu_session", text.pdu_session.is_some()),
        ];
        let takes = text.behavior.info().keys;
        for (argument, _) in given.iter().filter(|(key, is)| *is && !takes.contains(key)) {
            let message = format!("{} takes no `{argument}`", text.behavior.name());
            let help = match takes {
                [] => "remove it".into(),
                takes => format!("remove it; it takes {}", takes.join(", ")),
            };
            self.place.key(&key(at, argument), message, &help);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::bad_input::{expect, sid};
    use crate::parse;
    use model::dataplane::Behavior;

    #[test]
    fn an_l2_table_has_ports_by_vlan() {
        let text = sid("behavior: End.DX2V, vlans: {10: eth1, 4094: eth2}");
        let file = parse("x", &text).unwrap_or_else(|problems| panic!("{problems}"));
        let behavior = &file.sids[0].1.behavior;
        let vlans = vec![(10, "eth1".into()), (4094, "eth2".into())];
        assert_eq!(*behavior, Behavior::EndDx2v { vlans });
        // A port that is missing takes the SID with it.
        assert_eq!(file.without_ports(&["eth2".into()].into()).sids, []);
        let table = |vlans: &str| sid(&format!("behavior: End.DX2V, vlans: {{{vlans}}}"));
        for vlan in ["0", "4095", "70000", "ten"] {
            let message = format!("`{vlan}` is not a VLAN ID");
            expect(&table(&format!("{vlan}: eth1")), &[("6:48", &message, "1 to 4094")]);
        }
        expect(&table("10: eth1, 010: eth2"), &[("6:58", "the VLAN 10 is given twice", "one")]);
        expect(&table(""), &[("6:40", "a table of 0 VLANs", "1 to 4")]);
        let many = "1: eth1, 2: eth1, 3: eth1, 4: eth1, 5: eth1";
        expect(&table(many), &[("6:40", "a table of 5 VLANs", "further SIDs")]);
        expect(&table("10: eth9"), &[("6:52", "no port is called `eth9`", "eth")]);
        let help = "add `vlans:`";
        expect(&sid("behavior: End.DX2V"), &[("6:3", "End.DX2V needs an L2 table", help)]);
        expect(
            &sid("behavior: End.DX2, port: eth1, vlans: {1: eth1}"),
            &[("6:51", "End.DX2 takes no `vlans`", "it takes port")],
        );
    }
}
