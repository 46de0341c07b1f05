//! Links as created by `ip`, and as parsed from bytes.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use super::*;
use crate::Errno;
use crate::attribute::Writer;
use crate::testing::{in_namespace, output};
use testkit::feature::{Feature, VLAN, VRF};

fn body(fill: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut attributes = Writer::default();
    fill(&mut attributes);
    let mut body = vec![0; HEADER];
    body[4] = 7;
    body.extend_from_slice(&attributes.0);
    body
}

#[test]
fn a_vlan_has_its_tag_and_its_parent() {
    for elsewhere in [false, true] {
        let bytes = body(|out| {
            out.put_text(IFLA_IFNAME, "a.100").put(IFLA_LINK, &3u32.to_ne_bytes());
            if elsewhere {
                out.put(IFLA_LINK_NETNSID, &[0; 4]);
            }
            out.nest(IFLA_LINKINFO, |out| {
                out.put_text(IFLA_INFO_KIND, "vlan").nest(IFLA_INFO_DATA, |out| {
                    out.put(IFLA_VLAN_ID, &100u16.to_ne_bytes());
                    out.put(IFLA_VLAN_PROTOCOL, &[0x88, 0xa8]);
                });
            });
        });
        let parent = (!elsewhere).then_some(3);
        let vlan = Vlan { id: 100, protocol: 0x88a8, parent };
        let found = link(&bytes).unwrap();
        assert_eq!((found.index, found.vlan, found.vrf_table), (7, Some(vlan), None));
    }
}

#[test]
fn a_stacked_interface_has_a_lower_one_in_its_namespace() {
    let lower = |kind: &str, elsewhere: bool| {
        let bytes = body(|out| {
            out.put(IFLA_LINK, &3u32.to_ne_bytes());
            out.nest(IFLA_LINKINFO, |out| {
                out.put_text(IFLA_INFO_KIND, kind);
            });
            if elsewhere {
                out.put(IFLA_LINK_NETNSID, &[0; 4]);
            }
        });
        let link = link(&bytes).unwrap();
        assert_eq!(
            link.peer,
            (["veth", "netkit"].contains(&kind) && !elsewhere).then_some(3),
            "{kind}"
        );
        (link.lower, link.lower_is_elsewhere)
    };
    for kind in ["vlan", "macvlan", "macvtap", "ipvlan", "macsec", "new"] {
        assert_eq!(lower(kind, false), (Some(3), false), "{kind}");
        assert_eq!(lower(kind, true), (None, true), "{kind}");
    }
    for kind in ["veth", "netkit", "vxlan", "ip6gre", "sit", "ppp"] {
        assert_eq!([lower(kind, false), lower(kind, true)], [(None, false); 2], "{kind}");
    }
}

#[test]
fn an_hsr_device_has_slaves() {
    let bytes = body(|out| {
        out.nest(IFLA_LINKINFO, |out| {
            out.put_text(IFLA_INFO_KIND, "hsr").nest(IFLA_INFO_DATA, |out| {
                out.put(IFLA_HSR_SLAVE1, &3u32.to_ne_bytes());
                out.put(IFLA_HSR_SLAVE2, &5u32.to_ne_bytes());
                // IFLA_HSR_SEQ_NR
                out.put(5, &9u16.to_ne_bytes());
            });
        });
    });
    assert_eq!(link(&bytes).unwrap().slaves, [3, 5]);
}

#[test]
fn root_a_macvlan_is_on_its_interface_and_a_veth_is_not() {
    in_namespace(|| {
        let mut handle = Handle::new().unwrap();
        let [a, _] = crate::testing::veth(&mut handle);
        output("ip", "link add link a name over type macvlan");
        assert_eq!(handle.link("over").unwrap().lower, Some(a));
        assert_eq!(handle.link("a").unwrap().lower, None);
    });
}

