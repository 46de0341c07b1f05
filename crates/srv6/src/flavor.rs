//! Flavors of endpoint behaviors (RFC 8986 section 4.16, RFC 9800 section 4).

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
    /// Compressed SIDs in the segment list, which replace that in the address (section 4.2).
    #[serde(rename = "REPLACE-C-SID")]
    ReplaceCsid,
}

impl Flavor {
    /// Returns its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Psp => "PSP",
            Self::Usp => "USP",
            Self::Usd => "USD",
            Self::NextCsid => "NEXT-C-SID",
            Self::ReplaceCsid => "REPLACE-C-SID",
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
    pub next_csid: Option<CsidLengths>,
    /// REPLACE-C-SID, with its field lengths. Not together with NEXT-C-SID.
    pub replace_csid: Option<CsidLengths>,
}

impl Flavors {
    /// Returns the field lengths of compressed SIDs.
    pub fn csid(&self) -> Option<CsidLengths> {
        self.next_csid.or(self.replace_csid)
    }
}

/// Field lengths of a compressed SID, multiples of 8 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CsidLengths {
    /// The locator block (LBL), in bits.
    pub block_bits: u8,
    /// Locator node and function (LNFL), in bits.
    pub node_function_bits: u8,
}

impl Default for CsidLengths {
    /// F3216 of NEXT-C-SID, as in the kernel: 32 and 16 bits.
    fn default() -> Self {
        Self { block_bits: 32, node_function_bits: 16 }
    }
}

impl fmt::Display for Flavors {
    /// ` [PSP, NEXT-C-SID 32+16]`; empty without flavors.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = [(self.psp, Flavor::Psp), (self.usp, Flavor::Usp), (self.usd, Flavor::Usd)];
        let plain = plain.into_iter().filter(|(on, _)| *on).map(|(_, flavor)| flavor.name().into());
        let csids = [(self.next_csid, Flavor::NextCsid), (self.replace_csid, Flavor::ReplaceCsid)];
        let csids = csids.into_iter().filter_map(|(lengths, flavor)| {
            let CsidLengths { block_bits, node_function_bits } = lengths?;
            Some(format!("{} {block_bits}+{node_function_bits}", flavor.name()))
        });
        let all: Vec<String> = plain.chain(csids).collect();
        if all.is_empty() { Ok(()) } else { write!(f, " [{}]", all.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flavors_are_listed_in_brackets() {
        assert_eq!(Flavors::default().to_string(), "");
        let next_csid = Some(CsidLengths::default());
        let flavors = Flavors { psp: true, usd: true, next_csid, ..Flavors::default() };
        assert_eq!(flavors.to_string(), " [PSP, USD, NEXT-C-SID 32+16]");
        let replace_csid = Some(CsidLengths { block_bits: 48, node_function_bits: 32 });
        let flavors = Flavors { replace_csid, ..Flavors::default() };
        assert_eq!(flavors.to_string(), " [REPLACE-C-SID 48+32]");
    }

    #[test]
    fn a_flavor_is_read_by_its_name() {
        let csids = [Flavor::NextCsid, Flavor::ReplaceCsid];
        for flavor in [Flavor::Psp, Flavor::Usp, Flavor::Usd].into_iter().chain(csids) {
            let name = serde_json::Value::from(flavor.name());
            assert_eq!(serde_json::from_value::<Flavor>(name).unwrap(), flavor);
        }
        assert!(serde_json::from_str::<Flavor>("\"PSB\"").is_err());
    }
}
