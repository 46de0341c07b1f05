//! Flavors of endpoint behaviors (RFC 8986 section 4.16, RFC 9800 section 4.1).

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;

/// A flavor of a behavior.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Flavor {
    /// Penultimate Segment Pop (RFC 8986 section 4.16.1).
    #[serde(rename = "PSP")]
    Psp,
    /// Ultimate Segment Pop (section 4.16.2).
    #[serde(rename = "USP")]
    Usp,
    /// Ultimate Segment Decapsulation (section 4.16.3).
    #[serde(rename = "USD")]
    Usd,
    /// Several compressed SIDs in one address (RFC 9800 section 4.1).
    #[serde(rename = "NEXT-C-SID")]
    NextCsid,
}

impl Flavor {
    /// Returns its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Psp => "PSP",
            Self::Usp => "USP",
            Self::Usd => "USD",
            Self::NextCsid => "NEXT-C-SID",
        }
    }
}

/// The flavors of an endpoint behavior.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flavors {
    /// Penultimate Segment Pop.
    pub psp: bool,
    /// Ultimate Segment Pop.
    pub usp: bool,
    /// Ultimate Segment Decapsulation.
    pub usd: bool,
    /// NEXT-C-SID, with its field lengths.
    pub next_csid: Option<NextCsid>,
}

/// Field lengths of a NEXT-C-SID container, multiples of 8 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NextCsid {
    /// The locator block (LBL), in bits.
    pub block_bits: u8,
    /// Locator node and function (LNFL), in bits.
    pub node_function_bits: u8,
}

impl Default for NextCsid {
    /// F3216, as in the kernel: 32 and 16 bits.
    fn default() -> Self {
        Self { block_bits: 32, node_function_bits: 16 }
    }
}

impl fmt::Display for Flavors {
    /// ` [PSP, NEXT-C-SID 32+16]`; empty without flavors.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = [(self.psp, Flavor::Psp), (self.usp, Flavor::Usp), (self.usd, Flavor::Usd)];
        let plain = plain.into_iter().filter(|(on, _)| *on).map(|(_, flavor)| flavor.name().into());
        let next_csid = self.next_csid.map(|lengths| {
            let NextCsid { block_bits, node_function_bits } = lengths;
            format!("{} {block_bits}+{node_function_bits}", Flavor::NextCsid.name())
        });
        let all: Vec<String> = plain.chain(next_csid).collect();
        if all.is_empty() { Ok(()) } else { write!(f, " [{}]", all.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flavors_are_listed_in_brackets() {
        assert_eq!(Flavors::default().to_string(), "");
        let next_csid = Some(NextCsid::default());
        let flavors = Flavors { psp: true, usd: true, next_csid, ..Flavors::default() };
        assert_eq!(flavors.to_string(), " [PSP, USD, NEXT-C-SID 32+16]");
    }

    #[test]
    fn a_flavor_is_read_by_its_name() {
        for flavor in [Flavor::Psp, Flavor::Usp, Flavor::Usd, Flavor::NextCsid] {
            let name = serde_json::Value::from(flavor.name());
            assert_eq!(serde_json::from_value::<Flavor>(name).unwrap(), flavor);
        }
        assert!(serde_json::from_str::<Flavor>("\"PSB\"").is_err());
    }
}
