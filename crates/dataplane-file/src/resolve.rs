//! Conversion of the grammar's values into a configuration, with all checks.

use std::collections::BTreeMap;

use document::{Place, Report, Step, Tree, steps};
use ipnet::Ipv6Net;
use model::dataplane::{Dataplane, File, Limits};
use srv6::{Kind, Locator};

use super::checked::Checked;
use super::file::{FileText, LimitsText};
use super::scalars::Ipv6;
use super::sid_text::SidMap;

/// Maximum capacity of a table.
const MAX_SIZE: u32 = 1 << 24;

/// Returns the configuration, or the report with all errors.
pub(crate) fn resolve<'a>(
    tree: &'a Tree,
    file: FileText,
    report: Report<'a>,
) -> Result<File, Report<'a>> {
    let mut checked = Checked {
        place: Place { tree, report },
        source: file.source.map(|Ipv6(address)| address),
        sources: Vec::new(),
        locators: Vec::new(),
        ports: BTreeMap::new(),
        policies: BTreeMap::new(),
        tenants: BTreeMap::new(),
        insert: file.insert.unwrap_or(false),
        needs: (0, 0),
    };
    checked.source(&file);
    checked.locators = checked.locators(&file.locators.0);
    checked.sources = checked.sources(&file);
    checked.ports(&file.ports.0, file.mode);
    checked.named_policies(file.policies.0);
    checked.tenants(&file.ports.0, file.tenants.0);
    checked.domain_vlans(&file.ports.0);
    let sids = checked.sids(file.sids.0);
    let limits = checked.limits(&file.limits, sids.len());
    let Checked { place, source, sources, ports, policies, tenants, .. } = checked;
    if !place.report.is_empty() {
        return Err(place.report);
    }
    Ok(File {
        source,
        locators: file.locators.0,
        sources,
        dataplane: file.dataplane.unwrap_or(Dataplane::Xdp),
        import: file.import.unwrap_or(true),
        ports,
        limits,
        policies,
        tenants,
        sids,
    })
}

impl Checked<'_> {
    /// Checks that the outer source address is valid, and present if it is needed.
    fn source(&mut self, file: &FileText) {
        if let Some(Ipv6(source)) = file.source {
            if source.is_unspecified() || source.is_multicast() || source.is_loopback() {
                let message =
                    format!("`{source}` is not an address that other nodes can answer to");
                let help = "write an address of this node, such as fd00:0:1::1";
                self.place.value(steps!["source"], message, help);
            }
            return;
        }
        let mut tenants = file.tenants.0.iter();
        let tenant = tenants.position(|(_, t)| t.frames.is_some() || !t.routes.0.is_empty());
        // The tunnels of End.M.GTP6.E begin at `source`.
        let needs = |sid: &SidMap| sid.policy.is_some() || sid.behavior == Kind::EndMGtp6E;
        let sid = file.sids.0.iter().position(|(_, sid)| needs(&sid.0));
        let at: Vec<Step> = match (file.policies.0.is_empty(), tenant, sid) {
            (false, ..) => vec!["policies".into()],
            (true, Some(index), _) => vec!["tenants".into(), index.into()],
            (true, None, Some(index)) => vec!["sids".into(), index.into()],
            (true, None, None) => return,
        };
        let help = "add `source:` with an address of this node, such as fd00:0:1::1";
        self.place.key(&at, "`source` is missing, and packets are encapsulated", help);
    }

    /// Returns the source prefixes that may address SIDs. They must include this node's own
    /// address, which other nodes see as source.
    fn sources(&mut self, file: &FileText) -> Vec<Ipv6Net> {
        let sources: Vec<Ipv6Net> = file.sources.0.iter().map(|prefix| prefix.0).collect();
        if let Some(at) = sources.iter().position(|net| net.prefix_len() == 0) {
            let help = "write the prefixes of the SR domain's nodes, or remove `sources`";
            self.place.value(steps!["sources", at], "every source is in `::/0`", help);
        }
        if let Some(Ipv6(source)) = file.source
            && !sources.is_empty()
            && !sources.iter().any(|net| net.contains(&source))
        {
            let message = format!("`source` {source} is in none of `sources`");
            let help = "add its prefix: with this list, other nodes drop what this one sends";
            self.place.key(steps!["sources"], message, help);
        }
        sources
    }

    /// Returns the locators in sorted order, without those that are contained in others.
    fn locators(&mut self, given: &[Locator]) -> Vec<Locator> {
        let mut order: Vec<(Locator, usize)> =
            given.iter().enumerate().map(|(index, locator)| (*locator, index)).collect();
        order.sort_by_key(|(locator, index)| {
            (locator.prefix().network(), locator.prefix().prefix_len(), *index)
        });
        let mut apart: Vec<(Locator, usize)> = Vec::with_capacity(order.len());
        for (locator, index) in order {
            match apart.last() {
                Some((outer, of)) if outer.prefix().contains(&locator.prefix()) => {
                    let (last, other) = if index > *of { (index, outer) } else { (*of, &locator) };
                    let message = format!("`{}` overlaps the locator {other}", given[last]);
                    let help = "remove one of the two";
                    self.place.value(steps!["locators", last], message, help);
                }
                _ => apart.push((locator, index)),
            }
        }
        apart.into_iter().map(|(locator, _)| locator).collect()
    }

    fn limits(&mut self, given: &LimitsText, sids: usize) -> Limits {
        let prefixes = self.tenants.values().map(|tenant| tenant.routes.len()).sum();
        let (policies, lists) = self.needs;
        let mut size = |key: &'static str, given: Option<u32>, needed: usize, least: u32| {
            let Some(given) = given else {
                let needed = u32::try_from(needed).unwrap_or(u32::MAX).min(MAX_SIZE);
                return needed.next_power_of_two().max(least);
            };
            if given == 0 || given > MAX_SIZE {
                let help = format!("write 1 to {MAX_SIZE}, or remove it");
                let message = format!("a table for {given} {key} is not possible");
                self.place.value(steps!["limits", key], message, &help);
            } else if (given as usize) < needed {
                let help = format!("write at least {needed}, or remove it");
                let message = format!("the file has {needed} {key}, more than {given}");
                self.place.value(steps!["limits", key], message, &help);
            }
            given
        };
        let least = Limits::default();
        Limits {
            sids: size("sids", given.sids, sids, least.sids),
            prefixes: size("prefixes", given.prefixes, prefixes, least.prefixes),
            policies: size("policies", given.policies, policies, least.policies),
            lists: size("lists", given.lists, lists, least.lists),
            tenants: size("tenants", given.tenants, self.tenants.len(), least.tenants),
            held: size("held", given.held, 0, least.held),
        }
    }
}
