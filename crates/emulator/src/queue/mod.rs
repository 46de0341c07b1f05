//! What waits in front of a link, and which of it is dropped.

mod codel;
mod pie;
mod red;

use std::collections::VecDeque;

pub use codel::CoDel;
pub use pie::Pie;
pub use red::Red;

use crate::Nanos;

/// How much waits at most. What comes then is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// So many packets.
    Packets(u32),
    /// So many bytes of layer 2.
    Bytes(u64),
}

/// What drops packets before the limit does.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Discipline {
    /// Nothing.
    #[default]
    DropTail,
    /// Random early detection.
    Red(Red),
    /// Controlled delay.
    CoDel(CoDel),
    /// The proportional integral controller, enhanced.
    Pie(Pie),
}

/// Why a packet is dropped at a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The limit is reached.
    Full,
    /// The discipline says so.
    Early,
}

/// What waits and can say that it had to (RFC 3168).
pub trait Mark {
    /// Says that it met congestion, if its ends heed that. Returns whether it does now.
    fn mark(&mut self) -> bool;
}

/// A packet that waits.
#[derive(Debug, Clone)]
struct Waiting<P> {
    packet: P,
    bytes: u32,
    since: Nanos,
}

/// What a discipline says of a packet that comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Pass,
    /// It is to be slower: a mark does, or a drop.
    Tell,
    Drop,
}

/// What empties a queue.
#[derive(Debug, Clone, Copy)]
pub struct Sender {
    /// How fast it does, in bits per second.
    pub bps: u64,
    /// Whether it sends nothing, so that nothing waits.
    pub is_idle: bool,
}

/// The state of a discipline.
#[derive(Debug, Clone)]
enum State {
    DropTail,
    Red(red::State),
    CoDel(codel::State),
    Pie(pie::State),
}

/// Packets that wait, in order.
#[derive(Debug, Clone)]
pub struct Queue<P> {
    waiting: VecDeque<Waiting<P>>,
    bytes: u64,
    limit: Limit,
    state: State,
    /// Whether disciplines mark what they can instead of dropping it.
    ecn: bool,
    marked: u64,
}

impl<P: Mark> Queue<P> {
    /// An empty one.
    pub fn new(limit: Limit, discipline: &Discipline, ecn: bool) -> Self {
        let state = State::new(discipline);
        Self { waiting: VecDeque::new(), bytes: 0, limit, state, ecn, marked: 0 }
    }

    /// Changes the limit and the discipline, which begins anew if it is of another kind. What waits stays,
    /// also where it is more than the limit now.
    pub fn change(&mut self, limit: Limit, discipline: &Discipline) {
        self.limit = limit;
        self.state.change(discipline);
    }

    /// Lets disciplines mark packets instead of dropping them, where these can be marked.
    pub fn set_ecn(&mut self, ecn: bool) {
        self.ecn = ecn;
    }

    /// How many packets were marked.
    pub fn marked(&self) -> u64 {
        self.marked
    }

    /// How many packets wait.
    pub fn packets(&self) -> usize {
        self.waiting.len()
    }

    /// How many bytes wait.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Puts a packet of so many bytes at the end, or gives it back. `link`: what the queue is in front
    /// of. `roll`: the packet's random number.
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
        // What is sent at once does not wait.
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

    /// The packet that is sent next, with its bytes. Those in front of it that the discipline drops go
    /// to `dropped`.
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

    /// Takes everything out.
    pub fn clear(&mut self) -> impl Iterator<Item = P> {
        self.bytes = 0;
        self.waiting.drain(..).map(|waiting| waiting.packet)
    }

    /// Marks a packet, if that is done here and can be done to it.
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

    /// One of the same kind goes on from where it is, with these settings.
    fn change(&mut self, discipline: &Discipline) {
        match (&mut *self, discipline) {
            (Self::Red(red), Discipline::Red(settings)) => red.settings = *settings,
            (Self::CoDel(codel), Discipline::CoDel(settings)) => codel.settings = *settings,
            (Self::Pie(pie), Discipline::Pie(settings)) => pie.settings = *settings,
            _ => *self = Self::new(discipline),
        }
    }
}

/// How long `bytes` take at a rate; none take for ever.
fn time_of(bytes: u64, bps: u64) -> Nanos {
    let bits = u128::from(bytes) * 8 * 1_000_000_000;
    u64::try_from(bits / u128::from(bps.max(1))).unwrap_or(Nanos::MAX)
}