/// They make the messages of the interface longer than others. The kernel permits 496 of this length.
#[test]
fn root_many_alternative_names_hide_no_interface() {
    in_namespace(|| {
        let mut handle = Handle::new().unwrap();
        let [a, b] = crate::testing::veth(&mut handle);
        let mut monitor = crate::Monitor::new().unwrap();
        for some in [0..240, 240..496] {
            testkit::alternative_names("lo", some);
            let links = handle.links().unwrap();
            let are_listed = [1, a, b].map(|index| links.iter().any(|link| link.index == index));
            assert_eq!(are_listed, [true; 3], "{links:?}");
        }
        assert_eq!(handle.link_at(1).unwrap().name, "lo");
        // The addresses of the veth arrive at any time.
        let events = std::iter::from_fn(|| monitor.wait(Duration::from_millis(300)).unwrap());
        let links = events.filter_map(|event| match event {
            crate::Event::Link(link) => Some(link.name),
            crate::Event::Overrun => panic!("an overrun"),
            _ => None,
        });
        assert!(links.filter(|name| name == "lo").count() >= 496);
    });
}

/// A macvlan's list of source addresses has no limit.
#[test]
fn root_an_interface_that_exceeds_a_message_hides_no_other() {
    in_namespace(|| {
        let mut handle = Handle::new().unwrap();
        let [a, b] = crate::testing::veth(&mut handle);
        output("ip", "link add link a name over type macvlan mode source");
        let add = |number: u32| {
            let [_, x, y, z] = number.to_be_bytes();
            format!("link set dev over type macvlan macaddr add 02:00:00:{x:02x}:{y:02x}:{z:02x}\n")
        };
        let directory = tempfile::tempdir().unwrap();
        let batch = directory.path().join("batch");
        let over = handle.link("over").unwrap().index;
        // With the first number, 16 bits for the length of IFLA_LINKINFO contain 12, which is its end within
        // another attribute.
        for (numbers, is_listed) in [(0..5457, true), (5457..12_000, false)] {
            std::fs::write(&batch, numbers.map(add).collect::<String>()).unwrap();
            output("ip", &format!("-batch {}", batch.display()));
            let mut expected =
                [vec![1, a, b], is_listed.then_some(over).into_iter().collect()].concat();
            expected.sort();
            let links = handle.links().unwrap();
            assert_eq!(links.iter().map(|link| link.index).collect::<Vec<_>>(), expected);
            assert!(handle.indices().unwrap().contains(&over));
        }
        output("ip", "link set dev over type macvlan macaddr flush");
        assert_eq!(handle.links().unwrap().len(), 4);
    });
}

/// The kernel finds an interface by these, too.
#[test]
fn root_an_alternative_name_finds_no_interface() {
    in_namespace(|| {
        let mut handle = Handle::new().unwrap();
        crate::testing::veth(&mut handle);
        output("ip", "link property add dev a altname wan0");
        let why = handle.link("wan0").unwrap_err();
        assert!(why.is_not_found(), "{why}");
        assert_eq!(why.to_string(), "`wan0` is an alternative name of the interface a: write `a`");
        assert_eq!(handle.link("a").unwrap().name, "a");
    });
}

#[test]
fn a_vrf_has_its_table_and_another_kind_none() {
    for (kind, table) in [("vrf", Some(100_000)), ("bond", None)] {
        let bytes = body(|out| {
            out.nest(IFLA_LINKINFO, |out| {
                out.put_text(IFLA_INFO_KIND, kind).nest(IFLA_INFO_DATA, |out| {
                    out.put(IFLA_VRF_TABLE, &100_000u32.to_ne_bytes());
                });
            });
        });
        let found = link(&bytes).unwrap();
        assert_eq!((found.kind.as_str(), found.vrf_table, found.vlan), (kind, table, None));
    }
}

