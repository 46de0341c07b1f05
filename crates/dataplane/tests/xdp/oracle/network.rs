//! The node's configuration, applied to the kernel and to the program.

use bpf::srv6::types::{self, behavior, sid_flag};
use dataplane::xdp::outer;
use srv6::{Form, SegmentList, Sid};

use testkit::feature::{Feature, PSP, X_NEXT_CSID};

use super::node::Node;
use crate::bed::{address, index, ip, try_ip};

/// Source of outer headers.
pub(crate) const SOURCE: &str = "fd00:1::";

type Fill = fn(&mut types::sid);

/// Prefix, action of the kernel, and entry of the program.
pub(crate) const SIDS: [(&str, &str, Fill); 19] = [
    ("fd00:1::e0/128", "End", |sid| is(sid, behavior::BEHAVIOR_END)),
    ("fd00:1::e1/128", "End flavors psp", |sid| {
        is(sid, behavior::BEHAVIOR_END);
        sid.flags |= sid_flag::SID_PSP.0 as u8;
    }),
    ("fd00:1:2::/48", "End flavors next-csid lblen 32 nflen 16", |sid| csid(sid, 4, 2)),
    ("fc01:1::/32", "End flavors next-csid lblen 16 nflen 16", |sid| csid(sid, 2, 2)),
    ("fc02::/16", "End flavors next-csid lblen 8 nflen 8", |sid| csid(sid, 1, 1)),
    ("fd00:4:4:1:2::/80", "End flavors next-csid lblen 48 nflen 32", |sid| csid(sid, 6, 4)),
    ("fc03:1:1:1::/64", "End flavors next-csid lblen 56 nflen 8", |sid| csid(sid, 7, 1)),
    ("fd00:1::a0/128", "End.X nh6 fd00:b::2", |sid| {
        is(sid, behavior::BEHAVIOR_END_X);
        sid.params.next_hop6 = address("fd00:b::2");
    }),
    ("fd00:1::a1/128", "End.X nh6 fd00:a::2", |sid| {
        is(sid, behavior::BEHAVIOR_END_X);
        sid.params.next_hop6 = address("fd00:a::2");
    }),
    ("fd00:1:5::/48", "End.X nh6 fd00:a::2 flavors next-csid lblen 32 nflen 16", |sid| {
        csid(sid, 4, 2);
        is(sid, behavior::BEHAVIOR_END_X);
        sid.params.next_hop6 = address("fd00:a::2");
    }),
    ("fd00:1::70/128", "End.T table 100", |sid| {
        is(sid, behavior::BEHAVIOR_END_T);
        sid.params.table.number = 100;
    }),
    ("fd00:1::d2/128", "End.DX2 oif r", |sid| {
        is(sid, behavior::BEHAVIOR_END_DX2);
        sid.params.port = index("r");
    }),
    ("fd00:1::d4/128", "End.DX4 nh4 0.0.0.0", |sid| is(sid, behavior::BEHAVIOR_END_DX4)),
    // Through a gateway. For a next hop on the link, see `root_dx4_and_a_next_hop_on_the_link`.
    ("fd00:1::d5/128", "End.DX4 nh4 10.1.0.99", |sid| {
        is(sid, behavior::BEHAVIOR_END_DX4);
        sid.params.next_hop4 = u32::from_ne_bytes([10, 1, 0, 99]);
    }),
    ("fd00:1::d6/128", "End.DX6 nh6 ::", |sid| is(sid, behavior::BEHAVIOR_END_DX6)),
    ("fd00:1::d7/128", "End.DX6 nh6 fd00:a::2", |sid| {
        is(sid, behavior::BEHAVIOR_END_DX6);
        sid.params.next_hop6 = address("fd00:a::2");
    }),
    ("fd00:1::d8/128", "End.DT6 table 254", |sid| {
        is(sid, behavior::BEHAVIOR_END_DT6);
        sid.params.table.number = 254;
    }),
    ("fd00:1::d9/128", "End.DT6 table 100", |sid| {
        is(sid, behavior::BEHAVIOR_END_DT6);
        sid.params.table.number = 100;
    }),
    // The kernel's behavior needs a VRF here. Its End.DX4 without a next hop does the same in the
    // main table.
    ("fd00:1::da/128", "End.DX4 nh4 0.0.0.0", |sid| {
        is(sid, behavior::BEHAVIOR_END_DT4);
        sid.params.table.number = 254;
    }),
];

/// Returns the feature that an action needs and that not all kernels have.
fn needs(action: &str) -> Option<Feature> {
    let csid_of_x = action.starts_with("End.X ") && action.contains("next-csid");
    let all = [(PSP, action.ends_with("psp")), (X_NEXT_CSID, csid_of_x)];
    all.into_iter().find(|(_, needed)| *needed).map(|(feature, _)| feature)
}

/// The kernel's End.DT46 needs a VRF too. For inner IPv6, its End.DT6 does the same.
pub(crate) const DT46: (&str, &str, Fill) = ("fd00:1::db/128", "End.DT6 table 254", |sid| {
    is(sid, behavior::BEHAVIOR_END_DT46);
    sid.params.table.number = 254;
});

/// Segment list of the binding SID (End.B6.Encaps).
pub(crate) const BINDING: (&str, &[&str]) = ("fd00:1::b6/128", &["fd00:2::1", "fd00:2::2"]);

/// Segment list of the SID that inserts another SRH (End.B6.Insert).
pub(crate) const INSERTING: (&str, &[&str]) = ("fd00:1::b5/128", &["fd00:2::1", "fd00:2::2"]);

