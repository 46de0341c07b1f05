//! The state of the stream's node, and the commands that change it to another one.

use wire::Mac;

use super::frames::segment;

/// Interface indexes in the node and in the world.
pub(crate) const LEFT: u32 = 10;
pub(crate) const RIGHT: u32 = 11;
pub(crate) const SIDE: u32 = 12;
pub(crate) const WORLD_LEFT: u32 = 20;
pub(crate) const WORLD_RIGHT: u32 = 21;
pub(crate) const WORLD_SIDE: u32 = 22;

/// A path out of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The port `r`.
    Right,
    /// The port `s`.
    Side,
}

impl Way {
    pub(crate) const BOTH: [Self; 2] = [Self::Right, Self::Side];

    pub(crate) fn node_mac(self) -> Mac {
        Mac([2, 0, 0, 0, 0, if self == Self::Right { 2 } else { 3 }])
    }

    /// Returns the interfaces of the judges on this path: XDP's in the world, the kernel's in the
    /// node.
    pub(crate) fn judges(self) -> [u32; 2] {
        if self == Self::Right { [WORLD_RIGHT, RIGHT] } else { [WORLD_SIDE, SIDE] }
    }

    fn port(self) -> &'static str {
        if self == Self::Right { "r" } else { "s" }
    }

    /// Returns the next hops, IPv6 and IPv4.
    fn next_hops(self) -> [&'static str; 2] {
        if self == Self::Right { ["fd00:b::2", "10.0.2.2"] } else { ["fd00:c::2", "10.0.3.2"] }
    }
}

/// The configuration of the node, by its file and by `ip`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    /// True if the file only has features that the kernel alone supports too: no tags, no shares.
    pub(crate) plain: bool,
    /// True if the kernel alone forwards; otherwise XDP forwards.
    pub(crate) alone: bool,
    /// Version of the policies' segment lists.
    pub(crate) lists: u16,
    /// True if blue has a policy for its IPv4 packets.
    pub(crate) prefix: bool,
    /// True if there are an End and an End.X.
    pub(crate) sids: bool,
    /// True if the kernel has an End of its own.
    pub(crate) kernel_sid: bool,
    /// The next hops of the routes to the segments and to the inner destinations.
    pub(crate) routes: Vec<Way>,
    /// The last bytes of the neighbors' MAC addresses, right and side; `None` if a neighbor is
    /// not known.
    pub(crate) macs: [Option<u8>; 2],
    /// True if there is a policy rule, which selects the side.
    pub(crate) rule: bool,
}

impl State {
    /// Returns the initial state of the stream.
    pub(crate) fn first() -> Self {
        Self {
            plain: false,
            alone: false,
            lists: 1,
            prefix: true,
            sids: true,
            kernel_sid: true,
            routes: vec![Way::Right],
            macs: [Some(0xb), Some(0xc)],
            rule: false,
        }
    }

    /// Returns the neighbor's MAC address.
    pub(crate) fn mac(&self, way: Way) -> Option<Mac> {
        self.macs[way as usize].map(|last| Mac([2, 0, 0, 0, 0, last]))
    }

    /// Returns the data plane file. Tables have exactly the room that it needs, so that a leak
    /// fills them.
    pub(crate) fn file(&self) -> String {
        let list = |list, n| segment(self.lists, list, n);
        let mut text = format!(
            "source: \"fd00:1::\"\n\
             locators: [\"fd00:1::/48\"]\n\
             limits: {{ sids: 8, prefixes: 8, policies: 8, lists: 8, tenants: 2 }}\n\
             ports: {{ l: {{}}, r: {{}}, s: {{}} }}\n\
             dataplane: {}\n\
             policies:\n\
             \x20 binding: {{segments: [\"{}\", \"{}\"], form: {}}}\n",
            if self.alone { "kernel" } else { "xdp" },
            list(4, 0),
            list(4, 1),
            if self.plain { "H.Encaps" } else { "H.Encaps.Red" },
        );
        if !self.plain {
            text += &self.tenants();
        }
        text += "sids:\n";
        if self.sids {
            text += "  fd00:1::e: End\n";
            text += "  fd00:1::a: {behavior: End.X, next_hop: \"fd00:b::2\"}\n";
        }
        text += "  fd00:1::d6: {behavior: End.DT6, table: 254}\n";
        text += "  fd00:1::d4: {behavior: End.DX4, next_hop: 0.0.0.0}\n";
        text += "  fd00:1::b6: {behavior: End.B6.Encaps, policy: binding}\n";
        text
    }

    fn tenants(&self) -> String {
        let list = |list, n| segment(self.lists, list, n);
        let mut text = "tenants:\n".to_owned();
        text += "  blue:\n    attachments: [{port: l, vlan: 10}]\n    routes:\n";
        if self.prefix {
            let (one, two) = (list(1, 0), list(1, 1));
            text += &format!(
                "      10.9.0.0/16: {{segments: [\"{one}\", \"{two}\"], form: H.Encaps}}\n"
            );
        }
        text += &format!(
            "      fd00:9::/64: {{lists: [{{segments: [\"{}\"]}}, {{segments: [\"{}\"], weight: 3}}]}}\n",
            list(3, 0),
            list(3, 1)
        );
        text += "  green:\n    attachments: [{port: l, vlan: 20, inner: 7}]\n    routes:\n";
        text += &format!("      10.9.0.0/24: [\"{}\"]\n", list(2, 0));
        text
    }

    /// Returns the `ip` commands that change `before` to this state.
    pub(crate) fn commands(&self, before: Option<&Self>) -> Vec<String> {
        let mut out = Vec::new();
        for way in Way::BOTH {
            let mac = self.mac(way);
            if before.is_some_and(|before| before.mac(way) == mac) {
                continue;
            }
            for address in way.next_hops() {
                let port = way.port();
                out.push(match mac {
                    Some(mac) => {
                        format!("neigh replace {address} lladdr {mac} dev {port} nud permanent")
                    }
                    None => format!("neigh del {address} dev {port}"),
                });
            }
        }
        if before.is_none_or(|before| before.routes != self.routes) {
            for (family, net) in [(0, "fd00:2::/32"), (1, "10.2.0.0/16")] {
                let mut line = format!("route replace {net}");
                for way in &self.routes {
                    let (via, port) = (way.next_hops()[family], way.port());
                    line += &format!(" nexthop via {via} dev {port}");
                }
                out.push(line);
            }
        }
        if before.map_or(self.kernel_sid, |before| before.kernel_sid != self.kernel_sid) {
            let verb = if self.kernel_sid { "replace" } else { "del" };
            out.push(format!("-6 route {verb} fd00:1::f/128 encap seg6local action End dev r"));
        }
        if before.map_or(self.rule, |before| before.rule != self.rule) {
            let verb = if self.rule { "add" } else { "del" };
            out.push(format!("-6 rule {verb} to fd00:2::/32 lookup 77 pref 100"));
        }
        out
    }
}
