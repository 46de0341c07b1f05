//! The table that describes the endpoint behaviors, and their lookup by name.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, EnumAccess, Error, VariantAccess, Visitor};

use crate::behavior::Kind;
use crate::flavor::Flavor::{self, NextCsid, Psp, ReplaceCsid, Usd, Usp};

/// The description of an endpoint behavior.
#[derive(Debug, Clone, Copy)]
pub struct Info {
    /// The behavior.
    pub kind: Kind,
    /// Name, in files and in text.
    pub name: &'static str,
    /// Definition: an RFC and section, or a draft.
    pub reference: &'static str,
    /// Description in one sentence.
    pub summary: &'static str,
    /// Keys of its arguments in files.
    pub keys: &'static [&'static str],
    /// The arguments, as the documentation lists them.
    pub arguments: &'static str,
    /// Permitted flavors.
    pub flavors: &'static [Flavor],
    /// The kernel's counterpart, which has the same name; none if only XDP has the behavior.
    pub kernel: Option<Kernel>,
    /// True for service functions, which may have health checks.
    pub is_function: bool,
}

/// The kernel's counterpart of an endpoint behavior.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    /// The Linux version that brought it.
    pub since: &'static str,
}

impl Info {
    /// Describes a behavior without arguments, flavors and counterpart.
    pub(crate) const fn new(
        kind: Kind,
        name: &'static str,
        reference: &'static str,
        summary: &'static str,
    ) -> Self {
        let (keys, flavors): (&[_], &[_]) = (&[], &[]);
        let (arguments, kernel, is_function) = ("", None, false);
        Self { kind, name, reference, summary, keys, arguments, flavors, kernel, is_function }
    }
}

const PROGRAMMING: &str = "draft-ietf-spring-sr-service-programming";

