//! Messages of a link, in postcard's encoding.

use p4_object::bounded;
use sandbox_queue::{Accusation, Policy, Reason};
use serde::{Deserialize, Serialize};

/// Version of the messages.
pub const VERSION: u32 = 3;
/// Maximum number of sockets of a client.
pub const MAX_SOCKETS: usize = 1024;

/// Maximum number of packets of a [`Report::Traced`].
pub const MAX_TRACED: usize = 32;
/// Maximum number of bytes of a traced packet.
pub const MAX_HEAD: usize = 128;

/// Direction of a packet, as the client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Direction {
    /// From the interface to the client.
    Receive,
    /// From the client to the interface.
    Transmit,
}

impl Direction {
    /// Both directions.
    pub const BOTH: [Self; 2] = [Self::Receive, Self::Transmit];
}

/// Message of the client's library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// First message.
    Hello {
        /// [`VERSION`].
        version: u32,
        /// Process id, as the client sees it.
        process: u32,
        /// Name of the client's executable.
        program: String,
    },
    /// The client creates a socket. The library waits for [`Order::Ready`].
    Opened {
        /// Number of the socket, which no other open socket of the client has.
        socket: u32,
        /// Interface.
        interface: String,
        /// Queue of the interface.
        queue: u32,
        /// True if it has an RX ring.
        receives: bool,
        /// True if it has a TX ring.
        transmits: bool,
    },
    /// The client has deleted a socket; its attachments have ended.
    Closed {
        /// Number of the socket.
        socket: u32,
    },
    /// An attachment has ended and has no packets in flight.
    Drained {
        /// Number of the attachment.
        attachment: u64,
    },
    /// The process of an attachment is late, or has violated the protocol.
    Accused {
        /// Number of the attachment.
        attachment: u64,
        /// Accusation.
        accusation: Accusation,
    },
    /// Answer to [`Order::Count`].
    Counters(#[serde(deserialize_with = "bounded::<_, _, MAX_SOCKETS>")] Vec<SocketCounters>),
    /// Packets with their verdicts, after [`Order::Trace`].
    Traced {
        /// Number of the socket.
        socket: u32,
        /// Direction.
        direction: Direction,
        /// The packets.
        #[serde(deserialize_with = "bounded::<_, _, MAX_TRACED>")]
        packets: Vec<Traced>,
    },
}

/// A packet with its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traced {
    /// Length in bytes.
    pub length: u32,
    /// First bytes.
    #[serde(deserialize_with = "bounded::<_, _, MAX_HEAD>")]
    pub head: Vec<u8>,
    /// Verdict.
    pub verdict: Verdict,
    /// Length after the program, if the packet passes.
    pub passed_length: u32,
    /// First bytes after the program, if the packet passes.
    #[serde(deserialize_with = "bounded::<_, _, MAX_HEAD>")]
    pub passed_head: Vec<u8>,
}

/// Verdict on a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The program passed it.
    Passed,
    /// The program dropped it.
    Dropped,
    /// The program sent it to another port, which drops it.
    Redirected(u32),
    /// The packet does not fit into its chunk after the program; dropped.
    Unfit,
    /// There is no verdict of the program: the policy decided.
    Policy {
        /// True if it passes.
        passes: bool,
        /// Reason that there is no verdict.
        reason: Reason,
    },
}

/// Counters of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SocketCounters {
    /// Number of the socket.
    pub socket: u32,
    /// Received packets.
    pub receive: Tally,
    /// Transmitted packets.
    pub transmit: Tally,
}

/// Packets of a socket in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Packets in flight.
    pub flying: u64,
    /// Packets that passed without a program.
    pub unjudged: u64,
    /// Packets that were submitted to programs and have a fate.
    pub submitted: u64,
    /// Packets passed by programs.
    pub passed: u64,
    /// Packets dropped by programs.
    pub dropped: u64,
    /// Packets that programs sent to another port than the packet's own; dropped.
    pub redirected: u64,
    /// Packets for which the policy decided.
    pub policy: u64,
    /// Packets dropped by the policy.
    pub policy_dropped: u64,
    /// Packets that do not fit: too long for a frame, longer than the chunk after the program, or
    /// in more than 32 descriptors. Dropped.
    pub unfit: u64,
    /// Descriptors with an address that the client or the kernel did not own.
    pub wrong_owner: u64,
}

