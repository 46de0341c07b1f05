//! Warnings about the current state.

use bpf::attach::Mode;
use dataplane::forwarding::{Endpoint, Owner, warnings};
use model::dataplane::{Dataplane as Which, Name};
use netlink::{Link, has_local_senders};

use super::Reconciler;
use super::interfaces::tagged;
use super::wanted::Wanted;

/// Returns the warning about a port that does not exist, or cannot be one.
fn left_out(port: &Name) -> String {
    format!("the port `{port}` is left out: it does not exist, or cannot be a port at present")
}

impl Reconciler {
    /// Stores the warnings about a state to install.
    pub(super) fn warn(&mut self, wanted: &Wanted, which: Which) {
        let alone = which == Which::Kernel;
        self.warnings = warnings(&wanted.forwarding, &wanted.seen.kernel, alone);
        self.warnings.extend(wanted.missing.iter().map(left_out));
        if wanted.forwarding.sids.values().any(Endpoint::is_netfilter) {
            // By their present names, which rules match.
            let links = wanted.seen.kernel.links.iter();
            let ports = links.filter(|link| wanted.forwarding.ports.contains_key(&link.index));
            let ports = ports.map(|link| link.name.as_str()).collect();
            self.warnings.extend(self.host.firewall(&ports));
        }
    }

    /// Returns the warnings about the current state.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let alone = self.which == Which::Kernel;
        let seen = self.seen.as_ref();
        let mut found =
            seen.map_or_else(Vec::new, |seen| warnings(self.plane.current(), seen, alone));
        found.extend(self.stripping());
        found.extend(self.evaded());
        found.extend(self.closed.iter().map(|port| {
            format!("`{port}` is down, since the program cannot be attached: see the log")
        }));
        let absent = self.missing.iter().filter(|port| !self.closed.contains(*port));
        found.extend(absent.map(left_out));
        found.extend(self.renamed());
        found
    }

    /// Returns warnings about renamed interfaces that are kept down.
    pub(super) fn renamed(&self) -> Vec<String> {
        let links = self.seen.iter().flat_map(|seen| &seen.links);
        let warning = |link: &Link| {
            let (name, port) = (&link.name, self.former.get(&link.index)?);
            Some(format!(
                "`{name}` is down, and its routes are gone: it was `{port}` of the file, and another interface \
                 has that name now. Name `{name}` in the file, or rename both"
            ))
        };
        links.filter_map(warning).collect()
    }

    /// Logs a warning, unless the previous change has logged it.
    pub(super) fn warn_once(&mut self, text: String) {
        if !self.logged.iter().any(|logged| logged.contains(&text)) {
            tracing::warn!("{text}");
        }
        self.logged[1].insert(text);
    }

    /// Returns warnings about ports whose senders can send packets past the program.
    pub(super) fn evaded(&self) -> Vec<String> {
        let Some(seen) = &self.seen else { return Vec::new() };
        let generic = seen.links.iter().filter(|link| {
            let port = self.plane.current().ports.get(&link.index);
            let is_checked = port.is_some_and(|port| port.edge || port.owner != Owner::Nobody);
            let is_generic = self.plane.mode(link.index) == Some(Mode::Generic);
            is_checked && is_generic && has_local_senders(&seen.links, link.index)
        });
        let warning = |link: &Link| {
            let Link { name, kind, .. } = link;
            format!(
                "senders on `{name}` ({kind}) can send packets past the program, since it is in generic mode: use \
                 `mode: native`"
            )
        };
        generic.map(warning).collect()
    }

    /// Returns warnings about ports on which the program does not see tenants' tags.
    pub(super) fn stripping(&self) -> Vec<String> {
        if self.which == Which::Kernel {
            return Vec::new();
        }
        let now = self.plane.current();
        let ports = tagged(now).into_iter().filter(|port| self.host.strips_tags(*port));
        let stripping = ports.filter_map(|index| {
            let name = &now.ports.get(&index)?.name;
            Some(self.renamed_to(index, name).unwrap_or_else(|| name.clone()))
        });
        let warning = |port| {
            format!(
                "`{port}` takes VLAN tags off before XDP sees the frames: those of tenants look untagged. Run \
                 `ethtool -K {port} rxvlan off rx-vlan-stag-hw-parse off`; if the driver does not allow it, use \
                 another port"
            )
        };
        stripping.map(warning).collect()
    }
}
