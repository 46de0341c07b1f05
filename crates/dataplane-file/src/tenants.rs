//! Ports and tenants: owners of frames, and policies of tenants' packets.

use std::collections::{HashMap, HashSet};

use document::{Prefix, Step, steps};
use ipnet::IpNet;
use model::dataplane::{Attachment, Mode, Name, Port, Steer, Table, Tags, Tenant};
use model::is_lab_name;
use srv6::Payload;

use super::checked::{At, Checked};
use super::file::{AttachmentText, PortText, TenantText};
use super::names::NAME_HELP;
use super::steer_text::SteerText;
use super::tag_owners::{TagOwners, Taken};

impl Checked<'_> {
    /// Adds the ports. Their tenants are not known yet.
    pub(crate) fn ports(&mut self, texts: &[(String, PortText)], mode: Option<Mode>) {
        if texts.is_empty() {
            let help = "write at least one, such as `eth0: {}`";
            self.place.key(steps!["ports"], "no ports", help);
        }
        let names: HashSet<&str> = texts.iter().map(|(name, _)| name.as_str()).collect();
        for (index, (name, text)) in texts.iter().enumerate() {
            const HELP: &str = "write a name as `ip link` shows it: up to 15 bytes";
            if !model::is_interface_name(name) {
                let message = format!("`{name}` cannot name an interface");
                self.place.key(steps!["ports", index], message, HELP);
            }
            let at_exit = steps!["ports", index, "exit"];
            match &text.exit {
                Some(exit) if !model::is_interface_name(exit) => {
                    let message = format!("`{exit}` cannot name an interface");
                    self.place.value(at_exit, message, HELP);
                }
                Some(exit) if names.contains(exit.as_str()) => {
                    let message = format!("`{exit}` is a port, and an exit cannot be one");
                    let help = "name an interface that leads to the port's queue, or remove it";
                    self.place.value(at_exit, message, help);
                }
                _ => {}
            }
            let mode = text.mode.or(mode).unwrap_or_default();
            let line = self.line("ports", index);
            let exit = text.exit.as_deref().map(Into::into);
            let edge = text.sids == Some(false);
            let at_vlans = || vec!["ports".into(), Step::Index(index), "vlans".into()];
            let vlans = self.vlans(&at_vlans, &text.vlans.0);
            let port = Port { mode, tenant: None, exit, edge, vlans, line };
            self.ports.insert(name.as_str().into(), port);
        }
    }

    /// Adds the tenants, and resolves the references of the ports to them.
    pub(crate) fn tenants(
        &mut self,
        ports: &[(String, PortText)],
        texts: Vec<(String, TenantText)>,
    ) {
        let names: HashMap<String, usize> =
            texts.iter().enumerate().map(|(index, (name, _))| (name.clone(), index)).collect();
        let takes_frames: Vec<bool> = texts.iter().map(|(_, text)| text.frames.is_some()).collect();
        let mut owners = TagOwners::default();
        for (index, (name, text)) in ports.iter().enumerate() {
            let Some(tenant) = &text.tenant else { continue };
            match names.get(tenant) {
                Some(of) => {
                    // Names of ports are unique.
                    let _ = owners.insert(&name.as_str().into(), Tags::default(), *of);
                    if let Some(port) = self.ports.get_mut(name.as_str()) {
                        port.tenant = Some(tenant.as_str().into());
                    }
                }
                None => {
                    // Each search takes time.
                    let known: Vec<Name> = match self.place.searches() {
                        true => names.keys().map(|name| name.as_str().into()).collect(),
                        false => Vec::new(),
                    };
                    let at = || vec!["ports".into(), Step::Index(index), "tenant".into()];
                    self.unknown(&at, "tenant", tenant, &known, &add_tenant(tenant));
                }
            }
        }
        let mut tenant_names: Vec<Name> = Vec::with_capacity(texts.len());
        for (index, (name, mut text)) in texts.into_iter().enumerate() {
            let name: Name = name.into();
            tenant_names.push(name.clone());
            let at = |key: &'static str| vec!["tenants".into(), Step::Index(index), key.into()];
            if !is_lab_name(&name) {
                let message = format!("`{name}` cannot name a tenant");
                self.place.key(steps!["tenants", index], message, NAME_HELP);
            }
            let table = self.table(&|| at("table"), &|| at("vrf"), text.table, text.vrf.take());
            let mut attachments = Vec::new();
            for (item, text) in text.attachments.0.iter().enumerate() {
                let at = || {
                    let mut path = at("attachments");
                    path.push(Step::Index(item));
                    path
                };
                let Some(attachment) = self.attachment(&at, text) else { continue };
                if self.is_in_domain(&at, &attachment) {
                    continue;
                }
                if let Err(taken) = owners.insert(&attachment.port, attachment.tags, index) {
                    let (Taken::By(other) | Taken::Overlaps(other)) = taken;
                    let other_name = tenant_names.get(other).cloned();
                    let of = other_name.unwrap_or_else(|| self.name_of("tenants", other));
                    match taken {
                        Taken::By(_) => {
                            let differs = takes_frames[other] != takes_frames[index];
                            self.used_twice(&at, &attachment, &of, differs);
                        }
                        Taken::Overlaps(_) => self.overlapping(&at, &attachment, &of),
                    }
                    continue;
                }
                if attachment.tags == Tags::default() {
                    if let Some(port) = self.ports.get_mut(&*attachment.port) {
                        port.tenant = Some(name.clone());
                    }
                } else {
                    attachments.push(attachment);
                }
            }
            if text.frames.is_some() && !text.routes.0.is_empty() {
                let message = format!("`{name}` has both `frames` and `routes`");
                let help = "make two tenants of it: frames leave before anyone looks inside";
                self.place.key(&at("frames"), message, help);
            }
            if text.frames.is_some() && !text.sources.0.is_empty() {
                let message = format!("`{name}` has both `frames` and `sources`");
                let help = "remove `sources`: frames are taken whatever is inside";
                self.place.key(&at("sources"), message, help);
            }
            let sources = text.sources.0.iter().map(|prefix| prefix.0).collect();
            let falls_through = text.falls_through.unwrap_or_default();
            let frames = text
                .frames
                .as_mut()
                .map(|steer| self.steer(&|| at("frames"), steer, Payload::Frame));
            let routes = self.routes(index, std::mem::take(&mut text.routes.0));
            self.count(&frames, routes.iter().map(|(_, steer)| steer));
            let line = self.line("tenants", index);
            let tenant =
                Tenant { table, falls_through, sources, attachments, frames, routes, line };
            self.tenants.insert(name, tenant);
        }
    }

    fn routes(&mut self, tenant: usize, texts: Vec<(Prefix, SteerText)>) -> Vec<(IpNet, Steer)> {
        let mut known = HashSet::with_capacity(texts.len());
        let mut routes = Vec::with_capacity(texts.len());
        for (index, (prefix, mut steer)) in texts.into_iter().enumerate() {
            let at =
                || vec!["tenants".into(), Step::Index(tenant), "routes".into(), Step::Index(index)];
            if !known.insert(prefix.0) {
                let message = format!("`{}` is given twice", prefix.0);
                self.place.key(&at(), message, "remove one of the two");
            }
            let steer = self.any_steer(&at, &mut steer);
            self.check_session_route(&at, prefix.0, &steer);
            self.check_insert_route(&at, prefix.0, &steer);
            routes.push((prefix.0, steer));
        }
        routes
    }

    /// Returns a table given by one of its two keys.
    pub(crate) fn table(
        &mut self,
        at_table: At<'_>,
        at_vrf: At<'_>,
        table: Option<u32>,
        vrf: Option<String>,
    ) -> Option<Table> {
        if table == Some(0) {
            let help = "write the number of one, such as 100; 254 is the main table";
            self.place.value(&at_table(), "no table 0", help);
        }
        if table.is_some() && vrf.is_some() {
            let message = "`table` and `vrf` both say where packets are looked up";
            self.place.key(&at_vrf(), message, "remove one of them");
        }
        vrf.map(|name| Table::Vrf(name.into())).or(table.map(Table::Number))
    }

    fn attachment(&mut self, at: At<'_>, text: &AttachmentText) -> Option<Attachment> {
        let tags = self.tags(at, text.vlan, text.inner);
        let port = self.port(
            &|| {
                let mut path = at();
                path.push("port".into());
                path
            },
            &text.port,
        )?;
        Some(Attachment { port, tags })
    }

    fn used_twice(&mut self, at: At<'_>, attachment: &Attachment, of: &str, differs: bool) {
        let Attachment { port, tags } = attachment;
        let what = match tags {
            Tags { outer: 0, .. } => format!("what comes to `{port}` without a tag"),
            Tags { outer, inner: 0 } => format!("VLAN {outer} of `{port}`"),
            Tags { outer, inner } => format!("VLAN {outer}, {inner} of `{port}`"),
        };
        let help = if differs {
            "frames and routes need VLANs of their own: use another port or VLAN"
        } else {
            "use another VLAN, or remove one of the two"
        };
        self.place.key(&at(), format!("{what} is `{of}`'s already"), help);
    }

    /// Reports frames with the same outer tag as those of another tenant.
    fn overlapping(&mut self, at: At<'_>, attachment: &Attachment, of: &str) {
        let Attachment { port, tags } = attachment;
        let outer = tags.outer;
        let message = match tags.inner {
            0 => format!("`{of}` owns a VLAN within VLAN {outer} of `{port}`"),
            _ => format!("VLAN {outer} of `{port}` belongs to `{of}`"),
        };
        let message = format!("{message}, and hosts choose the second tag");
        self.place.key(&at(), message, "use another outer tag for one of the two tenants");
    }

    /// Returns the VLAN tags `vlan:` and `inner:` below `at`.
    pub(crate) fn tags(&mut self, at: At<'_>, vlan: Option<u32>, inner: Option<u32>) -> Tags {
        let mut tag = |key: &'static str, given: Option<u32>| {
            let id = given.unwrap_or(0);
            if given.is_some() && !(1..=4094).contains(&id) {
                let mut path = at();
                path.push(key.into());
                let help = "write 1 to 4094, or remove it for frames without a tag";
                self.place.value(&path, format!("{id} is not a VLAN ID"), help);
            }
            // In range, or the file is rejected.
            id as u16
        };
        let tags = Tags { outer: tag("vlan", vlan), inner: tag("inner", inner) };
        if inner.is_some() && vlan.is_none() {
            let mut path = at();
            path.push("inner".into());
            self.place.key(&path, "an inner tag without an outer one", "add `vlan:`");
        }
        tags
    }

    /// Returns the port `name`.
    pub(crate) fn port(&mut self, at: At<'_>, name: &str) -> Option<Name> {
        if let Some((name, _)) = self.ports.get_key_value(name) {
            return Some(name.clone());
        }
        let names = self.names(&self.ports);
        let add = format!("add `{name}: {{}}` under `ports:`");
        self.unknown(at, "port", name, &names, &add);
        None
    }
}

pub(crate) fn add_tenant(name: &str) -> String {
    format!("add `{name}:` under `tenants:`")
}
