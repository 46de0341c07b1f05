//! Queues and queue disciplines.

mod codel;
mod pie;
mod red;

use std::collections::VecDeque;

pub use codel::CoDel;
pub use pie::Pie;
pub use red::Red;

use crate::Nanos;

/// Queue limit. Packets beyond it are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Limit in packets.
    Packets(u32),
    /// Limit in layer-2 bytes.
    Bytes(u64),
}

/// Queue discipline: drops packets before the limit is reached.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Discipline {
    /// Tail drop only.
    #[default]
    DropTail,
    /// Random early detection.
    Red(Red),
    /// Controlled delay.
    CoDel(CoDel),
    /// Proportional integral controller enhanced.
    Pie(Pie),
}

/// Reason for a drop at a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The limit is reached.
    Full,
    /// The queue discipline dropped the packet.
    Early,
}

/// A packet that can carry an ECN mark (RFC 3168).
pub trait Mark {
    /// Sets the congestion mark if the endpoints support ECN. Returns true if the packet is marked
    /// now.
    fn mark(&mut self) -> bool;
}

/// A queued packet.
#[derive(Debug, Clone)]
struct Waiting<P> {
    packet: P,
    bytes: u32,
    since: Nanos,
}

/// Decision of a queue discipline for an arriving packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Pass,
    /// Signal congestion: mark the packet, or drop it if it cannot be marked.
    Tell,
    Drop,
}

/// The transmitter that drains a queue.
#[derive(Debug, Clone, Copy)]
pub struct Sender {
    /// Rate in bits per second.
    pub bps: u64,
    /// True if the transmitter is idle; the queue is then empty.
    pub is_idle: bool,
}

/// State of a queue discipline.
#[derive(Debug, Clone)]
enum State {
    DropTail,
    Red(red::State),
    CoDel(codel::State),
    Pie(pie::State),
}

/// A FIFO queue with a discipline.
#[derive(Debug, Clone)]
pub struct Queue<P> {
    waiting: VecDeque<Waiting<P>>,
    bytes: u64,
    limit: Limit,
    state: State,
    /// True if the discipline marks ECN-capable packets instead of dropping them.
    ecn: bool,
    marked: u64,
}

impl<P: Mark> Queue<P> {
    /// Creates an empty queue.
    pub fn new(limit: Limit, discipline: &Discipline, ecn: bool) -> Self {
        let state = State::new(discipline);
        Self { waiting: VecDeque::new(), bytes: 0, limit, state, ecn, marked: 0 }
    }

    /// Changes the limit and the discipline. A discipline of another kind starts from its initial
    /// state. Queued packets remain, even if they exceed the new limit.
    pub fn change(&mut self, limit: Limit, discipline: &Discipline) {
        self.limit = limit;
        self.state.change(discipline);
    }

    /// Enables or disables ECN marking instead of dropping.
    pub fn set_ecn(&mut self, ecn: bool) {
        self.ecn = ecn;
    }

    /// Returns the number of marked packets.
    pub fn marked(&self) -> u64 {
        self.marked
    }

    /// Returns the backlog in packets.
    pub fn packets(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the backlog in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Enqueues a packet of `bytes` bytes, or returns it with the reason for its drop. `link`
    /// describes the transmitter, and `roll` is the packet's random number.
    pub fn offer(
        &mut self,
        now: Nanos,
        mut packet: P,
        bytes: u32,
        link: Sender,
        roll: u64,
    ) -> Result<(), (P, Refusal)> {
        let Sender { bps, is_idle } = link;
        let is_above = match self.limit {
            Limit::Packets(most) => self.waiting.len() >= most as usize,
            Limit::Bytes(most) => self.bytes + u64::from(bytes) > most,
        };
        // A packet that is sent immediately does not count towards the limit.
        let is_full = is_above && !is_idle;
        let verdict = match &mut self.state {
            State::DropTail | State::CoDel(_) => Verdict::Pass,
            State::Red(red) => red.judge(now, self.bytes, bps, roll),
            State::Pie(pie) => pie.judge(now, self.bytes, bps, roll),
        };
        let is_early = match verdict {
            Verdict::Pass => false,
            Verdict::Tell => is_full || !self.marks(&mut packet),
            Verdict::Drop => true,
        };
        if is_full || is_early {
            return Err((packet, if is_full { Refusal::Full } else { Refusal::Early }));
        }
        self.bytes += u64::from(bytes);
        self.waiting.push_back(Waiting { packet, bytes, since: now });
        Ok(())
    }

    /// Dequeues the next packet with its length. Packets dropped by the discipline are added to
    /// `dropped`.
    pub fn take(&mut self, now: Nanos, dropped: &mut Vec<P>) -> Option<(P, u32)> {
        let mut state = std::mem::replace(&mut self.state, State::DropTail);
        let taken = match &mut state {
            State::CoDel(codel) => codel.take(now, self, dropped),
            _ => self.pop(),
        };
        if self.waiting.is_empty()
            && let State::Red(red) = &mut state
        {
            red.empty_since(now);
        }
        self.state = state;
        taken.map(|waiting| (waiting.packet, waiting.bytes))
    }

    /// Removes all packets.
    pub fn clear(&mut self) -> impl Iterator<Item = P> {
        self.bytes = 0;
        self.waiting.drain(..).map(|waiting| waiting.packet)
    }

    /// Marks a packet if ECN is enabled and the packet is ECN-capable. Returns true if it is
    /// marked.
    fn marks(&mut self, packet: &mut P) -> bool {
        let marks = self.ecn && packet.mark();
        self.marked += u64::from(marks);
        marks
    }

    fn pop(&mut self) -> Option<Waiting<P>> {
        let first = self.waiting.pop_front()?;
        self.bytes -= u64::from(first.bytes);
        Some(first)
    }
}

impl State {
    fn new(discipline: &Discipline) -> Self {
        match discipline {
            Discipline::DropTail => Self::DropTail,
            Discipline::Red(settings) => Self::Red(red::State::new(*settings)),
            Discipline::CoDel(settings) => Self::CoDel(codel::State::new(*settings)),
            Discipline::Pie(settings) => Self::Pie(pie::State::new(*settings)),
        }
    }

    /// Changes the parameters. A discipline of the same kind keeps its state.
    fn change(&mut self, discipline: &Discipline) {
        match (&mut *self, discipline) {
            (Self::Red(red), Discipline::Red(settings)) => red.settings = *settings,
            (Self::CoDel(codel), Discipline::CoDel(settings)) => codel.settings = *settings,
            (Self::Pie(pie), Discipline::Pie(settings)) => pie.settings = *settings,
            _ => *self = Self::new(discipline),
        }
    }
}

/// Transmission time of `bytes`. A rate of 0 is treated as 1 bit per second.
fn time_of(bytes: u64, bps: u64) -> Nanos {
    let bits = u128::from(bytes) * 8 * 1_000_000_000;
    u64::try_from(bits / u128::from(bps.max(1))).unwrap_or(Nanos::MAX)
}
