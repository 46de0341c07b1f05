//! The mobile user plane (RFC 9433): tunnels of GTP-U, and their sessions in SIDs.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bits of Args.Mob.Session (RFC 9433 section 6.1): QFI, R, U, and PDU Session ID.
pub const SESSION_BITS: u8 = 40;
/// Bits of the argument of End.M.GTP4.E, which begins with the IPv4 destination.
pub const SESSION4_BITS: u8 = 32 + SESSION_BITS;
/// Maximum position of an IPv4 source in an IPv6 source, in bits.
pub const MAX_SOURCE_ARGS: u8 = 128 - 32;
/// Default position of an IPv4 source in an IPv6 source, in bits.
pub const SOURCE_ARGS: u8 = 64;

/// Positions that End.M.GTP6.D, End.M.GTP6.D.Di and H.M.GTP4.D write to, in bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionArgs {
    /// Position of the argument in the last segment; in the one before if the last one is `::`, the
    /// original destination. None if the session is not carried.
    pub segment: Option<u8>,
    /// Position of the IPv4 source in the source address.
    pub source: u8,
}

/// ` session at 64, source at 64`
impl fmt::Display for SessionArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { segment, source } = self;
        segment.map_or(Ok(()), |at| write!(f, " session at {at}, source at {source}"))
    }
}

/// The tunnel that End.M.GTP4.E and End.M.GTP6.E send to. `T` is a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GtpTunnel<T> {
    /// Table in which the tunnel's destination is looked up; the main one if none.
    pub table: Option<T>,
    /// Direction in the PDU Session Container (3GPP TS 38.415); without one, packets have no container.
    pub pdu_session: Option<PduSession>,
}

/// Direction of the packets of a PDU session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PduSession {
    /// To the radio access network.
    Downlink,
    /// From the radio access network.
    Uplink,
}

impl<T> GtpTunnel<T> {
    /// Translates the table.
    pub fn map<U>(&self, with: impl FnOnce(&T) -> U) -> GtpTunnel<U> {
        GtpTunnel { table: self.table.as_ref().map(with), pdu_session: self.pdu_session }
    }
}

impl<T: fmt::Display> fmt::Display for GtpTunnel<T> {
    /// ` table 100 downlink`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(table) = &self.table {
            write!(f, " {table}")?;
        }
        f.write_str(match self.pdu_session {
            None => "",
            Some(PduSession::Downlink) => " downlink",
            Some(PduSession::Uplink) => " uplink",
        })
    }
}
