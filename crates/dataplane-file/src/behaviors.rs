//! The grammar of a SID's behavior, as serde types, and its arguments.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::Ipv6Net;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IntoDeserializer, MapAccess, Visitor};
use srv6::{Flavor, Kind, Payload};

use super::health::HealthText;
use super::resolve::{At, Checked};
use super::sids::key;
use super::steer_text::SteerText;
use super::types::{Behavior, Name, Steer};
use crate::document::{Address, Entries, Items};

/// A behavior with its arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Sid")]
pub(super) struct SidMap {
    /// The behavior.
    pub(super) behavior: Kind,
    /// Next hop of End.X, End.DX4 and End.DX6.
    pub(super) next_hop: Option<Address>,
    /// Port of End.DX2.
    pub(super) port: Option<String>,
    /// Ports of End.DX2V, by the VLAN of the inner frame.
    pub(super) vlans: Option<Entries<String>>,
    /// Tenant in whose table End.T, End.DT4, End.DT6 and End.DT46 look up packets.
    pub(super) tenant: Option<String>,
    /// Number of the table, instead of a tenant.
    #[schemars(range(min = 1))]
    pub(super) table: Option<u32>,
    /// VRF device of the table, instead of a tenant.
    pub(super) vrf: Option<String>,
    /// Policy of End.B6.Encaps, or for packets that return to End.AS.
    pub(super) policy: Option<SteerText>,
    /// Return policy for local replies to inner packets of End.AN.NF. They are dropped if it is
    /// absent.
    pub(super) answers: Option<SteerText>,
    /// VLAN tag of decapsulated packets.
    #[schemars(range(min = 1, max = 4094))]
    pub(super) vlan: Option<u32>,
    /// Inner of two VLAN tags of decapsulated packets.
    #[schemars(range(min = 1, max = 4094))]
    pub(super) inner: Option<u32>,
    /// Flavors of the behavior.
    #[serde(default)]
    pub(super) flavors: Items<Flavor>,
    /// Length of the NEXT-C-SID locator block in bits; 32 if absent.
    #[schemars(range(min = 8, max = 120))]
    pub(super) block: Option<u32>,
    /// Length of the NEXT-C-SID node and function in bits; 16 if absent.
    #[schemars(range(min = 8, max = 120))]
    pub(super) node: Option<u32>,
    /// Interface on which End.AS, End.AD and End.AM send packets to the function (IFACE-OUT). It
    /// must not be a port of the data plane.
    pub(super) to: Option<String>,
    /// Interface on which packets of the function return (IFACE-IN); `to` if absent.
    pub(super) back: Option<String>,
    /// Address of the function on `to` (NH-ADDR), if it routes. If absent, the function is a bump
    /// in the wire and accepts any destination MAC address.
    pub(super) via: Option<Address>,
    /// Health check of the service function.
    pub(super) health: Option<HealthText>,
}

/// A SID's behavior: its name, or a map.
#[derive(Debug)]
pub(super) struct SidText(pub(super) SidMap);

impl<'de> Deserialize<'de> for SidText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = SidText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a behavior such as End, or a map such as {behavior: End.DX2, port: eth1}",
                )
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<SidText, E> {
                let behavior = Kind::deserialize(text.into_deserializer())?;
                Ok(SidText(SidMap {
                    behavior,
                    next_hop: None,
                    port: None,
                    vlans: None,
                    tenant: None,
                    table: None,
                    vrf: None,
                    policy: None,
                    answers: None,
                    vlan: None,
                    inner: None,
                    flavors: Items::default(),
                    block: None,
                    node: None,
                    to: None,
                    back: None,
                    via: None,
                    health: None,
                }))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SidText, A::Error> {
                SidMap::deserialize(MapAccessDeserializer::new(map)).map(SidText)
            }
        }
        deserializer.deserialize_any(V)
    }
}

impl JsonSchema for SidText {
    fn schema_name() -> Cow<'static, str> {
        "SidOrBehavior".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let name = generator.subschema_for::<Kind>();
        let map = generator.subschema_for::<SidMap>();
        json_schema!({"anyOf": [name, map]})
    }
}

/// The argument of a service function's SID is a mark, which has at most 32 bits.
const SHORTEST_FUNCTION: u8 = 96;

/// Number of entries of an L2 table, which is part of the SID's record in the program.
const L2_ENTRIES: usize = 4;

impl Checked<'_> {
    /// Returns the behavior with its arguments.
    pub(super) fn behavior(&mut self, at: At<'_>, sid: Ipv6Net, text: &mut SidMap) -> Behavior {
        let name = text.behavior.name();
        match text.behavior {
            Kind::End => Behavior::End,
            Kind::EndX => {
                let next_hop = self.next_hop6(at, text);
                let unspecified = Some(Address(IpAddr::V6(Ipv6Addr::UNSPECIFIED)));
                if text.next_hop == unspecified {
                    let help = "write a neighbour's address; End looks the packet's own up";
                    self.place.value(&key(at, "next_hop"), "`::` is not a neighbour", help);
                }
                Behavior::EndX { next_hop }
            }
            Kind::EndT => Behavior::EndT { table: self.look_up(at, text) },
            Kind::EndDx2 => match &text.port {
                Some(port) => {
                    let known = self.port(&|| key(at, "port"), port);
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
            Kind::EndAnNf => {
                if sid.prefix_len() < SHORTEST_FUNCTION {
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
        }
    }

    /// Returns the L2 table of End.DX2V.
    fn l2_table(&mut self, at: At<'_>, text: &SidMap) -> Vec<(u16, Name)> {
        let Some(Entries(entries)) = &text.vlans else {
            let help = "add `vlans:` with ports, such as {10: eth1}";
            self.missing(at, text.behavior.name(), "an L2 table", help);
            return Vec::new();
        };
        if !(1..=L2_ENTRIES).contains(&entries.len()) {
            let message = format!("a table of {} VLANs", entries.len());
            let help = "write 1 to 4, and further SIDs for others";
            self.place.value(&key(at, "vlans"), message, help);
        }
        let mut vlans: Vec<(u16, Name)> = Vec::with_capacity(entries.len());
        for (index, (vlan, port)) in entries.iter().enumerate() {
            let place = || [key(at, "vlans"), vec![index.into()]].concat();
            let known = self.port(&place, port);
            match vlan.parse() {
                Ok(id @ 1..=4094) if vlans.iter().any(|(other, _)| *other == id) => {
                    let message = format!("the VLAN {id} is given twice");
                    self.place.key(&place(), message, "remove one of the two");
                }
                Ok(id @ 1..=4094) => vlans.extend(known.map(|port| (id, port))),
                _ => {
                    let message = format!("`{vlan}` is not a VLAN ID");
                    self.place.key(&place(), message, "write 1 to 4094");
                }
            }
        }
        vlans
    }

    /// Reports arguments that the behavior does not take.
    pub(super) fn strangers(&mut self, at: At<'_>, text: &SidMap) {
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
    use crate::dataplane::bad_input::{expect, sid};
    use crate::dataplane::{Behavior, parse};

    #[test]
    fn an_l2_table_has_ports_by_vlan() {
        let text = sid("behavior: End.DX2V, vlans: {10: eth1, 4094: eth2}");
        let file = parse("x", &text).unwrap_or_else(|problems| panic!("{problems}"));
        let behavior = &file.sids[0].1.behavior;
        let vlans = vec![(10, "eth1".into()), (4094, "eth2".into())];
        assert_eq!(*behavior, Behavior::EndDx2v { vlans });
        // A port that is missing takes the SID with it.
        assert_eq!(file.without_ports(&["eth2".into()]).sids, []);
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
