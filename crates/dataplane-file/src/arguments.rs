//! Arguments of behaviors: next hops, tables of decapsulated packets, and L2 tables.

use std::net::{IpAddr, Ipv6Addr};

use document::{Address, Entries};
use model::dataplane::{Name, Table};

use super::checked::{At, Checked, key};
use super::sid_text::SidMap;
use super::tenants::add_tenant;

/// Number of entries of an L2 table, which is part of the SID's record in the program.
const L2_ENTRIES: usize = 4;

impl Checked<'_> {
    /// Returns the next hop of End.X and End.DX6.
    pub(crate) fn next_hop6(&mut self, at: At<'_>, text: &SidMap) -> Ipv6Addr {
        let name = text.behavior.name();
        match text.next_hop {
            Some(Address(IpAddr::V6(next_hop))) => {
                if next_hop.is_multicast() || next_hop.is_loopback() {
                    let message = format!("`{next_hop}` is not a neighbor");
                    self.place.value(&key(at, "next_hop"), message, "write a neighbor's address");
                } else if next_hop.is_unicast_link_local() {
                    // bpf_fib_lookup cannot resolve such a neighbor.
                    let message = format!("`{next_hop}` is an address on every port");
                    let help = "write a global address of the neighbor's";
                    self.place.value(&key(at, "next_hop"), message, help);
                }
                next_hop
            }
            Some(Address(IpAddr::V4(next_hop))) => {
                let message = format!("{name} sends IPv6, and `{next_hop}` is an IPv4 address");
                let help = "write an IPv6 address such as fd00:b::2";
                self.place.value(&key(at, "next_hop"), message, help);
                Ipv6Addr::UNSPECIFIED
            }
            None => {
                let help = "add `next_hop:` with an address such as fd00:b::2";
                self.missing(at, name, "a next hop", help);
                Ipv6Addr::UNSPECIFIED
            }
        }
    }

    /// Returns the table of End.T and End.DT*.
    pub(crate) fn look_up(&mut self, at: At<'_>, text: &mut SidMap) -> Table {
        let name = text.behavior.name();
        let own = self.table(&|| key(at, "table"), &|| key(at, "vrf"), text.table, text.vrf.take());
        let Some(tenant) = &text.tenant else {
            return own.unwrap_or_else(|| {
                self.missing(at, name, "a table", "add one of `tenant:`, `table:` and `vrf:`");
                Table::Number(0)
            });
        };
        if own.is_some() {
            let message = "the tenant already selects the table";
            self.place.key(&key(at, "tenant"), message, "remove it, or the table");
        }
        match self.tenants.get(tenant.as_str()) {
            Some(known) => known.table.clone().unwrap_or_else(|| {
                let message = format!("the tenant `{tenant}` has no table");
                let help = "add `table:` or `vrf:` to it";
                self.place.value(&key(at, "tenant"), message, help);
                Table::Number(0)
            }),
            None => {
                let names = self.names(&self.tenants);
                let add = add_tenant(tenant);
                self.unknown(&|| key(at, "tenant"), "tenant", tenant, &names, &add);
                Table::Number(0)
            }
        }
    }

    /// Returns the L2 table of End.DX2V.
    pub(crate) fn l2_table(&mut self, at: At<'_>, text: &SidMap) -> Vec<(u16, Name)> {
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
                Ok(id @ 1..=4094) if self.is_domain_vlan(known.as_ref(), id) => {
                    let message = format!("VLAN {id} of `{port}` is in the SR domain");
                    let help = "use another VLAN, or remove it from the port's `vlans:`";
                    self.place.key(&place(), message, help);
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
}
