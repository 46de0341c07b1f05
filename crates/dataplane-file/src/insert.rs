//! Insertion of SRHs into packets: H.Insert and End.B6.Insert.

use document::Step;
use ipnet::IpNet;
use model::dataplane::Steer;
use srv6::{Form, SessionArgs};

use super::checked::{At, Checked, key};
use super::sid_text::SidMap;

impl Checked<'_> {
    /// Checks the form H.Insert of a policy.
    pub(crate) fn check_insert(&mut self, path: &[Step], session: Option<SessionArgs>) {
        if !self.insert {
            let message = "H.Insert changes packets of others on their way (RFC 8200 section 4): senders \
                           get ICMP errors about packets that they have not sent, and authentication fails";
            let help = "use H.Encaps, or write `insert: true` if all nodes up to the last segment are yours";
            self.place.value(path, message, help);
        }
        if session.is_some() {
            let message = "H.Insert for payloads of GTP-U (`args`, or `::` as last segment)";
            self.place.value(path, message, "use H.Encaps or H.Encaps.Red");
        }
    }

    /// Returns the policy of End.B6.Insert.
    pub(crate) fn insert_policy(&mut self, at: At<'_>, text: &mut SidMap) -> Steer {
        let name = text.behavior.name();
        let Some(policy) = &mut text.policy else {
            let help = "add `policy:` with a map such as {segments: […], form: H.Insert}";
            self.missing(at, name, "a policy", help);
            return Steer::Named("".into());
        };
        let at = || key(at, "policy");
        let steer = self.any_steer(&at, policy);
        if self.policy_of(&steer).is_some_and(|policy| policy.form != Form::Insert) {
            let message = format!("{name} with a policy of another form");
            self.place.value(&at(), message, "write `form: H.Insert`, or use End.B6.Encaps");
        }
        steer
    }

    /// Rejects a policy of form H.Insert for a tenant's IPv4 route.
    pub(crate) fn check_insert_route(&mut self, at: At<'_>, prefix: IpNet, steer: &Steer) {
        if matches!(prefix, IpNet::V4(_)) {
            self.reject_insert(at, steer);
        }
    }

    /// Rejects a policy of form H.Insert where packets are not IPv6, or get an outer header.
    pub(crate) fn reject_insert(&mut self, at: At<'_>, steer: &Steer) {
        if self.policy_of(steer).is_some_and(|policy| policy.form == Form::Insert) {
            let help = "use it in a tenant's IPv6 routes, or for End.B6.Insert";
            self.place.value(&at(), "a policy of form H.Insert", help);
        }
    }
}