/// The endpoint behaviors, in the order of [`Kind`].
pub const TABLE: [Info; 20] = [
    Info {
        flavors: &[Psp, Usp, Usd, NextCsid, ReplaceCsid],
        kernel: Some(Kernel { since: "4.14" }),
        ..Info::new(Kind::End, "End", "RFC 8986 section 4.1", "Forwards to the next segment.")
    },
    Info {
        keys: &["next_hop"],
        arguments: "`next_hop` (IPv6, not link-local)",
        flavors: &[Psp, Usp, Usd, NextCsid, ReplaceCsid],
        kernel: Some(Kernel { since: "4.14" }),
        ..Info::new(
            Kind::EndX,
            "End.X",
            "RFC 8986 section 4.2",
            "Forwards to the next segment through a neighbor.",
        )
    },
    Info {
        keys: &["tenant", "table", "vrf"],
        arguments: "a table",
        flavors: &[Psp, Usp, Usd, NextCsid, ReplaceCsid],
        kernel: Some(Kernel { since: "4.14" }),
        ..Info::new(
            Kind::EndT,
            "End.T",
            "RFC 8986 section 4.3",
            "Forwards to the next segment, which is looked up in a table.",
        )
    },
    Info {
        keys: &["port"],
        arguments: "`port`",
        kernel: Some(Kernel { since: "4.14" }),
        ..Info::new(
            Kind::EndDx2,
            "End.DX2",
            "RFC 8986 section 4.9",
            "Decapsulates a frame and sends it on a port.",
        )
    },
    Info {
        keys: &["vlans"],
        arguments: "`vlans`: up to 4 VLANs of the inner frames, each with its port",
        ..Info::new(
            Kind::EndDx2v,
            "End.DX2V",
            "RFC 8986 section 4.10",
            "Decapsulates a frame and sends it on the port of its VLAN.",
        )
    },
    Info {
        keys: &["next_hop", "vlan", "inner"],
        arguments: "`next_hop` (IPv4; 0.0.0.0: the packet's own destination); tags",
        kernel: Some(Kernel { since: "4.14" }),
        ..Info::new(
            Kind::EndDx4,
            "End.DX4",
            "RFC 8986 section 4.5",
            "Decapsulates an IPv4 packet and sends it to a neighbor.",
        )
    },
    Info {
        keys: &["next_hop", "vlan", "inner"],
        arguments: "`next_hop` (IPv6; `::`: the packet's own destination); tags",
        kernel: Some(Kernel { since: "4.14" }),
        ..Info::new(
            Kind::EndDx6,
            "End.DX6",
            "RFC 8986 section 4.4",
            "Decapsulates an IPv6 packet and sends it to a neighbor.",
        )
    },
    Info {
        keys: &["tenant", "table", "vrf", "vlan", "inner"],
        arguments: "a table; tags",
        flavors: &[NextCsid, ReplaceCsid],
        kernel: Some(Kernel { since: "5.11" }),
        ..Info::new(
            Kind::EndDt4,
            "End.DT4",
            "RFC 8986 section 4.7",
            "Decapsulates an IPv4 packet and looks it up.",
        )
    },
    Info {
        keys: &["tenant", "table", "vrf", "vlan", "inner"],
        arguments: "a table; tags",
        flavors: &[NextCsid, ReplaceCsid],
        kernel: Some(Kernel { since: "4.14" }),
        ..Info::new(
            Kind::EndDt6,
            "End.DT6",
            "RFC 8986 section 4.6",
            "Decapsulates an IPv6 packet and looks it up.",
        )
    },
    Info {
        keys: &["tenant", "table", "vrf", "vlan", "inner"],
        arguments: "a table; tags",
        flavors: &[NextCsid, ReplaceCsid],
        kernel: Some(Kernel { since: "5.14" }),
        ..Info::new(
            Kind::EndDt46,
            "End.DT46",
            "RFC 8986 section 4.8",
            "Decapsulates a packet and looks it up.",
        )
    },
    Info {
        keys: &["policy"],
        arguments: "`policy`; with `form: H.Encaps.Red` it is End.B6.Encaps.Red",
        kernel: Some(Kernel { since: "4.14" }),
        ..Info::new(
            Kind::EndB6Encaps,
            "End.B6.Encaps",
            "RFC 8986 section 4.13",
            "Forwards to the next segment with an additional outer header.",
        )
    },
    Info {
        keys: &["policy"],
        arguments: "not in files: routes of the kernel alone",
        kernel: Some(Kernel { since: "4.14" }),
        ..Info::new(
            Kind::EndB6Insert,
            "End.B6.Insert",
            "draft-filsfils-spring-srv6-net-pgm-insertion",
            "Inserts another SRH, with the SID as last segment.",
        )
    },
    Info {
        keys: &["answers", "health"],
        arguments: "`answers`, `health` ([functions.md](functions.md))",
        is_function: true,
        ..Info::new(
            Kind::EndAnNf,
            "End.AN.NF",
            PROGRAMMING,
            "Passes the inner packet through this node's netfilter, then forwards to the next \
             segment.",
        )
    },
    Info {
        keys: &["to", "back", "via", "policy", "health"],
        arguments: "`to`, `back`, `via`, `policy`, `health` ([functions.md](functions.md))",
        is_function: true,
        ..Info::new(
            Kind::EndAs,
            "End.AS",
            PROGRAMMING,
            "Sends packets to a service function behind an interface. Returning packets get the \
             policy's outer header.",
        )
    },
    Info {
        keys: &["to", "back", "via", "health"],
        arguments: "`to`, `back`, `via`, `health` ([functions.md](functions.md))",
        is_function: true,
        ..Info::new(
            Kind::EndAd,
            "End.AD",
            PROGRAMMING,
            "Sends packets to a service function behind an interface. Returning packets get their \
             own outer header back.",
        )
    },
    Info {
        keys: &["to", "back", "via", "health"],
        arguments: "`to`, `back`, `via`, `health` ([functions.md](functions.md))",
        is_function: true,
        ..Info::new(
            Kind::EndAm,
            "End.AM",
            PROGRAMMING,
            "Sends packets to a service function behind an interface, with their SRH and with the \
             last segment as destination.",
        )
    },
    Info {
        keys: &["tenant", "table", "vrf", "source_args", "pdu_session"],
        arguments: "`source_args`, `pdu_session`, a table ([mobile user plane](mobile.md))",
        ..Info::new(
            Kind::EndMGtp4E,
            "End.M.GTP4.E",
            "RFC 9433 section 6.6",
            "Sends the inner packet to a GTP-U tunnel over IPv4.",
        )
    },
    Info {
        keys: &["policy"],
        arguments: "`policy` with `args` ([mobile user plane](mobile.md))",
        ..Info::new(
            Kind::EndMGtp6D,
            "End.M.GTP6.D",
            "RFC 9433 section 6.3",
            "Steers the payload of a GTP-U tunnel over IPv6 into a policy.",
        )
    },
    Info {
        keys: &["policy"],
        arguments: "`policy` that ends with `::` ([mobile user plane](mobile.md))",
        ..Info::new(
            Kind::EndMGtp6DDi,
            "End.M.GTP6.D.Di",
            "RFC 9433 section 6.4",
            "Steers the payload of a GTP-U tunnel over IPv6 into a policy, with the original \
             destination as last segment.",
        )
    },
    Info {
        keys: &["tenant", "table", "vrf", "pdu_session"],
        arguments: "`pdu_session`, a table ([mobile user plane](mobile.md))",
        ..Info::new(
            Kind::EndMGtp6E,
            "End.M.GTP6.E",
            "RFC 9433 section 6.5",
            "Sends the inner packet to a GTP-U tunnel over IPv6.",
        )
    },
];

