//! VLANs of ports in the SR domain.

use document::Step;
use model::dataplane::{Attachment, Name, Tags};

use super::checked::{At, Checked};
use super::file::PortText;
use super::vlan_text::VlanText;

/// Limit of the VLANs of a port.
const MAX_VLANS: usize = 4094;

impl Checked<'_> {
    /// Returns the VLANs of a port.
    pub(crate) fn vlans(&mut self, at: At<'_>, texts: &[VlanText]) -> Vec<Tags> {
        if texts.len() > MAX_VLANS {
            let message = format!("{} VLANs, more than {MAX_VLANS}", texts.len());
            self.place.value(&at(), message, "use another port for some of them");
            return Vec::new();
        }
        let mut vlans = Vec::with_capacity(texts.len());
        for (item, VlanText(text)) in texts.iter().enumerate() {
            let at = || {
                let mut path = at();
                path.push(Step::Index(item));
                path
            };
            if text.vlan.is_none() {
                self.place.value(&at(), "tags without `vlan`", "write a VLAN ID, such as 100");
                continue;
            }
            let tags = self.tags(&at, text.vlan, text.inner);
            if vlans.contains(&tags) {
                let message = format!("VLAN {} is given twice", shown(tags));
                self.place.value(&at(), message, "remove one of the two");
                continue;
            }
            vlans.push(tags);
        }
        vlans
    }

    /// Checks that a tenant does not own frames that may have the tags of a VLAN in the SR domain:
    /// untagged ones of the same port, whose sender chooses its tags.
    pub(crate) fn domain_vlans(&mut self, ports: &[(String, PortText)]) {
        for (index, (name, text)) in ports.iter().enumerate() {
            let port = self.ports.get(name.as_str());
            let tenant = port.and_then(|port| port.tenant.clone());
            if let Some(tenant) = tenant.filter(|_| !text.vlans.0.is_empty()) {
                let message = format!(
                    "untagged frames of `{name}` belong to `{tenant}`, whose hosts can send any tag"
                );
                let help = "give the tenant a VLAN under its `attachments:`, or remove `vlans`";
                let at = vec!["ports".into(), Step::Index(index), "vlans".into()];
                self.place.key(&at, message, help);
            }
        }
    }

    /// Returns true if the frames of an attachment are in the SR domain, or have the same outer tag and no
    /// or any inner one: its sender chooses further tags. Reports this.
    pub(crate) fn is_in_domain(&mut self, at: At<'_>, attachment: &Attachment) -> bool {
        let Attachment { port, tags } = attachment;
        let overlaps = |vlan: &&Tags| {
            let is_single = vlan.inner == 0 || tags.inner == 0;
            *vlan == tags || vlan.outer == tags.outer && is_single
        };
        let vlans = self.ports.get(port).map(|port| &port.vlans[..]).unwrap_or_default();
        let vlan = vlans.iter().find(overlaps).copied();
        if let Some(vlan) = vlan {
            let vlan = shown(vlan);
            let message =
                format!("VLAN {vlan} of `{port}` is in the SR domain (`vlans:` of the port)");
            let help = "use another VLAN, or remove it from the port's `vlans:`";
            self.place.key(&at(), message, help);
        }
        vlan.is_some()
    }

    /// Returns true if frames of a port with this outer tag are in the SR domain.
    pub(crate) fn is_domain_vlan(&self, port: Option<&Name>, vlan: u16) -> bool {
        let port = port.and_then(|port| self.ports.get(port));
        port.is_some_and(|port| port.vlans.iter().any(|tags| tags.outer == vlan))
    }
}

/// Formats tags: `100`, or `200/10`.
fn shown(tags: Tags) -> String {
    match tags {
        Tags { outer, inner: 0 } => outer.to_string(),
        Tags { outer, inner } => format!("{outer}/{inner}"),
    }
}
