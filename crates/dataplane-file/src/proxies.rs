//! Proxies (End.AS, End.AD, End.AM): checks that their interfaces have no other use, and that
//! returning packets are unambiguous.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use document::{Address, steps};
use ipnet::Ipv6Net;
use model::dataplane::{Endpoint, Name, Proxy, Steer};
use srv6::{Kind, Payload};

use super::checked::{At, Checked, key};
use super::names::short;
use super::sid_text::SidMap;

/// Prefix of the names of the data plane's own interfaces.
const OWN: &str = "kaido-";

impl Checked<'_> {
    /// Returns the policy for packets that return to End.AS; none if it is missing.
    pub(crate) fn return_policy(&mut self, at: At<'_>, text: &mut SidMap) -> Option<Steer> {
        if let Some(policy) = &mut text.policy {
            return Some(self.steer(&|| key(at, "policy"), policy, Payload::Packet));
        }
        let help = "add `policy:` with one of `policies:`, or with a list \
                    (`--segments` of `kaido function add`)";
        self.missing(at, text.behavior.name(), "a policy for returning packets", help);
        None
    }

    /// Returns the proxy of a SID; none if the interface is missing.
    pub(crate) fn proxy(&mut self, at: At<'_>, text: &SidMap) -> Option<Proxy> {
        let name = text.behavior.name();
        if text.to.is_none() {
            let help = "add `to:` with the interface towards the function";
            self.missing(at, name, "an interface", help);
        }
        let to = text.to.as_ref().map(|to| self.interface(&|| key(at, "to"), to));
        let back = text.back.as_ref().map(|back| self.interface(&|| key(at, "back"), back));
        let via = text.via.map(|Address(via)| via);
        if let Some(via) = via {
            self.function_address(at, via, name, text.behavior == Kind::EndAm);
        }
        let to = to?;
        let back = back.unwrap_or_else(|| to.clone());
        Some(Proxy { to, back, via })
    }

    /// Rejects invalid addresses of functions, and those that no packet can be sent to.
    fn function_address(&mut self, at: At<'_>, via: IpAddr, name: &str, masquerading: bool) {
        let is_not_a_host = via.is_unspecified()
            || via.is_multicast()
            || via.is_loopback()
            || via == IpAddr::V4(Ipv4Addr::BROADCAST);
        if is_not_a_host {
            let help =
                "write the function's address, or remove it where the function does not route";
            self.place.value(&key(at, "via"), format!("`{via}` is not a function's address"), help);
        } else if masquerading && via.is_ipv4() {
            let message = format!("{name} sends IPv6, and `{via}` is an IPv4 address");
            self.place.value(&key(at, "via"), message, "write an IPv6 address such as fe80::2");
        }
    }

    /// Checks an interface to or from a function.
    fn interface(&mut self, at: At<'_>, name: &str) -> Name {
        let exits = self.ports.values().any(|port| port.exit.as_deref() == Some(name));
        if !model::is_interface_name(name) {
            let help = "write a name of up to 15 bytes, as `ip link` shows it";
            self.place.value(&at(), format!("`{name}` cannot name an interface"), help);
        } else if self.ports.contains_key(name) {
            let message = format!("`{name}` is a port, and leads to a function");
            let help = "use an interface that is not one of `ports:`, such as a VLAN's";
            self.place.value(&at(), message, help);
        } else if exits {
            let message = format!("`{name}` is a port's exit, and leads to a function");
            self.place.value(&at(), message, "use an interface of the function's own");
        } else if name.starts_with(OWN) {
            let message = format!("`{name}` is the data plane's own");
            self.place.value(&at(), message, "use an interface of the function's own");
        }
        name.into()
    }

    /// Checks that packets returning on one interface belong either to SIDs with End.AD, which are
    /// distinguished by their tags, or to a single SID.
    pub(crate) fn shared_ways_back(&mut self, sids: &[(Ipv6Net, Endpoint)]) {
        let mut owners: HashMap<&Name, (Ipv6Net, Kind)> = HashMap::new();
        for (index, (sid, endpoint)) in sids.iter().enumerate() {
            let Some(proxy) = endpoint.behavior.proxy() else { continue };
            let kind = endpoint.behavior.kind();
            let (other, first) = *owners.entry(&proxy.back).or_insert((*sid, kind));
            if other == *sid || (first, kind) == (Kind::EndAd, Kind::EndAd) {
                continue;
            }
            let message = format!("by `{}` the packets of {} come back", proxy.back, short(other));
            let help = "give each its own `back:`; only SIDs of End.AD share one";
            self.place.key(steps!["sids", index], message, help);
        }
    }
}
