//! Insertion of SRHs into packets: H.Insert.

use document::Step;
use ipnet::IpNet;
use model::dataplane::Steer;
use srv6::{Form, SessionArgs};

use super::checked::{At, Checked};

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

    /// Rejects a policy of form H.Insert for a tenant's IPv4 route.
    pub(crate) fn check_insert_route(&mut self, at: At<'_>, prefix: IpNet, steer: &Steer) {
        if matches!(prefix, IpNet::V4(_)) {
            self.reject_insert(at, steer);
        }
    }

    /// Rejects a policy of form H.Insert where packets are not IPv6, or get an outer header.
    pub(crate) fn reject_insert(&mut self, at: At<'_>, steer: &Steer) {
        if self.policy_of(steer).is_some_and(|policy| policy.form == Form::Insert) {
            let help = "use it in a tenant's IPv6 routes";
            self.place.value(&at(), "a policy of form H.Insert", help);
        }
    }
}
