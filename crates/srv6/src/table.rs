//! The type of an entry of `TABLE`, and lookup of behaviors by name.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, EnumAccess, Error, VariantAccess, Visitor};

use crate::behavior::{Kind, TABLE};
use crate::flavor::Flavor;

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
