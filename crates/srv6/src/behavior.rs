//! Endpoint behaviors and their arguments.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::mobile::{GtpTunnel, PduSession};

/// An endpoint behavior (RFC 8986 section 4) with its arguments.
///
/// The types of the arguments depend on the stage of a configuration: names in a file, indices and
/// numbers on a machine. `I` is an interface, `T` a table, `P` a policy, `L` an interface that
/// leads to a service function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Behavior<I, T, P, L> {
    /// End: forwards to the next segment.
    End,
    /// End.X: forwards to the next segment through a given neighbor.
    EndX {
        /// The neighbor.
        next_hop: Ipv6Addr,
    },
    /// End.T: forwards to the next segment, which is looked up in a table.
    EndT {
        /// The table.
        table: T,
    },
    /// End.DX2: decapsulates and sends the frame on a port.
    EndDx2 {
        /// The port.
        port: I,
    },
    /// End.DX2V: decapsulates and sends the frame on the port of its first VLAN tag.
    EndDx2v {
        /// The L2 table: VLANs and their ports.
        vlans: Vec<(u16, I)>,
    },
    /// End.DX4: decapsulates and sends the IPv4 packet to a neighbor.
    EndDx4 {
        /// The neighbor; 0.0.0.0 for the packet's own destination.
        next_hop: Ipv4Addr,
    },
    /// End.DX6: decapsulates and sends the IPv6 packet to a neighbor.
    EndDx6 {
        /// The neighbor; `::` for the packet's own destination.
        next_hop: Ipv6Addr,
    },
    /// End.DT4: decapsulates and looks up the IPv4 packet.
    EndDt4 {
        /// The table.
        table: T,
    },
    /// End.DT6: decapsulates and looks up the IPv6 packet.
    EndDt6 {
        /// The table.
        table: T,
    },
    /// End.DT46: decapsulates and looks up the packet.
    EndDt46 {
        /// The table.
        table: T,
    },
    /// End.B6.Encaps: advances to the next segment and steers the packet into a policy.
    EndB6Encaps {
        /// The policy.
        policy: P,
    },
    /// End.B6.Insert: inserts an SRH before that of the packet, with the SID as last segment.
    EndB6Insert {
        /// The policy, of form H.Insert.
        policy: P,
    },
    /// End.AN.NF: passes the inner packet through netfilter and forwards to the next segment. The
    /// argument of the SID, at most 32 bits, becomes the inner packet's mark.
    EndAnNf {
        /// Return policy for local replies to the inner packet; without one they are dropped.
        answers: Option<P>,
    },
    /// End.AS: sends the inner packet to a service function. Returning packets get the outer header
    /// of a policy.
    EndAs {
        /// The path to the function.
        proxy: Proxy<L>,
        /// The policy.
        policy: P,
    },
    /// End.AD: sends the inner packet to a service function. Returning packets get their own outer
    /// header back.
    EndAd {
        /// The path to the function.
        proxy: Proxy<L>,
    },
    /// End.AM: sends the packet with its SRH to a service function, with the last segment as
    /// destination. Returning packets get the next segment as destination.
    EndAm {
        /// The path to the function.
        proxy: Proxy<L>,
    },
    /// End.M.GTP4.E: sends the inner packet to a GTP-U tunnel over IPv4.
    EndMGtp4E {
        /// The tunnel.
        tunnel: GtpTunnel<T>,
        /// Position of the IPv4 source in the source address, in bits.
        source_args: u8,
    },
    /// End.M.GTP6.D: steers the payload of a GTP-U tunnel into a policy.
    EndMGtp6D {
        /// The policy, which has the positions of the session.
        policy: P,
    },
    /// End.M.GTP6.D.Di: the same, with the original destination as last segment.
    EndMGtp6DDi {
        /// The policy.
        policy: P,
    },
    /// End.M.GTP6.E: sends the inner packet to a GTP-U tunnel over IPv6.
    EndMGtp6E {
        /// The tunnel.
        tunnel: GtpTunnel<T>,
    },
}

/// An endpoint behavior without its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the table describes each of them")]
pub enum Kind {
    End,
    EndX,
    EndT,
    EndDx2,
    EndDx2v,
    EndDx4,
    EndDx6,
    EndDt4,
    EndDt6,
    EndDt46,
    EndB6Encaps,
    EndB6Insert,
    EndAnNf,
    EndAs,
    EndAd,
    EndAm,
    EndMGtp4E,
    EndMGtp6D,
    EndMGtp6DDi,
    EndMGtp6E,
}

