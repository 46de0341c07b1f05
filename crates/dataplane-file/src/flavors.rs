//! Flavors: the permitted combinations with behaviors, and the lengths of NEXT-C-SID.

use ipnet::Ipv6Net;
use srv6::{Flavor, Flavors, NextCsid};

use super::checked::{At, Checked, key};
use super::names::short;
use super::sid_text::SidMap;

impl Checked<'_> {
    /// Returns the flavors of a SID.
    pub(crate) fn flavors(&mut self, at: At<'_>, sid: Ipv6Net, text: &SidMap) -> Flavors {
        let name = text.behavior.name();
        let mut flavors = Flavors::default();
        let item = |index: usize| {
            let mut path = key(at, "flavors");
            path.push(index.into());
            path
        };
        let mut next_csid = false;
        for (index, flavor) in text.flavors.0.iter().copied().enumerate() {
            let held = match flavor {
                Flavor::Psp => &mut flavors.psp,
                Flavor::Usp => &mut flavors.usp,
                Flavor::Usd => &mut flavors.usd,
                Flavor::NextCsid => &mut next_csid,
            };
            if std::mem::replace(held, true) {
                let message = format!("{} is listed twice", flavor.name());
                self.place.value(&item(index), message, "remove one of the two");
            } else if !text.behavior.info().flavors.contains(&flavor) {
                let message = format!("{name} cannot have {}", flavor.name());
                let may = text.behavior.info().flavors.iter().map(|flavor| flavor.name());
                let help = match may.collect::<Vec<_>>().join(", ") {
                    none if none.is_empty() => "remove it: it has no flavors".into(),
                    may => format!("remove it; it may have {may}"),
                };
                self.place.value(&item(index), message, &help);
            }
        }
        if next_csid {
            flavors.next_csid = Some(self.container(at, sid, text));
        } else {
            for (argument, _) in
                [("block", text.block), ("node", text.node)].iter().filter(|(_, l)| l.is_some())
            {
                let message = format!("`{argument}` is a length of NEXT-C-SID");
                let help = "add `flavors: [NEXT-C-SID]`, or remove it";
                self.place.key(&key(at, argument), message, help);
            }
        }
        flavors
    }

    /// Returns the lengths of the parts of a NEXT-C-SID container.
    fn container(&mut self, at: At<'_>, sid: Ipv6Net, text: &SidMap) -> NextCsid {
        let lengths = [("block", text.block.unwrap_or(32)), ("node", text.node.unwrap_or(16))];
        let mut right = true;
        for (argument, length) in lengths {
            if length == 0 || length > 120 || !length.is_multiple_of(8) {
                right = false;
                let message = format!("`{argument}` cannot have {length} bits");
                let help = "write a multiple of 8, from 8 to 120";
                self.place.value(&key(at, argument), message, help);
            }
        }
        let [(_, block), (_, node)] = lengths;
        if right && block + node > 128 {
            let message = format!("a block of {block} and a node of {node} bits are more than 128");
            self.place.value(&key(at, "block"), message, "shorten one of the two");
        } else if right && block + node != u32::from(sid.prefix_len()) {
            let wanted = block + node;
            let message = format!(
                "`{}` is /{}, and block and node make /{wanted}",
                short(sid),
                sid.prefix_len()
            );
            let help = format!("write {}/{wanted}, or other lengths", sid.addr());
            self.place.key(&at(), message, &help);
        }
        // Below 128, or the file is rejected.
        NextCsid { block_bits: block as u8, node_function_bits: node as u8 }
    }
}
