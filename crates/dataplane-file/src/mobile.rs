//! The mobile user plane (RFC 9433): tunnels of GTP-U, and policies for their sessions.

use ipnet::{IpNet, Ipv6Net};
use model::dataplane::{Policy, Steer, Table};
use srv6::{GtpTunnel, MAX_SOURCE_ARGS, SESSION_BITS, SESSION4_BITS, SOURCE_ARGS, SessionArgs};

use document::Step;

use super::checked::{At, Checked, key};
use super::sid_text::SidMap;
use super::steer_text::ListText;

/// Minimum position of an argument, in bits.
const MIN_ARGS: u8 = 8;

impl Checked<'_> {
    /// Returns the tunnel of End.M.GTP4.E and End.M.GTP6.E, whose SID has an argument of `bits`.
    pub(crate) fn tunnel(
        &mut self,
        at: At<'_>,
        sid: Ipv6Net,
        text: &mut SidMap,
        bits: u8,
    ) -> GtpTunnel<Table> {
        let longest = 128 - bits;
        if sid.prefix_len() > longest {
            let left = 128 - sid.prefix_len();
            let message = format!("`{sid}` leaves {left} bits, and the argument has {bits}");
            self.place.key(&at(), message, &format!("write a prefix of /{longest} or less"));
        }
        let has_table = text.tenant.is_some() || text.table.is_some() || text.vrf.is_some();
        let table = has_table.then(|| self.look_up(at, text));
        GtpTunnel { table, pdu_session: text.pdu_session }
    }

    /// Returns the position of an IPv4 source in an IPv6 source.
    pub(crate) fn source_args(&mut self, path: &[Step], given: Option<u32>) -> u8 {
        self.position(path, given, MAX_SOURCE_ARGS).unwrap_or(SOURCE_ARGS)
    }

    /// Returns a position in an address; after an error, another one.
    fn position(&mut self, path: &[Step], given: Option<u32>, most: u8) -> Option<u8> {
        let given = given?;
        let found = u8::try_from(given).ok().filter(|at| (MIN_ARGS..=most).contains(at));
        if found.is_none() {
            let message = format!("{given} is not the position of an argument");
            self.place.value(path, message, &format!("write {MIN_ARGS} to {most}"));
        }
        found.or(Some(MIN_ARGS))
    }

    /// Returns the positions of the session in a policy.
    pub(crate) fn session(
        &mut self,
        path: impl Fn(&'static str) -> Vec<Step>,
        text: &ListText,
        is_drop_in: bool,
    ) -> Option<SessionArgs> {
        if text.args.is_none() && text.source_args.is_none() && !is_drop_in {
            return None;
        }
        let segment = self.position(&path("args"), text.args, 128 - SESSION_BITS);
        let source = self.source_args(&path("source_args"), text.source_args);
        Some(SessionArgs { segment, source })
    }

    /// Returns the policy of End.M.GTP6.D or End.M.GTP6.D.Di.
    pub(crate) fn session_policy(&mut self, at: At<'_>, text: &mut SidMap, drop_in: bool) -> Steer {
        let name = text.behavior.name();
        let Some(policy) = &mut text.policy else {
            let help = "add `policy:` with one of `policies:`, or with a map";
            self.missing(at, name, "a policy", help);
            return Steer::Named("".into());
        };
        let at = || key(at, "policy");
        let steer = self.any_steer(&at, policy);
        let Some(policy) = self.policy_of(&steer) else { return steer };
        let (session, found) = (policy.session, is_drop_in(policy));
        if drop_in && !found {
            let message = format!("the last segment of {name} is the packet's own destination");
            self.place.value(&at(), message, "write `::` as last segment");
        } else if !drop_in && found {
            let help = "remove the last segment, or use End.M.GTP6.D.Di";
            self.place.value(&at(), format!("{name} with `::` as last segment"), help);
        } else if !drop_in && session.and_then(|session| session.segment).is_none() {
            let message = format!("{name} with a policy without the position of the session");
            self.place.value(&at(), message, "add `args:` to the policy, such as `args: 64`");
        }
        steer
    }

    /// Checks the policy of a tenant's route: with positions of the session, an IPv4 route is
    /// H.M.GTP4.D, and an IPv6 route End.M.GTP6.D or End.M.GTP6.D.Di.
    pub(crate) fn check_session_route(&mut self, at: At<'_>, prefix: IpNet, steer: &Steer) {
        let Some(policy) = self.policy_of(steer) else { return };
        let (session, drops_in) = (policy.session, is_drop_in(policy));
        let Some(session) = session else { return };
        if matches!(prefix, IpNet::V6(_)) {
            if drops_in && self.sources.is_empty() {
                let message = "the tenant chooses the last segment, and may not reach SIDs by it";
                let help = "add `sources:` with the prefixes of the SR domain";
                self.place.value(&at(), message, help);
            } else if !drops_in && session.segment.is_none() {
                let message = "a policy without the position of the session";
                self.place.value(&at(), message, "add `args:` to the policy, such as `args: 64`");
            }
            return;
        }
        let most = 128 - SESSION4_BITS;
        if let Some(longest) = self.own_bits().filter(|longest| session.source < *longest) {
            let message = format!(
                "the IPv4 source overwrites bits of this node's prefix, a /{longest}, in `source`"
            );
            self.place.value(&at(), message, &format!("write `source_args:` of {longest} or more"));
        }
        if drops_in {
            let help = "remove the last segment";
            self.place.value(&at(), "an IPv4 route with `::` as last segment", help);
        } else if session.segment.is_none_or(|at| at > most) {
            let message = "an IPv4 route to a policy without room for IPv4 destination and session";
            self.place.value(&at(), message, &format!("write `args:` of {MIN_ARGS} to {most}"));
        }
    }

    /// Returns the length of the longest of `sources` and `locators` that contains `source`.
    fn own_bits(&self) -> Option<u8> {
        let source = self.source?;
        let locators = self.locators.iter().map(|locator| locator.prefix());
        let all = self.sources.iter().copied().chain(locators);
        all.filter(|net| net.contains(&source)).map(|net| net.prefix_len()).max()
    }

    /// Rejects a policy for payloads of GTP-U where other packets use it.
    pub(crate) fn reject_session(&mut self, at: At<'_>, steer: &Steer) {
        if self.policy_of(steer).is_some_and(|policy| policy.session.is_some()) {
            let message = "a policy for payloads of GTP-U (`args`, or `::` as last segment)";
            let help = "use it in a tenant's `routes`, or for End.M.GTP6.D";
            self.place.value(&at(), message, help);
        }
    }

    /// Returns a policy that is defined in place or in the file.
    pub(crate) fn policy_of<'p>(&'p self, steer: &'p Steer) -> Option<&'p Policy> {
        match steer {
            Steer::Own(policy) => Some(policy),
            Steer::Named(name) => self.policies.get(name),
        }
    }
}

/// Returns true if the last segment of a list is the packet's original destination.
fn is_drop_in(policy: &Policy) -> bool {
    let lists = &mut policy.lists.iter();
    lists.any(|list| list.segments.0.last().is_some_and(|sid| sid.0.is_unspecified()))
}