#[test]
fn xdp_has_a_program_for_each_mode() {
    let bytes = body(|out| {
        out.put(IFLA_NUM_TX_QUEUES, &4u32.to_ne_bytes());
        out.put(IFLA_NUM_RX_QUEUES, &8u32.to_ne_bytes());
        out.nest(IFLA_XDP, |out| {
            out.put(2, &[4]).put(IFLA_XDP_DRV_PROG_ID, &17u32.to_ne_bytes());
            out.put(IFLA_XDP_SKB_PROG_ID, &18u32.to_ne_bytes());
        });
    });
    let found = link(&bytes).unwrap();
    let on = |mode, program| Xdp { mode, program };
    assert_eq!(found.xdp, [on(XdpMode::Native, 17), on(XdpMode::Generic, 18)]);
    assert_eq!((found.tx_queues, found.rx_queues), (4, 8));
}

#[test]
fn root_queues_and_an_xdp_program_are_seen() {
    in_namespace(|| {
        output("ip", "link add name a numtxqueues 3 numrxqueues 2 type veth peer name b");
        let mut handle = Handle::new().unwrap();
        let found = handle.link("a").unwrap();
        assert_eq!((found.tx_queues, found.rx_queues), (3, 2));
        assert_eq!((found.xdp, found.vrf_table, found.vlan), (vec![], None, None));
        let program = xdp_pass();
        for (flags, mode) in [(1 << 2, XdpMode::Native), (1 << 1, XdpMode::Generic)] {
            handle.request("attach", attach(found.index, program.as_raw_fd(), flags)).unwrap();
            let [xdp] = handle.link("a").unwrap().xdp[..] else { panic!("no program") };
            assert_eq!(xdp.mode, mode);
            let shown = output("ip", "-d link show dev a");
            assert!(shown.contains(&format!("prog/xdp id {}", xdp.program)), "{shown}");
            handle.request("detach", attach(found.index, -1, flags)).unwrap();
            assert_eq!(handle.link("a").unwrap().xdp, []);
        }
    });
}

/// IFLA_XDP_FD, with XDP_FLAGS_SKB_MODE or XDP_FLAGS_DRV_MODE.
fn attach(interface: u32, program: i32, flags: u32) -> Request {
    let mut body = vec![0; HEADER];
    body[4..8].copy_from_slice(&interface.to_ne_bytes());
    let mut attributes = Writer::default();
    attributes.nest(IFLA_XDP, |out| {
        out.put(1, &program.to_ne_bytes()).put(3, &flags.to_ne_bytes());
    });
    body.extend_from_slice(&attributes.0);
    Request::new(libc::RTM_SETLINK, 0, body)
}

/// Loads a program that passes every packet.
fn xdp_pass() -> OwnedFd {
    // r0 = XDP_PASS; exit (struct bpf_insn: code, registers, offset, immediate)
    let code: [u64; 2] = [2 << 32 | 0xb7, 0x95];
    let licence = c"GPL";
    /// union bpf_attr for BPF_PROG_LOAD.
    #[repr(C)]
    struct Load {
        kind: u32,
        count: u32,
        code: *const u64,
        licence: *const libc::c_char,
        log: [u64; 2],
    }
    const BPF_PROG_LOAD: i32 = 5;
    const BPF_PROG_TYPE_XDP: u32 = 6;
    let load = Load {
        kind: BPF_PROG_TYPE_XDP,
        count: 2,
        code: code.as_ptr(),
        licence: licence.as_ptr(),
        log: [0; 2],
    };
    // SAFETY: `load` and the data that it points to live through the call, and the returned
    // descriptor has no other owner.
    unsafe {
        let fd = libc::syscall(libc::SYS_bpf, BPF_PROG_LOAD, &raw const load, size_of::<Load>());
        assert!(fd >= 0, "{}", Errno::last());
        OwnedFd::from_raw_fd(fd as i32)
    }
}

