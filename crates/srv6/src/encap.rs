//! Headend behaviors (RFC 8986 section 5).

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

/// The headend behavior that imposes a segment list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EncapMode {
    /// H.Insert, from the drafts: no outer header; the SRH is inserted into the IPv6 packet. The
    /// kernel appends the packet's destination as the last segment, so the list does not contain
    /// it.
    Insert,
    /// H.Encaps (RFC 8986 section 5.1).
    Encaps,
    /// H.Encaps.Red: the first segment is only in the destination address (section 5.2).
    EncapsRed,
    /// H.Encaps.L2: encapsulates the whole Ethernet frame (section 5.3).
    EncapsL2,
    /// H.Encaps.L2.Red (section 5.4).
    EncapsL2Red,
}

impl EncapMode {
    /// Returns the mode of a form for a type of payload.
    pub fn new(form: Form, payload: Payload) -> Self {
        match (form, payload) {
            (Form::Encaps, Payload::Packet) => Self::Encaps,
            (Form::EncapsRed, Payload::Packet) => Self::EncapsRed,
            (Form::Encaps, Payload::Frame) => Self::EncapsL2,
            (Form::EncapsRed, Payload::Frame) => Self::EncapsL2Red,
            (Form::Insert, _) => Self::Insert,
        }
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Insert => "H.Insert",
            Self::Encaps => "H.Encaps",
            Self::EncapsRed => "H.Encaps.Red",
            Self::EncapsL2 => "H.Encaps.L2",
            Self::EncapsL2Red => "H.Encaps.L2.Red",
        }
    }

    /// Returns the Linux version that brought the mode.
    pub fn since(self) -> &'static str {
        match self {
            Self::Insert | Self::Encaps => "4.10",
            Self::EncapsL2 => "4.14",
            Self::EncapsRed | Self::EncapsL2Red => "6.0",
        }
    }
}

/// Encapsulation mode of a policy in a file, for packets and frames alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, JsonSchema)]
pub enum Form {
    /// H.Encaps: the SRH contains the whole segment list. For frames, H.Encaps.L2.
    #[serde(rename = "H.Encaps")]
    Encaps,
    /// H.Encaps.Red: the first segment is only in the destination address. For frames,
    /// H.Encaps.L2.Red.
    #[default]
    #[serde(rename = "H.Encaps.Red")]
    EncapsRed,
    /// H.Insert: an SRH is inserted into the IPv6 packet, whose destination becomes the last segment. Not
    /// for frames.
    #[serde(rename = "H.Insert")]
    Insert,
}

impl<'de> Deserialize<'de> for Form {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        match &*text {
            // `alias` would list the earlier names in errors, so they are accepted here.
            "H.Encaps" | "whole" => Ok(Self::Encaps),
            "H.Encaps.Red" | "reduced" => Ok(Self::EncapsRed),
            "H.Insert" => Ok(Self::Insert),
            other => {
                Err(D::Error::unknown_variant(other, &["H.Encaps", "H.Encaps.Red", "H.Insert"]))
            }
        }
    }
}

/// Type of the encapsulated payload: an IP packet or an Ethernet frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// H.Encaps, End.B6.Encaps.
    Packet,
    /// H.Encaps.L2.
    Frame,
}

impl Form {
    /// Returns the maximum number of segments. XDP can grow a frame by 216 bytes, of which an
    /// encapsulated frame needs 14 for the outer Ethernet header.
    pub fn longest(self, payload: Payload) -> usize {
        let room = match payload {
            Payload::Packet => 208,
            Payload::Frame => 216 - 14,
        };
        let in_header = (room - 40 - 8) / 16;
        match self {
            Self::Encaps => in_header,
            Self::EncapsRed => in_header + 1,
            // The packet's destination is in the header, too.
            Self::Insert => in_header - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_a_form_and_a_payload() {
        let name = |form, payload| EncapMode::new(form, payload).name();
        assert_eq!(name(Form::Encaps, Payload::Packet), "H.Encaps");
        assert_eq!(name(Form::EncapsRed, Payload::Packet), "H.Encaps.Red");
        assert_eq!(name(Form::Encaps, Payload::Frame), "H.Encaps.L2");
        assert_eq!(name(Form::EncapsRed, Payload::Frame), "H.Encaps.L2.Red");
    }

    #[test]
    fn a_reduced_list_has_one_more_segment() {
        assert_eq!(Form::Encaps.longest(Payload::Packet), 10);
        assert_eq!(Form::EncapsRed.longest(Payload::Packet), 11);
        assert_eq!(Form::Encaps.longest(Payload::Frame), 9);
        assert_eq!(Form::Insert.longest(Payload::Packet), 9);
    }
}
