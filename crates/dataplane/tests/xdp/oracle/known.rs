//! Intentional differences between the program and the kernel, each with the condition that removes
//! it.

use bpf::measure::verdict;
use bpf::srv6::types::behavior;
use srv6::Form;
use wire::protocol::{IPV4, ROUTING};

use super::node::{Node, with_node};
use super::packets::*;
use crate::bed::{index, ip};

impl Node {
    /// Sends a frame that the program forwards and the kernel does not.
    #[track_caller]
    fn only_the_program_forwards(&mut self, frame: &[u8]) -> Vec<u8> {
        assert!(self.both(frame).is_err(), "they do the same");
        let run = self.program(frame);
        assert_eq!(run.verdict, verdict::REDIRECT);
        run.frame
    }
}

/// RFC 8986 section 4.5: the packet is sent to the next hop, which may be on the link. The kernel
/// then resolves the packet's own destination on the link instead.
#[test]
fn root_known_dx4_and_a_next_hop_on_the_link() {
    with_node(|node| {
        node.sid("fd00:1::44/128", "End.DX4 nh4 10.0.1.2", true, |sid| {
            sid.behavior = behavior::BEHAVIOR_END_DX4.0 as u8;
            sid.params.next_hop4 = u32::from_ne_bytes([10, 0, 1, 2]);
        });
        let inner = V4::new("10.1.0.1", "10.2.0.1").with(&udp(9));
        let frame = on_path(&["fd00:1::44"], 0, IPV4, &inner);
        node.only_the_program_forwards(&frame);
        ip("neigh replace 10.2.0.1 lladdr 02:00:00:00:00:0a dev l nud permanent");
        // The kernel's first packet awaited the resolution of the neighbor.
        assert_eq!(node.settle().len(), 1);
        node.forwards(&frame);
    });
}

/// IPv4 sources are not validated, neither against the node's own addresses nor by reverse path.
#[test]
fn root_known_ipv4_sources_are_not_validated() {
    with_node(|node| {
        node.configure_all(true);
        let own = V4::new("10.0.2.1", "10.2.0.1").with(&udp(9));
        node.only_the_program_forwards(&on_path(&["fd00:1::d4"], 0, IPV4, &own));
        let own = V4::new("10.0.2.1", "10.10.5.1").with(&udp(9));
        node.only_the_program_forwards(&frame4(&own));
        std::fs::write("/proc/sys/net/ipv4/conf/l/rp_filter", "1").unwrap();
        let from_elsewhere = V4::new("10.2.0.9", "10.2.0.1").with(&udp(9));
        node.only_the_program_forwards(&on_path(&["fd00:1::d4"], 0, IPV4, &from_elsewhere));
    });
}

/// bpf_fib_lookup returns the interface's MTU, and a route's MTU only if it is locked.
#[test]
fn root_known_mtu_of_a_route_that_is_not_locked() {
    with_node(|node| {
        node.configure_all(true);
        let inner = V4::new("10.1.0.1", "10.2.0.1").with(&udp(1300));
        let frame = on_path(&["fd00:1::e0", "fd00:2::1"], 1, IPV4, &inner);
        ip("-6 route add fd00:2::/32 via fd00:b::2 mtu 1280");
        node.only_the_program_forwards(&frame);
        ip("-6 route replace fd00:2::/32 via fd00:b::2 mtu lock 1280");
        let mut control = node.plane.control.read(0);
        control.generation += 1;
        node.plane.control.write(0, control);
        node.declines(&frame);
    });
}

/// End.DX2 forwards every frame; the kernel only those with an ethertype, not those with a length.
#[test]
fn root_known_dx2_takes_802_3() {
    with_node(|node| {
        node.configure_all(true);
        let tree = ethernet(&[], 0x0026, &[0x42, 0x42, 3, 0, 0, 0, 0, 0]);
        let frame = on_path(&["fd00:1::d2"], 0, 143, &tree);
        assert_eq!(node.kernel(&frame), []);
        assert_eq!(node.program(&frame).frame, tree);
    });
}

/// H.Encaps.L2 does not inspect the frame (RFC 8986 section 5.3). The kernel's L2 mode, which
/// encapsulates routed packets, copies the hop limit and the traffic class of IPv6.
#[test]
fn root_known_h_encaps_l2_of_ipv6() {
    with_node(|node| {
        ip("-6 route add fd00:20::/32 encap seg6 mode l2encap segs fd00:2::1 dev r");
        let mut port = node.plane.ports.get(&(index("l") % 16384)).unwrap().unwrap();
        port.policy = node.policy(&["fd00:2::1"], Form::Encaps, true);
        node.plane.ports.set(&(port.ifindex % 16384), &port).unwrap();
        let mut inner = V6::new("fd00:9::1", "fd00:20::9", 17);
        (inner.hop_limit, inner.flow) = (33, 0);
        let frame = frame6(&inner.with(&udp(9)));
        let mut theirs = node.kernel(&frame).remove(0).1;
        let mut ours = node.program(&frame).frame;
        assert_eq!((ours[21], theirs[21]), (63, 32));
        for frame in [&mut ours, &mut theirs] {
            frame[15..18].fill(0);
            frame[21] = 0;
        }
        assert_eq!(ours, theirs);
    });
}

/// Among equal-cost paths, an endpoint selects the same one as the kernel.
#[test]
fn root_oracle_equal_paths() {
    with_node(|node| {
        node.configure_all(true);
        ip("-6 route add fd00:e::/32 nexthop via fd00:a::2 nexthop via fd00:b::2");
        let mut to_the_left = 0;
        for flow in 0..64 {
            let srh = Routing::new(&["fd00:1::e0", "fd00:e::1"], 1, 17).with(&udp(9));
            let mut outer = V6::new("fd00:9::1", "fd00:1::e0", ROUTING);
            outer.flow = 0x1234 * flow;
            let out = node.forwards(&frame6(&outer.with(&srh)));
            to_the_left += usize::from(out[5] == 0xa);
        }
        assert!((1..64).contains(&to_the_left), "{to_the_left}");
    });
}