#[test]
fn root_vlans_and_vrfs_are_seen_where_the_kernel_has_them() {
    in_namespace(|| {
        let mut handle = Handle::new().unwrap();
        let [a, _] = crate::testing::veth(&mut handle);
        let made = |feature: Feature, arguments: &str| {
            let arguments = arguments.split_whitespace();
            let made = std::process::Command::new("ip").args(arguments).output().unwrap();
            if !made.status.success() {
                feature.is_missing(String::from_utf8_lossy(&made.stderr).trim());
            }
            made.status.success()
        };
        if made(VLAN, "link add link a name a.7 type vlan proto 802.1ad id 7") {
            let vlan = Vlan { id: 7, protocol: 0x88a8, parent: Some(a) };
            assert_eq!(handle.link("a.7").unwrap().vlan, Some(vlan));
        }
        if made(VRF, "link add red type vrf table 100") {
            assert_eq!(handle.link("red").unwrap().vrf_table, Some(100));
        }
    });
}

#[test]
fn root_a_veth_pair_appears_in_its_namespaces_only() {
    in_namespace(|| {
        let (left, right) = (Namespace::unnamed().unwrap(), Namespace::unnamed().unwrap());
        let mac = Mac([2, 0, 0, 0, 0, 7]);
        let a =
            VethEnd { name: "r1-r2", namespace: &left, mtu: 9000, mac: Some(mac), index: Some(7) };
        let b = VethEnd { name: "r2-r1", namespace: &right, mtu: 9000, mac: None, index: Some(9) };
        let mut here = Handle::new().unwrap();
        here.request("veth", add_veth(&a, &b)).unwrap();
        assert_eq!(here.links().unwrap().len(), 1);

        let mut inside = Handle::within(&left).unwrap();
        inside.request("up", set_up(7)).unwrap();
        let mut other = Handle::within(&right).unwrap();
        other.request("up", set_up(9)).unwrap();
        let link = inside.link("r1-r2").unwrap();
        assert_eq!((link.mtu, link.mac, link.kind.as_str()), (9000, Some(mac), "veth"));
        assert!(link.up && link.carrier);
        let mut looks = (0..100_000).map(|_| inside.link("r1-r2").unwrap());
        assert!(looks.any(|link| link.operational));
        let shown = left.run(|| output("ip", "-o link show dev r1-r2")).unwrap();
        assert!(shown.contains("mtu 9000") && shown.contains("02:00:00:00:00:07"), "{shown}");

        let peer = other.link("r2-r1").unwrap();
        other.request("down", set_down(peer.index)).unwrap();
        // The operational state follows a moment later.
        let mut looks = (0..100_000).map(|_| inside.link("r1-r2").unwrap());
        assert!(looks.any(|link| link.up && !link.carrier && !link.operational));
        other.request("up", set_up(peer.index)).unwrap();
        assert!(inside.link("r1-r2").unwrap().carrier);

        inside.request("delete", delete_link("r1-r2")).unwrap();
        assert!(other.link("r2-r1").unwrap_err().is_not_found());
    });
}

#[test]
fn root_the_ends_of_a_veth_pair_have_as_many_queues_and_know_each_other() {
    in_namespace(|| {
        let (here, other) = (Namespace::current().unwrap(), Namespace::unnamed().unwrap());
        let end = |name, namespace, index| VethEnd { name, namespace, mtu: 1500, mac: None, index };
        let (a, b) = (end("a", &here, Some(7)), end("b", &other, Some(9)));
        let mut handle = Handle::new().unwrap();
        handle.request("veth", add_veth_with_queues(&a, &b, 3)).unwrap();
        let (a, b) =
            (handle.link("a").unwrap(), Handle::within(&other).unwrap().link("b").unwrap());
        for link in [&a, &b] {
            assert_eq!((link.rx_queues, link.tx_queues, link.peer), (3, 3, None));
        }
        assert_eq!((a.peer_elsewhere, b.peer_elsewhere), (Some(9), Some(7)));
        let id = |handle: &mut Handle, of| handle.namespace_id(of).unwrap();
        assert!(a.peer_namespace.is_some());
        assert_eq!(id(&mut handle, &other), a.peer_namespace);
        assert_eq!(id(&mut Handle::within(&other).unwrap(), &here), b.peer_namespace);
        assert_eq!(id(&mut handle, &Namespace::unnamed().unwrap()), None);
    });
}