// `Kind::info` finds a row by its index.
const _: () = {
    let mut at = 0;
    while at < TABLE.len() {
        assert!(TABLE[at].kind as usize == at, "rows have the order of `Kind`");
        at += 1;
    }
};

/// The names, for errors that list them.
const NAMES: [&str; TABLE.len()] = {
    let mut names = [""; TABLE.len()];
    let mut at = 0;
    while at < TABLE.len() {
        names[at] = TABLE[at].name;
        at += 1;
    }
    names
};

impl Kind {
    /// Returns the behavior's row of [`TABLE`].
    pub const fn info(self) -> &'static Info {
        const ROWS: &[Info] = &TABLE;
        &ROWS[self as usize]
    }

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// Returns the behavior with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|info| info.name == name).map(|info| info.kind)
    }
}

/// Returns the behaviors of service functions.
pub fn functions() -> impl Iterator<Item = &'static Info> {
    const ROWS: &[Info] = &TABLE;
    ROWS.iter().filter(|info| info.is_function)
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Kind;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a behavior such as End")
            }

            fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<Kind, A::Error> {
                let (name, variant): (String, _) = data.variant()?;
                variant.unit_variant()?;
                Kind::from_name(&name).ok_or_else(|| A::Error::unknown_variant(&name, &NAMES))
            }
        }
        deserializer.deserialize_enum("Behavior", &NAMES, V)
    }
}

impl JsonSchema for Kind {
    fn schema_name() -> Cow<'static, str> {
        "Behavior".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let all: Vec<_> = TABLE
            .iter()
            .map(|info| {
                json_schema!({"const": info.name, "description": info.summary, "type": "string"})
            })
            .collect();
        json_schema!({
            "description": "An endpoint behavior (RFC 8986 section 4).",
            "oneOf": all,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_behavior_is_read_by_its_name() {
        for info in &TABLE {
            assert_eq!(Kind::from_name(info.name), Some(info.kind));
            assert_eq!((info.kind.info().name, info.kind.name()), (info.name, info.name));
            let name = serde_json::Value::from(info.name);
            assert_eq!(serde_json::from_value::<Kind>(name).unwrap(), info.kind);
        }
        let error = serde_json::from_str::<Kind>("\"End.Z\"").unwrap_err().to_string();
        assert!(error.contains("End.Z") && error.contains("End.DT46"), "{error}");
        assert!(serde_json::from_str::<Kind>("7").is_err());
    }

    #[test]
    fn names_are_unique_and_service_functions_belong_to_xdp() {
        for (at, info) in TABLE.iter().enumerate() {
            assert!(TABLE[..at].iter().all(|other| other.name != info.name), "{}", info.name);
            assert!(!(info.is_function && info.kernel.is_some()), "{}", info.name);
            assert_eq!(info.keys.is_empty(), info.arguments.is_empty(), "{}", info.name);
        }
        let functions: Vec<_> = functions().map(|info| info.name).collect();
        assert_eq!(functions, ["End.AN.NF", "End.AS", "End.AD", "End.AM"]);
    }
}