/// Number of segments of the policies. Number `n` has the prefixes `10.10.n.0/24` and
/// `fd00:3:n::/48`.
pub(crate) const POLICIES: [(Form, usize); 11] = [
    (Form::Encaps, 1),
    (Form::Encaps, 2),
    (Form::Encaps, 5),
    (Form::Encaps, 10),
    (Form::EncapsRed, 1),
    (Form::EncapsRed, 2),
    (Form::EncapsRed, 5),
    (Form::EncapsRed, 11),
    (Form::Insert, 1),
    (Form::Insert, 3),
    (Form::Insert, 9),
];

fn is(sid: &mut types::sid, what: behavior) {
    sid.behavior = what.0 as u8;
}

fn csid(sid: &mut types::sid, block: u8, node: u8) {
    is(sid, behavior::BEHAVIOR_END);
    sid.flags |= sid_flag::SID_NEXT_CSID.0 as u8;
    sid.csid = block << 4 | node;
}

/// Returns a list of `count` segments, none of them local.
pub(crate) fn segments(count: usize) -> Vec<String> {
    (1..=count).map(|n| format!("fd00:2::{n:x}")).collect()
}

fn list(segments: &[impl AsRef<str>]) -> SegmentList {
    SegmentList(segments.iter().map(|sid| Sid(sid.as_ref().parse().unwrap())).collect())
}

impl Node {
    /// Applies the whole configuration above. `in_kernel` sets the corresponding flag of the
    /// program's entries.
    pub(crate) fn configure_all(&mut self, in_kernel: bool) {
        for (prefix, action, fill) in SIDS {
            self.sid(prefix, action, in_kernel, fill);
        }
        let (prefix, path) = BINDING;
        let action = format!("End.B6.Encaps srh segs {}", path.join(","));
        let policy = self.policy(path, Form::Encaps, in_kernel);
        self.sid(prefix, &action, in_kernel, |sid| {
            is(sid, behavior::BEHAVIOR_END_B6_ENCAPS);
            sid.params.policy = policy;
        });
        let (prefix, path) = INSERTING;
        let action = format!("End.B6 srh segs {}", path.join(","));
        let policy = self.policy(path, Form::Insert, in_kernel);
        self.sid(prefix, &action, in_kernel, |sid| {
            is(sid, behavior::BEHAVIOR_END_B6_INSERT);
            sid.params.policy = policy;
        });
        let mut tenant = types::tenant::default();
        (tenant.ipv4[0].count, tenant.ipv4[0].length[0]) = (1, 24);
        (tenant.ipv6[0].count, tenant.ipv6[0].length[0]) = (1, 48);
        self.plane.tenants.write(1, tenant);
        for (n, (form, count)) in POLICIES.into_iter().enumerate() {
            self.prefixes(n, form, &segments(count), in_kernel);
        }
    }

    pub(crate) fn sid(
        &mut self,
        prefix: &str,
        action: &str,
        in_kernel: bool,
        fill: impl FnOnce(&mut types::sid),
    ) {
        let route = format!("-6 route add {prefix} encap seg6local action {action} dev r");
        let mut made = try_ip(&route);
        // An older kernel accepts unknown flavors and ignores them.
        let kept = || try_ip(&format!("-6 route show {prefix}")).unwrap();
        if made.is_ok() && action.contains("flavors") && !kept().contains("flavors") {
            ip(&format!("-6 route del {prefix}"));
            made = Err("the kernel forgets the flavor".into());
        }
        if let Err(why) = made {
            let feature = needs(action).unwrap_or_else(|| panic!("{action}: {why}"));
            feature.is_missing(why);
            self.without_kernel.push(prefix.parse().unwrap());
        }
        let (text, length) = prefix.split_once('/').unwrap();
        let mut sid = types::sid {
            address: address(text),
            length: length.parse().unwrap(),
            counter: self.counter(),
            flags: if in_kernel { sid_flag::SID_IN_KERNEL.0 as u8 } else { 0 },
            ..Default::default()
        };
        fill(&mut sid);
        self.sids.push(self.plane.sids.add(sid).unwrap());
    }

    /// Adds a policy with one list to the program only. Its counter is the last one allocated.
    pub(crate) fn policy(&mut self, path: &[impl AsRef<str>], form: Form, in_kernel: bool) -> u32 {
        let header = outer(SOURCE.parse().unwrap(), &list(path), form, None).unwrap();
        let list = self.plane.lists.add(header).unwrap();
        let (counter, in_kernel) = (self.counter(), u32::from(in_kernel));
        let policy = types::policy { list, counter, in_kernel, ..Default::default() };
        self.plane.policies.add(policy).unwrap()
    }

    fn prefixes(&mut self, n: usize, form: Form, path: &[String], in_kernel: bool) {
        let mode = match form {
            Form::Encaps => "encap",
            Form::EncapsRed => "encap.red",
            Form::Insert => "inline",
        };
        let encap = format!("encap seg6 mode {mode} segs {} dev r", path.join(","));
        let policy = self.policy(path, form, in_kernel);
        ip(&format!("-6 route add fd00:3:{n:x}::/48 {encap}"));
        // Nothing is inserted into IPv4 packets.
        if form != Form::Insert {
            ip(&format!("route add 10.10.{n}.0/24 {encap}"));
            let address4 = u32::from_ne_bytes([10, 10, n as u8, 0]);
            let prefix = types::prefix4 { tenant: 1, length: 24, address: address4, policy };
            self.plane.prefixes4.add(prefix).unwrap();
        }
        let address = address(&format!("fd00:3:{n:x}::"));
        let prefix = types::prefix6 { tenant: 1, length: 48, address, policy, pad: 0 };
        self.plane.prefixes6.add(prefix).unwrap();
    }

    /// Allocates a counter.
    pub(crate) fn counter(&mut self) -> u32 {
        self.counters += 1;
        self.counters - 1
    }
}
