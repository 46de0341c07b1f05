//! A device's offloads by name, as `ethtool -k` has them, over ethtool's generic netlink
//! (Documentation/networking/ethtool-netlink.rst: FEATURES_GET, FEATURES_SET, bit sets).

use netlink_packet_core::DecodeError;

use crate::attribute::{Writer, each, text};
use crate::{GenericHandle, Result};

// linux/ethtool_netlink.h
const MSG_FEATURES_GET: u8 = 11;
const MSG_FEATURES_SET: u8 = 12;
const A_FEATURES_HEADER: u16 = 1;
const A_FEATURES_WANTED: u16 = 3;
const A_FEATURES_ACTIVE: u16 = 4;
const A_HEADER_DEV_NAME: u16 = 2;
const A_BITSET_BITS: u16 = 3;
const A_BITSET_BITS_BIT: u16 = 1;
const A_BITSET_BIT_NAME: u16 = 2;
const A_BITSET_BIT_VALUE: u16 = 3;

impl GenericHandle {
    /// Switches the named offloads of `interface` on or off, such as
    /// `tx-ipxip6-segmentation`. An unknown name is an error; one that the device does not let
    /// change stays as it is: [`GenericHandle::features`] tells.
    pub fn set_features(&mut self, interface: &str, names: &[&str], on: bool) -> Result<()> {
        let mut body = header(interface);
        body.nest(A_FEATURES_WANTED, |set| {
            set.nest(A_BITSET_BITS, |bits| {
                for name in names {
                    bits.nest(A_BITSET_BITS_BIT, |bit| {
                        bit.put_text(A_BITSET_BIT_NAME, name);
                        if on {
                            bit.put(A_BITSET_BIT_VALUE, &[]);
                        }
                    });
                }
            });
        });
        let state = if on { "on" } else { "off" };
        let operation = format!("switch {state} {} of {interface}", names.join(", "));
        self.call("ethtool", MSG_FEATURES_SET, &body, &operation)
    }

    /// The names of `interface`'s offloads that are on.
    pub fn features(&mut self, interface: &str) -> Result<Vec<String>> {
        let operation = format!("read the offloads of {interface}");
        self.query("ethtool", MSG_FEATURES_GET, &header(interface), &operation, active)
    }
}

fn header(interface: &str) -> Writer {
    let mut body = Writer::default();
    body.nest(A_FEATURES_HEADER, |header| {
        header.put_text(A_HEADER_DEV_NAME, interface);
    });
    body
}

/// The bits that a FEATURES_GET_REPLY lists as active: a bit set without a mask, so that what it
/// names is on.
fn active(attributes: &[u8]) -> Result<Vec<String>, DecodeError> {
    let mut names = Vec::new();
    for attribute in each(attributes) {
        let attribute = attribute?;
        if attribute.kind() != A_FEATURES_ACTIVE {
            continue;
        }
        for attribute in each(attribute.value()) {
            let attribute = attribute?;
            if attribute.kind() != A_BITSET_BITS {
                continue;
            }
            for bit in each(attribute.value()) {
                for attribute in each(bit?.value()) {
                    let attribute = attribute?;
                    if attribute.kind() == A_BITSET_BIT_NAME {
                        names.push(text(attribute.value()));
                    }
                }
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Handle;
    use crate::testing::{in_namespace, veth};

    #[test]
    fn root_offloads_are_switched_by_name() {
        in_namespace(|| {
            let mut handle = Handle::new().unwrap();
            veth(&mut handle);
            let mut generic = GenericHandle::new().unwrap();
            let names = ["tx-ipxip4-segmentation", "tx-ipxip6-segmentation"];
            let on = |generic: &mut GenericHandle| {
                let active = generic.features("a").unwrap();
                names.map(|name| active.iter().any(|active| active == name))
            };
            assert_eq!(on(&mut generic), [true, true]);
            generic.set_features("a", &names, false).unwrap();
            assert_eq!(on(&mut generic), [false, false]);
            assert!(generic.features("a").unwrap().iter().any(|n| n == "tx-tcp-segmentation"));
            generic.set_features("a", &names[..1], true).unwrap();
            assert_eq!(on(&mut generic), [true, false]);

            let error = generic.set_features("a", &["tx-nosuch"], false).unwrap_err();
            assert!(error.to_string().contains("tx-nosuch"), "{error}");
            assert!(generic.features("nosuch0").unwrap_err().is_not_found());
        });
    }
}
