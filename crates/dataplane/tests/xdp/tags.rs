//! Stacked VLAN tags on a port with attachments: a frame that the kernel delivers to the interface of
//! an attachment is treated as that attachment's, or is dropped.

use bpf::Srv6;
use bpf::measure::{run_once, verdict};
use bpf::srv6::Sizes;
use dataplane::forwarding::{
    Attachment, Forwarding, Owner, Policy, PolicyId, Port, TABLE_TENANTS, Tags, Weighted,
};
use dataplane::xdp::Tables;
use ipnet::IpNet;
use netlink::Mac;
use srv6::{Form, SegmentList, Sid};

use crate::bed::*;

const TENANT: u32 = TABLE_TENANTS + 1;
const TO: &str = "10.2.0.0/16";

/// Returns a state in which VLAN 5 of the left port is a tenant's, with permitted sources. Untagged
/// frames there belong to `owner`.
fn state(owner: Owner) -> Forwarding {
    let id = PolicyId::Named(Some(TENANT), "fd00:2::1".into());
    let segments = SegmentList(vec![Sid("fd00:2::1".parse().unwrap())]);
    let lists = vec![Weighted { segments, weight: 1 }];
    let policy = Policy { lists, form: Form::EncapsRed, in_kernel: false };
    let port = |name: &str, mac: [u8; 6], owner: Owner| {
        let (mac, closed, name) = (Mac(mac), owner != Owner::Nobody, name.to_owned());
        let index = index(&name);
        (index, Port { mac, owner, exit: None, closed, edge: false, requires_hmac: false, name })
    };
    let net = |text: &str| text.parse::<IpNet>().unwrap();
    let tags = Tags { outer: 5, inner: 0 };
    let attachment = Attachment { port: index("l"), tags };
    Forwarding {
        source: "fd00:1::".parse().unwrap(),
        sources: [(None, net("fd00:5::/48")), (Some(TENANT), net("10.1.0.0/24"))].into(),
        ports: [port("l", NODE_LEFT, owner), port("r", [2, 0, 0, 0, 0, 2], Owner::Nobody)].into(),
        attachments: [(attachment, Owner::Tenant(TENANT))].into(),
        prefixes: [((TENANT, net(TO)), id.clone())].into_iter().collect(),
        policies: [(id, policy)].into_iter().collect(),
        ..Forwarding::default()
    }
}

/// Returns a packet of the tenant's network, from an address that is not the tenant's unless
/// `is_own`, with these tags.
fn tagged(is_own: bool, tags: &[u32]) -> Vec<u8> {
    let source = if is_own { "10.1.0.1" } else { "10.7.0.1" };
    let mut frame = frame(&udp4(source, "10.2.0.1", 22));
    frame.splice(12..12, tags.iter().flat_map(|tag| tag.to_be_bytes()));
    frame
}

fn verdict_on(tables: &Tables, frame: &[u8]) -> u32 {
    run_once(tables.program().program(), index("l"), frame).unwrap().verdict
}

#[test]
fn root_no_stack_of_tags_hides_a_tenants_packet() {
    in_node(|| {
        for owner in [Owner::Nobody, Owner::Tenant(TENANT)] {
            let mut tables = Tables::new(Srv6::load(Sizes::default()).unwrap());
            tables.change_to(state(owner.clone())).unwrap();
            let verdict_on =
                |is_own: bool, tags: &[u32]| verdict_on(&tables, &tagged(is_own, tags));
            for tags in [&[0x8100_0005][..], &[0x88a8_0005], &[0x8100_0005, 0x8100_0000]] {
                assert_eq!(verdict_on(true, tags), verdict::REDIRECT, "{owner:?}, {tags:x?}");
                assert_eq!(verdict_on(false, tags), verdict::DROP, "{owner:?}, {tags:x?}");
            }
            for tags in [
                &[0x8100_0005, 0x88a8_0000][..],
                &[0x8100_0005, 0x88a8_0005],
                &[0x8100_0005, 0x8100_0000, 0x8100_0000],
                &[0x8100_0005, 0x8100_0000, 0x88a8_0000],
                &[0x8100_0009, 0x8100_0000, 0x8100_0005],
                &[0x8100_0000, 0x8100_0005],
                &[0x8100_0000, 0x88a8_0005],
                &[0x88a8_0000, 0x8100_0005],
                &[0x8100_0000, 0x8100_0000, 0x8100_0005],
            ] {
                assert_eq!(verdict_on(false, tags), verdict::DROP, "{owner:?}, {tags:x?}");
            }
            // The kernel has no interface of the tenant for these.
            for tags in [&[0x8100_0009][..], &[0x8100_0005, 0x8100_0009]] {
                assert_eq!(verdict_on(false, tags), verdict::PASS, "{owner:?}, {tags:x?}");
            }
        }
    });
}

/// Frames with a priority tag are the port's.
#[test]
fn root_a_port_of_whole_frames_leaves_no_priority_tag_to_the_kernel() {
    in_node(|| {
        let mut tables = Tables::new(Srv6::load(Sizes::default()).unwrap());
        let id = PolicyId::Named(Some(TENANT), "fd00:2::1".into());
        tables.change_to(state(Owner::Frames(id))).unwrap();
        let on = |tags: &[u32]| verdict_on(&tables, &tagged(false, tags));
        assert_eq!(on(&[]), verdict::REDIRECT);
        assert_eq!([on(&[0x8100_0000]), on(&[0x88a8_2000])], [verdict::REDIRECT; 2]);
        for tags in [&[0x8100_0000, 0x8100_0000][..], &[0x8100_0000, 0x88a8_0000]] {
            assert_eq!(on(tags), verdict::DROP, "{tags:x?}");
        }
        assert_eq!(on(&[0x8100_0009]), verdict::PASS, "another VLAN");
    });
}
