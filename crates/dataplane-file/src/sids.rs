//! SIDs: checks that each is in a locator, and that they do not overlap.

use document::{Step, steps};
use ipnet::Ipv6Net;
use model::dataplane::Endpoint;

use super::checked::{Checked, key};
use super::names::short;
use super::scalars::SidPrefix;
use super::sid_text::{SidMap, SidText};

impl Checked<'_> {
    /// Returns the SIDs.
    pub(crate) fn sids(&mut self, texts: Vec<(SidPrefix, SidText)>) -> Vec<(Ipv6Net, Endpoint)> {
        if self.locators.is_empty() && !texts.is_empty() {
            let help = "add `locators:` with the prefixes of this node, such as [fd00:0:1::/48]";
            self.place.key(steps!["sids"], "there are SIDs, and no locator", help);
        }
        let mut sids = Vec::with_capacity(texts.len());
        for (index, (SidPrefix(sid), SidText(text))) in texts.into_iter().enumerate() {
            if !self.locators.is_empty() && self.locator_of(sid).is_none() {
                let message = format!("`{}` is in no locator", short(sid));
                let help = "correct it, or add its prefix to `locators:`";
                self.place.key(steps!["sids", index], message, help);
            }
            sids.push((sid, self.endpoint(index, sid, text)));
        }
        self.count(&None, sids.iter().filter_map(|(_, endpoint)| endpoint.behavior.policy()));
        self.overlaps(&sids);
        self.shared_ways_back(&sids);
        sids
    }

    /// Checks for overlaps. A SID may be contained in the prefix of another one only if the
    /// argument of that one consists of further SIDs of a container: the longest prefix then takes
    /// precedence.
    fn overlaps(&mut self, sids: &[(Ipv6Net, Endpoint)]) {
        let mut order: Vec<(u128, u8, u32)> = sids
            .iter()
            .zip(0..)
            .map(|((sid, _), index)| (sid.network().into(), sid.prefix_len(), index))
            .collect();
        order.sort_unstable();
        let mut around: Vec<u32> = Vec::new();
        for (_, _, index) in order {
            let sid = sids[index as usize].0;
            while around.pop_if(|outer| !sids[*outer as usize].0.contains(&sid)).is_some() {}
            let clash = around.iter().rev().find(|outer| {
                let (outer, endpoint) = &sids[**outer as usize];
                *outer == sid || endpoint.flavors.next_csid.is_none()
            });
            if let Some(other) = clash {
                let (last, first) = if index > *other { (index, *other) } else { (*other, index) };
                let [last_sid, first_sid] = [last, first].map(|at| short(sids[at as usize].0));
                let (message, help) = if last_sid == first_sid {
                    (format!("the SID `{last_sid}` is given twice"), "remove one of the two")
                } else {
                    let message = format!("the SID `{last_sid}` overlaps {first_sid}");
                    (message, "use SIDs that do not overlap: only NEXT-C-SID has others inside")
                };
                self.place.key(steps!["sids", last as usize], message, help);
            }
            around.push(index);
        }
    }

    fn endpoint(&mut self, index: usize, sid: Ipv6Net, mut text: SidMap) -> Endpoint {
        let at = || vec!["sids".into(), Step::Index(index)];
        self.reject_other_arguments(&at, &text);
        let flavors = self.flavors(&at, sid, &text);
        let tags = self.tags(&at, text.vlan, text.inner);
        let behavior = self.behavior(&at, sid, &mut text);
        let health = text.health.take();
        let health = health.map(|health| health.resolve(&mut self.place, &key(&at, "health")));
        Endpoint { behavior, flavors, tags, health, line: self.line("sids", index) }
    }
}