#[test]
fn root_a_bridge_gets_and_loses_a_port() {
    in_namespace(|| {
        let mut handle = Handle::new().unwrap();
        let here = Namespace::current().unwrap();
        let end = |name| VethEnd { name, namespace: &here, mtu: 1500, mac: None, index: None };
        handle.request("bridge", add_bridge("lan0", None)).unwrap();
        handle.request("veth", add_veth(&end("a"), &end("b"))).unwrap();
        let (bridge, port) = (handle.link("lan0").unwrap(), handle.link("a").unwrap());
        assert_eq!(bridge.kind, "bridge");
        handle.request("enslave", set_master(port.index, Some(bridge.index))).unwrap();
        assert_eq!(handle.link("a").unwrap().master, Some(bridge.index));
        let links = handle.links().unwrap();
        assert_eq!(with_members(&links, bridge.index), [bridge.index, port.index]);
        assert_eq!(with_members(&links, port.index), [port.index]);
        handle.request("release", set_master(port.index, None)).unwrap();
        assert_eq!(handle.link("a").unwrap().master, None);
    });
}

#[test]
fn root_the_srh_setting_of_an_interface_is_read() {
    in_namespace(|| {
        let mut handle = Handle::new().unwrap();
        let here = Namespace::current().unwrap();
        let end = |name| VethEnd { name, namespace: &here, mtu: 1500, mac: None, index: None };
        handle.request("veth", add_veth(&end("a"), &end("b"))).unwrap();
        let set = |path: &str, value| crate::sysctl::write(&format!("ipv6/conf/{path}"), value);
        // That of all interfaces says nothing of this one.
        set("all/seg6_require_hmac", "1").unwrap();
        let mut look = || {
            let link = handle.link("a").unwrap();
            (link.takes_srh, link.requires_hmac)
        };
        assert_eq!(look(), (false, false));
        set("a/seg6_require_hmac", "1").unwrap();
        assert_eq!(look(), (false, true));
        set("a/seg6_enabled", "1").unwrap();
        assert_eq!(look(), (true, true));
        // Negative: an HMAC is not even looked at.
        set("a/seg6_require_hmac", "-1").unwrap();
        assert_eq!(look(), (true, false));
    });
}

#[test]
fn only_cards_and_taps_without_macvlans_are_not_reached_locally() {
    let make = |index: i32, kind: &str, lower: Option<u32>| {
        let mut bytes = body(|out| {
            if let Some(lower) = lower {
                out.put(IFLA_LINK, &lower.to_ne_bytes());
            }
            out.nest(IFLA_LINKINFO, |out| {
                out.put_text(IFLA_INFO_KIND, kind);
            });
        });
        bytes[4..8].copy_from_slice(&index.to_ne_bytes());
        link(&bytes).unwrap()
    };
    let links = [
        make(1, "", None),
        make(2, "tun", None),
        make(3, "veth", None),
        make(4, "vlan", Some(1)),
        make(5, "vlan", Some(4)),
        make(6, "vlan", Some(3)),
        // The interface below is in another namespace.
        make(7, "vlan", None),
        make(8, "bridge", None),
        make(9, "vxlan", Some(1)),
        make(10, "macvlan", Some(1)),
        make(11, "vlan", Some(12)),
        make(12, "vlan", Some(11)),
        make(13, "", None),
        make(14, "ipvlan", Some(13)),
        make(16, "", None),
        make(17, "vlan", Some(16)),
        make(18, "vlan", Some(17)),
        make(19, "macvlan", Some(17)),
    ];
    let have: Vec<u32> = (1..=19).filter(|index| has_local_senders(&links, *index)).collect();
    assert_eq!(have, [3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 19]);
    let reached: Vec<u32> = (1..=19).filter(|index| is_reached_locally(&links, *index)).collect();
    // Macvlans are above 1, 16 and 17.
    assert_eq!(reached, [1, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19]);
}
