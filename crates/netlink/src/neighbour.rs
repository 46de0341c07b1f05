//! Permanent neighbours: link-layer addresses that need no ARP and no neighbour discovery.

use std::net::IpAddr;

use netlink_packet_route::AddressFamily;
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};

use crate::socket::{CREATE, REPLACE};
use crate::{Mac, Request};

/// Makes `address` on `interface` permanently reachable at `mac`.
pub fn add_neighbour(interface: u32, address: IpAddr, mac: Mac) -> Request {
    let mut message = NeighbourMessage::default();
    message.header.ifindex = interface;
    message.header.state = NeighbourState::Permanent;
    let destination = match address {
        IpAddr::V4(address) => {
            message.header.family = AddressFamily::Inet;
            NeighbourAddress::Inet(address)
        }
        IpAddr::V6(address) => {
            message.header.family = AddressFamily::Inet6;
            NeighbourAddress::Inet6(address)
        }
    };
    message.attributes = vec![
        NeighbourAttribute::Destination(destination),
        NeighbourAttribute::LinkLayerAddress(mac.0.to_vec()),
    ];
    Request::of(libc::RTM_NEWNEIGH, CREATE | REPLACE, &message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Handle;
    use crate::testing::{in_namespace, output, veth};

    #[test]
    fn root_neighbours_stay() {
        in_namespace(|| {
            let mut handle = Handle::new().unwrap();
            let [interface, _] = veth(&mut handle);
            for address in ["10.0.0.9", "fe80::9"] {
                let mac = Mac([2, 0, 0, 0, 0, 9]);
                let address = address.parse().unwrap();
                handle.request("neighbour", add_neighbour(interface, address, mac)).unwrap();
                let shown = output("ip", &format!("neigh show {address} dev a"));
                assert!(shown.contains("lladdr 02:00:00:00:00:09 PERMANENT"), "{shown}");
            }
        });
    }
}