/// The path to a service function through an interface, and back
/// (draft-ietf-spring-sr-service-programming).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy<L> {
    /// Interface that packets are sent on (IFACE-OUT).
    pub to: L,
    /// Interface that packets return on (IFACE-IN).
    pub back: L,
    /// Address of the function (NH-ADDR) if it routes; none if it accepts any destination MAC
    /// address.
    pub via: Option<IpAddr>,
}

/// A routing table on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LookUp {
    /// Number of the table.
    pub table: u32,
    /// Index of the VRF device to look up in, if the table is that of a VRF.
    pub vrf: Option<u32>,
}

/// Translates the arguments of behaviors to those of another stage.
pub trait Resolve<I, T, P, L> {
    /// An interface of the other stage.
    type Interface;
    /// A table of the other stage.
    type Table;
    /// A policy of the other stage.
    type Policy;
    /// An interface that leads to a service function, of the other stage.
    type Link;

    /// Translates an interface.
    fn interface(&mut self, interface: &I) -> Self::Interface;
    /// Translates a table.
    fn table(&mut self, table: &T) -> Self::Table;
    /// Translates a policy.
    fn policy(&mut self, policy: &P) -> Self::Policy;
    /// Translates the path to a service function.
    fn proxy(&mut self, proxy: &Proxy<L>) -> Proxy<Self::Link>;
}

/// The behavior with the arguments that `R` translates to.
type Resolved<R, I, T, P, L> = Behavior<
    <R as Resolve<I, T, P, L>>::Interface,
    <R as Resolve<I, T, P, L>>::Table,
    <R as Resolve<I, T, P, L>>::Policy,
    <R as Resolve<I, T, P, L>>::Link,
>;

impl<I, T, P, L> Behavior<I, T, P, L> {
    /// Returns the behavior without its arguments.
    pub fn kind(&self) -> Kind {
        match self {
            Self::End => Kind::End,
            Self::EndX { .. } => Kind::EndX,
            Self::EndT { .. } => Kind::EndT,
            Self::EndDx2 { .. } => Kind::EndDx2,
            Self::EndDx2v { .. } => Kind::EndDx2v,
            Self::EndDx4 { .. } => Kind::EndDx4,
            Self::EndDx6 { .. } => Kind::EndDx6,
            Self::EndDt4 { .. } => Kind::EndDt4,
            Self::EndDt6 { .. } => Kind::EndDt6,
            Self::EndDt46 { .. } => Kind::EndDt46,
            Self::EndB6Encaps { .. } => Kind::EndB6Encaps,
            Self::EndB6Insert { .. } => Kind::EndB6Insert,
            Self::EndAnNf { .. } => Kind::EndAnNf,
            Self::EndAs { .. } => Kind::EndAs,
            Self::EndAd { .. } => Kind::EndAd,
            Self::EndAm { .. } => Kind::EndAm,
            Self::EndMGtp4E { .. } => Kind::EndMGtp4E,
            Self::EndMGtp6D { .. } => Kind::EndMGtp6D,
            Self::EndMGtp6DDi { .. } => Kind::EndMGtp6DDi,
            Self::EndMGtp6E { .. } => Kind::EndMGtp6E,
        }
    }

