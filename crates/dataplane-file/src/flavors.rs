//! Flavors: the permitted combinations with behaviors, and the lengths of compressed SIDs.

use ipnet::Ipv6Net;
use srv6::{CsidLengths, Flavor, Flavors};

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
        let (mut next_csid, mut replace_csid) = (false, false);
        for (index, flavor) in text.flavors.0.iter().copied().enumerate() {
            let held = match flavor {
                Flavor::Psp => &mut flavors.psp,
                Flavor::Usp => &mut flavors.usp,
                Flavor::Usd => &mut flavors.usd,
                Flavor::NextCsid => &mut next_csid,
                Flavor::ReplaceCsid => &mut replace_csid,
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
        if next_csid && replace_csid {
            let message = "NEXT-C-SID and REPLACE-C-SID read the argument differently";
            self.place.key(&key(at, "flavors"), message, "remove one of the two");
        } else if next_csid {
            flavors.next_csid = Some(self.container(at, sid, text, [32, 16]));
        } else if replace_csid {
            // The SID is a prefix of block and node.
            let node = text.node.unwrap_or(32);
            let block = u32::from(sid.prefix_len()).saturating_sub(node);
            let lengths = self.container(at, sid, text, [block, 32]);
            self.check_replaced(at, lengths);
            flavors.replace_csid = Some(lengths);
        } else {
            for (argument, _) in
                [("block", text.block), ("node", text.node)].iter().filter(|(_, l)| l.is_some())
            {
                let message = format!("`{argument}` is a length of NEXT-C-SID or REPLACE-C-SID");
                let help = "add `flavors: [NEXT-C-SID]`, or remove it";
                self.place.key(&key(at, argument), message, help);
            }
        }
        flavors
    }

    /// Checks the length of a C-SID (RFC 9800 section 6.1), and that the index of one fits the
    /// argument.
    fn check_replaced(&mut self, at: At<'_>, lengths: CsidLengths) {
        let CsidLengths { block_bits, node_function_bits: node } = lengths;
        if node != 16 && node != 32 {
            let message = format!("a C-SID of REPLACE-C-SID cannot have {node} bits");
            self.place.value(&key(at, "node"), message, "write 16 or 32");
        } else if u32::from(block_bits) + u32::from(node) >= 128 {
            let message = format!("a block of {block_bits} bits leaves none for the argument");
            let help = "write a shorter one, such as 48";
            self.place.value(&key(at, "block"), message, help);
        }
    }

    /// Returns the lengths of the parts of a compressed SID. `by_default`: of block and node.
    fn container(
        &mut self,
        at: At<'_>,
        sid: Ipv6Net,
        text: &SidMap,
        by_default: [u32; 2],
    ) -> CsidLengths {
        let [block, node] = by_default;
        let lengths = [("block", text.block.unwrap_or(block)), ("node", text.node.unwrap_or(node))];
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
        CsidLengths { block_bits: block as u8, node_function_bits: node as u8 }
    }
}