/// Message to the client's library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Hosts a program in the client's process. The message carries two descriptors: the program's
    /// ends of its control socket and of its doorbell.
    Host {
        /// Number of the program, unique on this link.
        program: u64,
    },
    /// Ends a hosted program, before another process uses the frames of its packets.
    Unhost {
        /// Number of the program.
        program: u64,
    },
    /// Attaches a program, replacing the current one. The message carries two descriptors: the
    /// memory of the rings and of the frames.
    Attach(Attach),
    /// Ends the attachment of a direction: its packets pass without a program.
    Detach {
        /// Number of the socket.
        socket: u32,
        /// Direction.
        direction: Direction,
    },
    /// The process of an attachment has ended. The policy answers packets in flight and later ones.
    Ended {
        /// Number of the attachment.
        attachment: u64,
        /// Reason for packets in flight.
        flying: Reason,
        /// Reason for later packets.
        later: Reason,
    },
    /// All attachments of a new socket are made.
    Ready {
        /// Number of the socket.
        socket: u32,
    },
    /// The socket cannot be used, because its program cannot be attached.
    Refused {
        /// Number of the socket.
        socket: u32,
        /// Reason.
        why: String,
    },
    /// Asks for [`Report::Counters`].
    Count,
    /// Asks for the next packets of each direction of a socket, or of all sockets, as
    /// [`Report::Traced`]. Replaces the last request.
    Trace {
        /// Number of the socket.
        socket: Option<u32>,
        /// Maximum number of packets of each direction.
        packets: u32,
    },
}

/// A program for one direction of a socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attach {
    /// Number of the socket.
    pub socket: u32,
    /// Direction.
    pub direction: Direction,
    /// Number of the attachment, unique on this link.
    pub attachment: u64,
    /// Ingress port that the program sees.
    pub port: u32,
    /// Deadline of a packet's verdict in microseconds.
    pub deadline_us: u32,
    /// Time for which packets wait for another process if theirs has ended, in microseconds.
    pub hold_us: u32,
    /// Policy for packets without a verdict.
    pub policy: Policy,
    /// Number of the packet queue.
    pub number: u32,
    /// Number of queues of the process.
    pub queues: u32,
    /// Capacity of each ring.
    pub places: u32,
    /// Number of frames of the arena.
    pub frames: u32,
    /// Size of a frame in bytes.
    pub frame_size: u32,
    /// Number of the program in [`Order::Host`], if the client's process hosts it.
    pub host: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again<T: Serialize + serde::de::DeserializeOwned>(message: &T) -> T {
        postcard::from_bytes(&postcard::to_stdvec(message).unwrap()).unwrap()
    }

    #[test]
    fn reasons_policies_and_violations_survive_a_round_trip() {
        let reasons = [
            Reason::Program,
            Reason::Aborted,
            Reason::Fault(sandbox_queue::FaultKind::Room),
            Reason::Deadline,
            Reason::Crashed,
            Reason::ProtocolViolation,
            Reason::Restarting,
            Reason::Evicted,
        ];
        for flying in reasons {
            for later in reasons {
                let order = Order::Ended { attachment: 1, flying, later };
                assert_eq!(again(&order), order);
            }
        }
        for policy in [Policy::Closed, Policy::Open] {
            let order = Order::Attach(Attach {
                socket: 1,
                direction: Direction::Transmit,
                attachment: 2,
                port: 3,
                deadline_us: 4,
                hold_us: 5,
                policy,
                number: 6,
                queues: 7,
                places: 8,
                frames: 9,
                frame_size: 10,
                host: Some(11),
            });
            assert_eq!(again(&order), order);
        }
        use sandbox_queue::ProtocolViolation as Of;
        let violations =
            [Of::Index, Of::Slot, Of::Generation, Of::Length, Of::Verdict, Of::Digest, Of::Answer];
        let accusations = violations.map(Accusation::Violation).into_iter();
        for accusation in accusations.chain([Accusation::Late]) {
            let report = Report::Accused { attachment: 1, accusation };
            assert_eq!(again(&report), report);
        }
    }
}
