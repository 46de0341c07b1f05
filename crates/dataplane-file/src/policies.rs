//! Policies: checks that their lists exist, consist of valid segments and fit into the headroom.

use document::{Items, Step};
use model::dataplane::{Policy, Steer, Weighted};
use model::is_lab_name;
use srv6::{Form, Payload, SegmentList, Sid};

use super::checked::{At, Checked};
use super::names::NAME_HELP;
use super::scalars::Ipv6;
use super::steer_text::{ListText, PolicyText, SteerText, WeightedText};

/// Maximum number of lists of a policy.
const MAX_LISTS: usize = 64;

impl Checked<'_> {
    /// Adds the named policies.
    pub(crate) fn named_policies(&mut self, policies: Vec<(String, PolicyText)>) {
        for (index, (name, text)) in policies.into_iter().enumerate() {
            let at = || vec!["policies".into(), Step::Index(index)];
            if !is_lab_name(&name) {
                self.place.key(&at(), format!("`{name}` cannot name a policy"), NAME_HELP);
            }
            let policy = self.policy(&at, text.0, Payload::Packet);
            self.policies.insert(name.into(), policy);
        }
    }

    /// Returns a reference to a named policy, or a policy defined in place.
    pub(crate) fn steer(&mut self, at: At<'_>, text: &mut SteerText, payload: Payload) -> Steer {
        let steer = self.steer_into(at, text, payload);
        self.reject_session(at, &steer);
        self.reject_insert(at, &steer);
        steer
    }

    /// The same for packets, where the policy may be for payloads of GTP-U.
    pub(crate) fn any_steer(&mut self, at: At<'_>, text: &mut SteerText) -> Steer {
        self.steer_into(at, text, Payload::Packet)
    }

    fn steer_into(&mut self, at: At<'_>, text: &mut SteerText, payload: Payload) -> Steer {
        let name = match text {
            SteerText::Own(list) => {
                return Steer::Own(self.policy(at, std::mem::take(list), payload));
            }
            SteerText::Named(name) => std::mem::take(name),
        };
        let Some((known, policy)) = self.policies.get_key_value(name.as_str()) else {
            let names = self.names(&self.policies);
            let add = format!("add `{name}: {{segments: […]}}` under `policies:`");
            self.unknown(at, "policy", &name, &names, &add);
            return Steer::Named(name.into());
        };
        let known = known.clone();
        let (form, longest) = (policy.form, policy.form.longest(payload));
        let segments = policy.lists.iter().map(|list| list.segments.0.len()).max().unwrap_or(0);
        // A list that is too long even for a packet is reported at the policy.
        if segments > longest && segments <= form.longest(Payload::Packet) {
            let message = format!(
                "`{name}` has {segments} segments, and there is room for {longest} in front of a frame"
            );
            self.place.value(&at(), message, "take another policy, or a shorter list of its own");
        }
        Steer::Named(known)
    }

    /// Returns a policy.
    fn policy(&mut self, at: At<'_>, text: impl Into<Box<ListText>>, payload: Payload) -> Policy {
        let text = *text.into();
        let form = text.form.unwrap_or_default();
        let all = text.segments.iter();
        let all =
            all.chain(text.lists.iter().flat_map(|lists| lists.0.iter().map(|one| &one.segments)));
        let ends_open =
            |list: &Items<Ipv6>| list.0.last().is_some_and(|last| last.0.is_unspecified());
        let (open, others): (Vec<_>, Vec<_>) = all.partition(|list| ends_open(list));
        let is_drop_in = !open.is_empty();
        if is_drop_in && !others.is_empty() {
            let help = "end all lists with it, or none";
            let message =
                "some lists end with `::`, the packet's own destination, and others do not";
            self.place.key(&below(at, &["lists"]), message, help);
        }
        let session = self.session(|name| below(at, &[name]), &text, is_drop_in);
        if form == Form::Insert {
            self.check_insert(&below(at, &["form"]), session);
        }
        let mut lists = Vec::with_capacity(1);
        match (text.segments, text.lists) {
            (Some(_), Some(_)) => {
                let help = "put the list among `lists:`, or remove one of the two";
                self.place.key(&below(at, &["lists"]), "both `segments` and `lists`", help);
                return Policy { lists, form, session };
            }
            (Some(segments), None) => {
                // A list may be given without the key `segments`.
                let below = below(at, &["segments"]);
                let path = if self.place.tree.has(&below) { below } else { at() };
                let segments = self.segments(&|| path.clone(), segments, form, payload);
                lists.push(Weighted { segments, weight: 1 });
            }
            (None, Some(Items(texts))) => {
                if texts.len() > MAX_LISTS {
                    let message =
                        format!("{} lists are more than the {MAX_LISTS} of a policy", texts.len());
                    self.place.key(&below(at, &["lists"]), message, "merge or remove some");
                }
                for (index, text) in texts.into_iter().enumerate() {
                    lists.push(self.weighted(at, index, text, (form, payload)));
                }
            }
            (None, None) => {}
        }
        if lists.is_empty() {
            let help = "add `segments:` with a list such as [fd00:0:2::1]";
            self.place.key(&at(), "a policy without segments", help);
        }
        Policy { lists, form, session }
    }

    /// Returns list `index` of a policy.
    fn weighted(
        &mut self,
        at: At<'_>,
        index: usize,
        text: WeightedText,
        (form, payload): (Form, Payload),
    ) -> Weighted {
        let at = |key: &'static str| {
            let mut path = below(at, &["lists"]);
            path.extend([Step::Index(index), key.into()]);
            path
        };
        let weight = text.weight.unwrap_or(1);
        if weight == 0 {
            let help = "write 1 or more, or remove the list";
            self.place.value(&at("weight"), "a list of weight 0 is never taken", help);
        }
        let segments = self.segments(&|| at("segments"), text.segments, form, payload);
        Weighted { segments, weight }
    }

    fn segments(
        &mut self,
        at: At<'_>,
        Items(texts): Items<Ipv6>,
        form: Form,
        payload: Payload,
    ) -> SegmentList {
        let longest = form.longest(payload);
        if texts.is_empty() {
            let help = "write at least one, such as [fd00:0:2::1]";
            self.place.value(&at(), "a list without segments", help);
        }
        if texts.len() > longest {
            let (count, what) =
                (texts.len(), if payload == Payload::Frame { "frame" } else { "packet" });
            let message =
                format!("{count} segments, and there is room for {longest} in front of a {what}");
            let help = match form {
                Form::Encaps if count == longest + 1 => "write `form: H.Encaps.Red`, or remove one",
                _ => "remove some",
            };
            self.place.value(&at(), message, help);
        }
        // A last segment `::` is the packet's own destination (End.M.GTP6.D.Di).
        let is_drop_in =
            texts.len() > 1 && texts.last().is_some_and(|last| last.0.is_unspecified());
        let segments = texts.len() - usize::from(is_drop_in);
        for (index, Ipv6(address)) in texts.iter().enumerate().take(segments) {
            let is_not_a_host =
                address.is_unspecified() || address.is_multicast() || address.is_loopback();
            if is_not_a_host || address.is_unicast_link_local() {
                let mut path = at();
                path.push(Step::Index(index));
                let message = format!("`{address}` is not a segment: it is not a node's address");
                self.place.value(&path, message, "write a SID of another node");
            }
        }
        self.first_segment(at, &texts);
        SegmentList(texts.into_iter().map(|Ipv6(address)| Sid(address)).collect())
    }

    /// Rejects a list that starts with a local SID. Packets that the node sends to itself are not
    /// forwarded, so they would be lost.
    fn first_segment(&mut self, at: At<'_>, segments: &[Ipv6]) {
        let Some(Ipv6(first)) = segments.first() else { return };
        let Some(locator) = self.locator_of((*first).into()) else { return };
        let mut path = at();
        let policy = match &path[..] {
            [Step::Key(section), Step::Index(index), ..] if section == "policies" => {
                format!("the policy `{}`", self.name_of("policies", *index))
            }
            _ => "the list".into(),
        };
        path.push(Step::Index(0));
        let message = format!(
            "{policy} begins with `{first}`, which is this node's own: it is in the locator {locator}"
        );
        self.place.value(&path, message, "begin with a SID of another node");
    }
}

/// Returns the path of a nested value.
fn below(at: At<'_>, keys: &[&'static str]) -> Vec<Step> {
    let mut path = at();
    path.extend(keys.iter().map(|key| Step::from(*key)));
    path
}
