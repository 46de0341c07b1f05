//! Stacked VLAN tags on a port with attachments: a frame that the kernel delivers to the interface of
//! an attachment is treated as that attachment's, or is dropped.

use bpf::Srv6;
use bpf::measure::{run_once, verdict};
use bpf::srv6::Sizes;
use dataplane::forwarding::{
    Attachment, Behavior, DomainVlan, Endpoint, Forwarding, Owner, Policy, PolicyId, Port,
    TABLE_TENANTS, Tags, VlanInterface, Weighted,
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
    let policy = Policy { lists, form: Form::EncapsRed, session: None, in_kernel: false };
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

/// While a port changes between an edge's and a tenant's, it has the flags of both.
#[test]
fn root_an_edge_that_is_closed_keeps_its_checks() {
    in_node(|| {
        let mut tables = Tables::new(Srv6::load(Sizes::default()).unwrap());
        let mut state = state(Owner::Nobody);
        for closed in [false, true] {
            let port = state.ports.get_mut(&index("l")).unwrap();
            (port.edge, port.closed) = (true, closed);
            tables.change_to(state.clone()).unwrap();
            let on = |source| verdict_on(&tables, &frame(&udp6(source, "fd00:a::1", 20)));
            assert_eq!(on("fd00:5::1"), verdict::DROP, "closed: {closed}");
            assert_eq!(on("fd00:7::1"), verdict::PASS, "closed: {closed}");
        }
    });
}

/// Policy rules, which drop packets with a source of the domain elsewhere, have no effect in a VRF.
#[test]
fn root_sources_of_an_imported_vlan_in_a_vrf_are_checked() {
    in_node(|| {
        let mut tables = Tables::new(Srv6::load(Sizes::default()).unwrap());
        let frames = Attachment { port: index("l"), tags: Tags { outer: 5, inner: 0 } };
        for is_in_vrf in [false, true] {
            let mut state = state(Owner::Nobody);
            state.attachments = [(frames, Owner::Tenant(TABLE_TENANTS))].into();
            state.vlans = [(VLAN, VlanInterface { frames, macs: Vec::new(), is_in_vrf })].into();
            tables.change_to(state).unwrap();
            let on = |source| {
                let mut frame = frame(&udp6(source, "fd00:a::1", 20));
                frame.splice(12..12, 0x8100_0005_u32.to_be_bytes());
                verdict_on(&tables, &frame)
            };
            let spoofed = if is_in_vrf { verdict::DROP } else { verdict::PASS };
            assert_eq!([on("fd00:5::1"), on("fd00:7::1")], [spoofed, verdict::PASS]);
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

/// Number of entries of ports, by the lowest bits of their indices.
const SLOTS: u32 = bpf::srv6::types::limit::LIMIT_PORTS.0;

/// Index of the VLAN interface, which this kernel may not have.
const VLAN: u32 = 9000;
const SID: &str = "fd00:1::1";
const ONE: Tags = Tags { outer: 100, inner: 0 };
const TWO: Tags = Tags { outer: 200, inner: 10 };
/// Has the same slot as `ONE`: 10 * 509 + 3202 = 100 + 2 * 4096.
const SAME_SLOT: Tags = Tags { outer: 3202, inner: 10 };

/// Returns a state in which VLANs of the left port are in the SR domain. The SID sends frames to
/// the right.
fn in_domain(vlans: &[Tags]) -> Forwarding {
    let mut state = state(Owner::Nobody);
    let endpoint = Endpoint::new(Behavior::EndDx2 { port: index("r") });
    state.sids = [(format!("{SID}/128").parse().unwrap(), endpoint)].into_iter().collect();
    state.sources = [].into();
    state.attachments.clear();
    for (index_of, tags) in (VLAN..).zip(vlans) {
        let frames = Attachment { port: index("l"), tags: *tags };
        let (name, mac) = (format!("l.{tags}"), Mac(NODE_LEFT));
        let vlan = DomainVlan { name, frames, mac, closed: false, requires_hmac: false };
        state.domain_vlans.insert(index_of, vlan);
    }
    state
}

/// Returns an Ethernet frame to the SID, with these tags.
fn to_sid(sid: &str, tags: &[u32]) -> Vec<u8> {
    let inner = frame(&udp4("10.1.0.1", "10.2.0.1", 22));
    let mut packet = vec![0x60, 0, 0, 0, 0, inner.len() as u8, 143, 64];
    for address in ["fd00:9::1", sid] {
        packet.extend(address.parse::<std::net::Ipv6Addr>().unwrap().octets());
    }
    packet.extend(inner);
    let mut frame = frame(&packet);
    frame.splice(12..12, tags.iter().flat_map(|tag| tag.to_be_bytes()));
    frame
}

#[test]
fn root_sids_are_reached_in_vlans_of_the_domain() {
    in_node(|| {
        let mut tables = Tables::new(Srv6::load(Sizes::default()).unwrap());
        tables.change_to(in_domain(&[ONE, TWO])).unwrap();
        let run = |sid: &str, tags: &[u32]| {
            let sent = to_sid(sid, tags);
            let run = run_once(tables.program().program(), index("l"), &sent).unwrap();
            // The kernel gets the frame as it came.
            assert!(run.verdict != verdict::PASS || run.frame == sent, "{tags:x?}");
            run.verdict
        };
        for tags in [
            &[][..],
            &[0x8100_0064],
            &[0x8100_e064],
            &[0x88a8_00c8, 0x8100_000a],
            &[0x8100_0000],
            &[0x8100_6000],
        ] {
            assert_eq!(run(SID, tags), verdict::REDIRECT, "{tags:x?}");
            assert_eq!(run("fd00:1::2", tags), verdict::PASS, "{tags:x?}");
        }
        for tags in [
            // VLAN interfaces have 802.1Q, and 802.1ad with 802.1Q within.
            &[0x88a8_0064][..],
            &[0x8100_00c8, 0x8100_000a],
            &[0x8100_000a],
            &[0x8100_00c8],
            &[0x88a8_00c8],
            &[0x88a8_00c8, 0x8100_000b],
            &[0x88a8_00c8, 0x8100_0000],
            &[0x88a8_0000],
            &[0x8100_0064, 0x8100_0064],
            &[0x8100_0064, 0x8100_0000],
        ] {
            assert_eq!(run(SID, tags), verdict::PASS, "{tags:x?}");
        }
        // The kernel would remove the priority tag, and deliver them to a VLAN of the domain.
        for tags in [
            &[0x8100_0000, 0x8100_0064][..],
            &[0x88a8_0000, 0x8100_0064],
            &[0x8100_0000, 0x8100_0000, 0x8100_0064],
            &[0x8100_0000, 0x88a8_00c8, 0x8100_000a],
            &[0x88a8_00c8, 0x8100_0000, 0x8100_000a],
            &[0x88a8_00c8, 0x88a8_0000, 0x8100_000a],
        ] {
            assert_eq!(run(SID, tags), verdict::DROP, "{tags:x?}");
        }
    });
}

/// Frames cut anywhere, which may end within a tag.
#[test]
fn root_short_tagged_frames_are_left_as_they_are() {
    in_node(|| {
        let mut tables = Tables::new(Srv6::load(Sizes::default()).unwrap());
        tables.change_to(in_domain(&[ONE, TWO])).unwrap();
        for tags in [&[0x8100_0064][..], &[0x88a8_00c8, 0x8100_000a], &[0x8100_0000]] {
            let whole = to_sid(SID, tags);
            for length in 14..whole.len() {
                let sent = &whole[..length];
                let run = run_once(tables.program().program(), index("l"), sent).unwrap();
                assert!(
                    run.verdict == verdict::DROP
                        || run.verdict == verdict::PASS && run.frame == sent,
                    "{tags:x?}, {length} bytes: {}",
                    run.verdict
                );
            }
        }
    });
}

#[test]
fn root_vlans_join_and_leave_the_domain() {
    in_node(|| {
        let mut tables = Tables::new(Srv6::load(Sizes::default()).unwrap());
        let on = |tables: &Tables, tags: &[u32]| verdict_on(tables, &to_sid(SID, tags));
        let (one, two) = (&[0x8100_0064][..], &[0x88a8_00c8, 0x8100_000a][..]);
        for (vlans, expected) in [
            (&[][..], [verdict::PASS, verdict::PASS]),
            (&[ONE], [verdict::REDIRECT, verdict::PASS]),
            // The interface of the first one has another index from here on.
            (&[TWO, ONE], [verdict::REDIRECT, verdict::REDIRECT]),
            (&[TWO], [verdict::PASS, verdict::REDIRECT]),
            (&[], [verdict::PASS, verdict::PASS]),
        ] {
            tables.change_to(in_domain(vlans)).unwrap();
            assert_eq!([on(&tables, one), on(&tables, two)], expected, "{vlans:?}");
        }
        let same_slot = &[0x88a8_0c82, 0x8100_000a][..];
        for (vlans, expected) in [
            (&[ONE, SAME_SLOT][..], [verdict::REDIRECT, verdict::REDIRECT]),
            // The other one gets the slot.
            (&[SAME_SLOT], [verdict::PASS, verdict::REDIRECT]),
            (&[SAME_SLOT, ONE], [verdict::REDIRECT, verdict::REDIRECT]),
            (&[ONE], [verdict::REDIRECT, verdict::PASS]),
        ] {
            tables.change_to(in_domain(vlans)).unwrap();
            assert_eq!([on(&tables, one), on(&tables, same_slot)], expected, "{vlans:?}");
        }
        // A VLAN changes between the domain and a tenant.
        for _ in 0..2 {
            let mut state = in_domain(&[ONE]);
            tables.change_to(state.clone()).unwrap();
            assert_eq!(on(&tables, one), verdict::REDIRECT);
            let attachment = Attachment { port: index("l"), tags: ONE };
            state.domain_vlans.clear();
            state.attachments.insert(attachment, Owner::Tenant(TENANT));
            tables.change_to(state).unwrap();
            assert_eq!(on(&tables, one), verdict::PASS, "of a tenant");
        }
    });
}

/// Edges and closed VLANs.
#[test]
fn root_a_vlan_is_closed_apart_from_its_port() {
    in_node(|| {
        let mut tables = Tables::new(Srv6::load(Sizes::default()).unwrap());
        let on = |tables: &Tables, tags: &[u32]| verdict_on(tables, &to_sid(SID, tags));
        let mut state = in_domain(&[ONE]);
        state.ports.get_mut(&index("l")).unwrap().edge = true;
        tables.change_to(state.clone()).unwrap();
        assert_eq!(on(&tables, &[0x8100_0064]), verdict::REDIRECT);
        assert_eq!([on(&tables, &[]), on(&tables, &[0x8100_0000])], [verdict::DROP; 2], "the edge");
        // Only from these sources.
        state.sources = [(None, "fd00:5::/48".parse().unwrap())].into();
        tables.change_to(state.clone()).unwrap();
        assert_eq!(on(&tables, &[0x8100_0064]), verdict::DROP);
        state.sources = [].into();
        state.domain_vlans.get_mut(&VLAN).unwrap().closed = true;
        tables.change_to(state).unwrap();
        assert_eq!(on(&tables, &[0x8100_0064]), verdict::PASS, "in a VRF");
    });
}

/// A port of a refused state may have had the entry of a present one.
#[test]
fn root_ports_keep_their_entries_after_a_refused_change() {
    in_node(|| {
        let mut tables = Tables::new(Srv6::load(Sizes::default()).unwrap());
        let mut state = in_domain(&[]);
        state.ports.get_mut(&index("l")).unwrap().edge = true;
        tables.change_to(state.clone()).unwrap();
        let mut other = state.clone();
        let port = other.ports.remove(&index("l")).unwrap();
        let same_entry = index("l") + SLOTS;
        // Policies are looked up while ports are written.
        let unknown = Owner::Frames(PolicyId::Named(Some(TENANT), "unknown".into()));
        other.ports.insert(same_entry + 1, Port { owner: unknown, ..port.clone() });
        // Frames are sent to an interface that exists.
        other.ports.insert(same_entry, Port { exit: Some(index("r")), ..port });
        assert!(tables.change_to(other).is_err());
        assert_eq!(verdict_on(&tables, &to_sid(SID, &[])), verdict::DROP, "the edge");
    });
}
