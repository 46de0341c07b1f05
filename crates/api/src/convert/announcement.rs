//! Nodes' announcements.

use std::net::IpAddr;

use model::{Adjacency, AnnouncedFunction, AnnouncedInterface, Announcement, Bandwidth, NodeSids};

use super::{ConvertError, bandwidth, node_name, parse, sid};
use crate::v1;

impl From<NodeSids> for v1::NodeSids {
    fn from(sids: NodeSids) -> Self {
        Self {
            end: sids.end.to_string(),
            decap_ipv4: sids.decap_ipv4.to_string(),
            decap_ipv6: sids.decap_ipv6.to_string(),
        }
    }
}

impl TryFrom<v1::NodeSids> for NodeSids {
    type Error = ConvertError;

    fn try_from(sids: v1::NodeSids) -> Result<Self, ConvertError> {
        Ok(Self {
            end: sid("end", &sids.end)?,
            decap_ipv4: sid("decap_ipv4", &sids.decap_ipv4)?,
            decap_ipv6: sid("decap_ipv6", &sids.decap_ipv6)?,
        })
    }
}

impl From<&AnnouncedFunction> for v1::Function {
    fn from(function: &AnnouncedFunction) -> Self {
        Self {
            name: function.name.clone(),
            prefix: function.prefix.to_string(),
            sid: function.sid.to_string(),
            up: function.up,
        }
    }
}

impl TryFrom<v1::Function> for AnnouncedFunction {
    type Error = ConvertError;

    fn try_from(function: v1::Function) -> Result<Self, ConvertError> {
        Ok(Self {
            prefix: parse("prefix", &function.prefix)?,
            sid: sid("sid", &function.sid)?,
            name: function.name,
            up: function.up,
        })
    }
}

impl From<&AnnouncedInterface> for v1::Interface {
    fn from(interface: &AnnouncedInterface) -> Self {
        let adjacencies = interface.adjacencies.iter().map(|adjacency| v1::Adjacency {
            neighbor: adjacency.neighbor.clone(),
            cost: adjacency.cost,
            end_x: adjacency.end_x.map(|sid| sid.to_string()).unwrap_or_default(),
        });
        Self {
            name: interface.name.clone(),
            capacity_bps: interface.capacity.map_or(0, Bandwidth::bps),
            up: interface.up,
            adjacencies: adjacencies.collect(),
        }
    }
}

impl TryFrom<v1::Interface> for AnnouncedInterface {
    type Error = ConvertError;

    fn try_from(interface: v1::Interface) -> Result<Self, ConvertError> {
        let adjacency = |adjacency: v1::Adjacency| {
            let end_x = match adjacency.end_x.as_str() {
                "" => None,
                text => Some(sid("end_x", text)?),
            };
            node_name("neighbor", &adjacency.neighbor)?;
            Ok(Adjacency { neighbor: adjacency.neighbor, cost: adjacency.cost, end_x })
        };
        Ok(Self {
            name: interface.name,
            capacity: bandwidth(interface.capacity_bps),
            up: interface.up,
            adjacencies: interface
                .adjacencies
                .into_iter()
                .map(adjacency)
                .collect::<Result<_, _>>()?,
        })
    }
}

impl From<&Announcement> for v1::Hello {
    fn from(announcement: &Announcement) -> Self {
        Self {
            api_version: crate::VERSION,
            node: announcement.node.clone(),
            transit: announcement.transit,
            sids: announcement.sids.map(Into::into),
            addresses: announcement.addresses.iter().map(IpAddr::to_string).collect(),
            functions: announcement.functions.iter().map(Into::into).collect(),
            interfaces: announcement.interfaces.iter().map(Into::into).collect(),
            installed: Vec::new(),
            assignments: Vec::new(),
        }
    }
}

impl TryFrom<&v1::Hello> for Announcement {
    type Error = ConvertError;

    fn try_from(hello: &v1::Hello) -> Result<Self, ConvertError> {
        if hello.node.is_empty() {
            return Err(ConvertError::Missing("node"));
        }
        node_name("node", &hello.node)?;
        let addresses = hello.addresses.iter().map(|text| parse("addresses", text));
        let functions = hello.functions.iter().cloned().map(TryInto::try_into);
        let interfaces = hello.interfaces.iter().cloned().map(TryInto::try_into);
        Ok(Self {
            functions: functions.collect::<Result<_, _>>()?,
            node: hello.node.clone(),
            transit: hello.transit,
            sids: hello.sids.clone().map(TryInto::try_into).transpose()?,
            addresses: addresses.collect::<Result<_, _>>()?,
            interfaces: interfaces.collect::<Result<_, _>>()?,
        })
    }
}