    /// Returns the ports that packets are sent on.
    pub fn ports(&self) -> Vec<&I> {
        match self {
            Self::EndDx2 { port } => vec![port],
            Self::EndDx2v { vlans } => vlans.iter().map(|(_, port)| port).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the table that packets are looked up in after decapsulation.
    pub fn inner_table(&self) -> Option<&T> {
        match self {
            Self::EndDt4 { table } | Self::EndDt6 { table } | Self::EndDt46 { table } => {
                Some(table)
            }
            Self::EndMGtp4E { tunnel, .. } | Self::EndMGtp6E { tunnel } => tunnel.table.as_ref(),
            _ => None,
        }
    }

    /// Returns the policy, if there is one.
    pub fn policy(&self) -> Option<&P> {
        match self {
            Self::EndB6Encaps { policy }
            | Self::EndB6Insert { policy }
            | Self::EndAs { policy, .. }
            | Self::EndMGtp6D { policy }
            | Self::EndMGtp6DDi { policy } => Some(policy),
            Self::EndAnNf { answers } => answers.as_ref(),
            _ => None,
        }
    }

    /// Returns the direction in the PDU Session Containers that it writes.
    pub fn pdu_session(&self) -> Option<PduSession> {
        match self {
            Self::EndMGtp4E { tunnel, .. } | Self::EndMGtp6E { tunnel } => tunnel.pdu_session,
            _ => None,
        }
    }

    /// Returns the path to a service function behind an interface.
    pub fn proxy(&self) -> Option<&Proxy<L>> {
        match self {
            Self::EndAs { proxy, .. } | Self::EndAd { proxy } | Self::EndAm { proxy } => {
                Some(proxy)
            }
            _ => None,
        }
    }

    /// Translates the arguments to those of another stage.
    pub fn resolve<R: Resolve<I, T, P, L>>(&self, with: &mut R) -> Resolved<R, I, T, P, L> {
        match self {
            Self::End => Behavior::End,
            Self::EndX { next_hop } => Behavior::EndX { next_hop: *next_hop },
            Self::EndT { table } => Behavior::EndT { table: with.table(table) },
            Self::EndDx2 { port } => Behavior::EndDx2 { port: with.interface(port) },
            Self::EndDx2v { vlans } => {
                let vlans = vlans.iter().map(|(vlan, port)| (*vlan, with.interface(port)));
                Behavior::EndDx2v { vlans: vlans.collect() }
            }
            Self::EndDx4 { next_hop } => Behavior::EndDx4 { next_hop: *next_hop },
            Self::EndDx6 { next_hop } => Behavior::EndDx6 { next_hop: *next_hop },
            Self::EndDt4 { table } => Behavior::EndDt4 { table: with.table(table) },
            Self::EndDt6 { table } => Behavior::EndDt6 { table: with.table(table) },
            Self::EndDt46 { table } => Behavior::EndDt46 { table: with.table(table) },
            Self::EndB6Encaps { policy } => Behavior::EndB6Encaps { policy: with.policy(policy) },
            Self::EndB6Insert { policy } => Behavior::EndB6Insert { policy: with.policy(policy) },
            Self::EndAnNf { answers } => {
                Behavior::EndAnNf { answers: answers.as_ref().map(|policy| with.policy(policy)) }
            }
            Self::EndAs { proxy, policy } => {
                Behavior::EndAs { proxy: with.proxy(proxy), policy: with.policy(policy) }
            }
            Self::EndAd { proxy } => Behavior::EndAd { proxy: with.proxy(proxy) },
            Self::EndAm { proxy } => Behavior::EndAm { proxy: with.proxy(proxy) },
            Self::EndMGtp4E { tunnel, source_args } => {
                let tunnel = tunnel.map(|table| with.table(table));
                Behavior::EndMGtp4E { tunnel, source_args: *source_args }
            }
            Self::EndMGtp6D { policy } => Behavior::EndMGtp6D { policy: with.policy(policy) },
            Self::EndMGtp6DDi { policy } => Behavior::EndMGtp6DDi { policy: with.policy(policy) },
            Self::EndMGtp6E { tunnel } => {
                Behavior::EndMGtp6E { tunnel: tunnel.map(|table| with.table(table)) }
            }
        }
    }
}

impl<I, T, P, L> fmt::Display for Behavior<I, T, P, L>
where
    I: fmt::Display,
    T: fmt::Display,
    P: fmt::Display,
    L: fmt::Display + PartialEq,
{
    /// `End.X fd00:b::2`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind().info().name)?;
        match self {
            Self::End | Self::EndAnNf { answers: None } => Ok(()),
            Self::EndX { next_hop } | Self::EndDx6 { next_hop } => write!(f, " {next_hop}"),
            Self::EndDx4 { next_hop } => write!(f, " {next_hop}"),
            Self::EndT { table }
            | Self::EndDt4 { table }
            | Self::EndDt6 { table }
            | Self::EndDt46 { table } => write!(f, " {table}"),
            Self::EndDx2 { port } => write!(f, " {port}"),
            Self::EndDx2v { vlans } => {
                vlans.iter().try_for_each(|(vlan, port)| write!(f, " vlan {vlan} {port}"))
            }
            Self::EndB6Encaps { policy }
            | Self::EndB6Insert { policy }
            | Self::EndMGtp6D { policy }
            | Self::EndMGtp6DDi { policy } => write!(f, " {policy}"),
            Self::EndMGtp4E { tunnel, source_args } => {
                write!(f, "{tunnel} source at {source_args}")
            }
            Self::EndMGtp6E { tunnel } => write!(f, "{tunnel}"),
            Self::EndAnNf { answers: Some(policy) } => write!(f, " answers {policy}"),
            Self::EndAs { proxy, policy } => write!(f, "{proxy} policy {policy}"),
            Self::EndAd { proxy } | Self::EndAm { proxy } => write!(f, "{proxy}"),
        }
    }
}

impl<L: fmt::Display + PartialEq> fmt::Display for Proxy<L> {
    /// ` to eth2 back eth3 via 10.0.0.2`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " to {}", self.to)?;
        if self.back != self.to {
            write!(f, " back {}", self.back)?;
        }
        self.via.map_or(Ok(()), |via| write!(f, " via {via}"))
    }
}
