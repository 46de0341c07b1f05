//! SRv6 in the kernel: headend behaviors (RFC 8986 section 5), endpoint behaviors (section 4),
//! and the outer source address.

mod endpoint;
mod headend;

use std::net::Ipv6Addr;

use srv6::{EncapMode, Flavors, SegmentList};

use crate::attribute::Writer;
use crate::{GenericHandle, Result};

pub use endpoint::LocalAction;

// linux/lwtunnel.h
const LWTUNNEL_ENCAP_SEG6: u16 = 5;
pub(crate) const LWTUNNEL_ENCAP_SEG6_LOCAL: u16 = 7;

/// The SRv6 encapsulation (lightweight tunnel) of a route.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Encap {
    /// A headend behavior: pushes an SRH, usually together with an outer IPv6 header.
    Seg6 {
        /// The encapsulation mode.
        mode: EncapMode,
        /// The segment list, in the order of visits.
        segments: SegmentList,
    },
    /// An endpoint behavior, on a route to its SID.
    Seg6Local {
        /// The behavior.
        action: LocalAction,
        /// Flavors.
        flavors: Flavors,
        /// Enables the kernel's per-SID packet counters (`count` in `ip route`).
        counters: bool,
    },
}

impl Encap {
    /// An endpoint behavior without flavors or counters.
    pub fn local(action: LocalAction) -> Self {
        Self::Seg6Local { action, flavors: Flavors::default(), counters: false }
    }

    /// The value of RTA_ENCAP_TYPE.
    pub(crate) fn kind(&self) -> u16 {
        match self {
            Self::Seg6 { .. } => LWTUNNEL_ENCAP_SEG6,
            Self::Seg6Local { .. } => LWTUNNEL_ENCAP_SEG6_LOCAL,
        }
    }

    /// The attributes nested in RTA_ENCAP.
    pub(crate) fn to_attributes(&self) -> Vec<u8> {
        match self {
            Self::Seg6 { mode, segments } => headend::write(*mode, segments),
            Self::Seg6Local { action, flavors, counters } => {
                endpoint::write(action, *flavors, *counters)
            }
        }
    }

    /// Parses the attributes. None for encapsulations that this crate never creates: other tunnel
    /// types, an SRH with TLVs.
    pub(crate) fn from_attributes(kind: u16, attributes: &[u8]) -> Option<Self> {
        match kind {
            LWTUNNEL_ENCAP_SEG6 => {
                headend::read(attributes).map(|(mode, segments)| Self::Seg6 { mode, segments })
            }
            LWTUNNEL_ENCAP_SEG6_LOCAL => endpoint::read(attributes)
                .map(|(action, flavors, counters)| Self::Seg6Local { action, flavors, counters }),
            _ => None,
        }
    }
}

// linux/seg6_genl.h
const SEG6_CMD_SET_TUNSRC: u8 = 3;
const SEG6_CMD_GET_TUNSRC: u8 = 4;
const SEG6_ATTR_DST: u16 = 1;

impl GenericHandle {
    /// Sets the source address of all outer headers pushed in this namespace. Without it, the
    /// kernel selects one per packet, which costs a lookup and depends on the interface.
    pub fn set_tunnel_source(&mut self, source: Ipv6Addr) -> Result<()> {
        let mut body = Writer::default();
        body.put(SEG6_ATTR_DST, &source.octets());
        self.call("SEG6", SEG6_CMD_SET_TUNSRC, &body, &format!("set the tunnel source {source}"))
    }

    /// The source address of outer headers; `::` if the kernel selects it per packet.
    pub fn tunnel_source(&mut self) -> Result<Ipv6Addr> {
        let body = Writer::default();
        self.query("SEG6", SEG6_CMD_GET_TUNSRC, &body, "read the tunnel source", |attributes| {
            for attribute in crate::attribute::each(attributes) {
                let attribute = attribute?;
                if attribute.kind() == SEG6_ATTR_DST {
                    return crate::attribute::array(attribute.value(), 0).map(Ipv6Addr::from);
                }
            }
            Err("no address in it".into())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{in_namespace, output};

    #[test]
    fn root_the_tunnel_source_is_read_back() {
        in_namespace(|| {
            let mut handle = GenericHandle::new().unwrap();
            assert_eq!(handle.tunnel_source().unwrap(), Ipv6Addr::UNSPECIFIED);
            handle.set_tunnel_source("fd00::7".parse().unwrap()).unwrap();
            assert_eq!(handle.tunnel_source().unwrap().to_string(), "fd00::7");
            assert_eq!(output("ip", "sr tunsrc show").trim(), "tunsrc addr fd00::7");
        });
    }
}
