//! One direction of a link: a queue, a rate, and the way behind it.

use std::borrow::Cow;
use std::collections::VecDeque;

use crate::opportunities::Place;
use crate::queue::{Mark, Queue, Refusal, Sender};
use crate::tap::{Deed, Gap, Position, Tap, Tapped};
use crate::{Cause, Counts, Dice, Fate, Fates, Nanos, Rate, Settings};

/// What goes over a link.
pub trait Frame: Clone {
    /// Bytes of layer 2.
    fn length(&self) -> u32;

    /// Says that it met congestion, if its ends heed that (RFC 3168). Returns whether it does now.
    fn mark(&mut self) -> bool {
        false
    }

    /// As how many packets it came.
    fn count(&self) -> u64 {
        1
    }

    /// Whether it is cross traffic: its fate is of other dice, so that everybody else's is not changed.
    fn is_cross(&self) -> bool {
        false
    }

    /// Turns one of its bits over: this one, modulo as many as it has.
    fn flip(&mut self, bit: u64);
}

/// A packet that is being sent.
#[derive(Debug, Clone)]
struct Sending<P> {
    packet: Charged<P>,
    /// When its last bit leaves.
    until: Nanos,
    /// When its sending, or the part of it at the present rate, began.
    since: Nanos,
    /// Bits that were left then.
    bits: u64,
}

/// A packet with how long it will fly.
#[derive(Debug, Clone)]
struct Charged<P> {
    packet: P,
    came: Nanos,
    delay: Nanos,
    overtakes: bool,
}

impl<P: Frame> Mark for Charged<P> {
    fn mark(&mut self) -> bool {
        self.packet.mark()
    }
}

/// One direction of a link.
#[derive(Debug, Clone)]
pub struct Link<P> {
    /// What it was told to do.
    settings: Settings,
    /// What it does now.
    now: Settings,
    /// Whether it does nothing to packets, now and later.
    is_plain: bool,
    /// When its course and its trace began.
    origin: Nanos,
    /// When its course goes on.
    turn: Option<Nanos>,
    fates: Fates,
    /// Of cross traffic.
    others: Fates,
    queue: Queue<Charged<P>>,
    sending: Option<Sending<P>>,
    place: Place,
    /// By their arrival, of those that arrive together by when they left; each with when it came.
    flying: VecDeque<(Nanos, Nanos, P)>,
    /// When the last arrives that nothing overtakes.
    last: Nanos,
    counts: Counts,
    refused: Vec<Charged<P>>,
    /// What is on its way, in memory.
    flying_bytes: u64,
    /// Who watches it.
    tap: Option<Box<Tap<P>>>,
}

impl<P: Frame> Link<P> {
    /// An empty one.
    pub fn new(dice: Dice, settings: Settings) -> Self {
        let mut link = Self {
            queue: Queue::new(settings.limit, &settings.discipline, settings.ecn),
            is_plain: settings.is_plain(),
            now: settings.clone(),
            settings,
            origin: 0,
            turn: None,
            fates: Fates::new(dice),
            others: Fates::new(dice.others()),
            sending: None,
            place: Place::default(),
            flying: VecDeque::new(),
            last: 0,
            counts: Counts::default(),
            refused: Vec::new(),
            flying_bytes: 0,
            tap: None,
        };
        link.follow(0);
        link
    }

    /// One that goes on from where another one was.
    pub fn at(dice: Dice, settings: Settings, position: Position) -> Self {
        let mut link = Self::new(dice, settings);
        link.fates = Fates::at(dice, position.number, position.is_bad);
        link.others = Fates::at(dice.others(), position.cross_number, position.cross_is_bad);
        (link.origin, link.turn, link.last) = (position.origin, None, position.last);
        link.place = Place { number: position.opportunity, used: position.opportunity_used };
        link
    }

    /// Where it is; what waits and flies is not in it.
    fn position(&self) -> Position {
        Position {
            number: self.fates.count(),
            cross_number: self.others.count(),
            is_bad: self.fates.is_bad(),
            cross_is_bad: self.others.is_bad(),
            origin: self.origin,
            last: self.last,
            opportunity: self.place.number,
            opportunity_used: self.place.used,
        }
    }

    /// Lets somebody watch it, with room for so many bytes of packets; one at a time. Returns whether
    /// nobody did.
    pub fn watch(&mut self, room: u64) -> bool {
        let is_free = self.tap.is_none();
        self.tap.get_or_insert_with(|| Box::new(Tap::new(room)));
        is_free
    }

    /// Nobody watches it any more.
    pub fn unwatch(&mut self) {
        self.tap = None;
    }

    /// What has been seen since the last call, if somebody watches.
    pub fn seen(&mut self) -> Option<Tapped<P>> {
        self.tap.as_mut().map(|tap| tap.take())
    }

    fn see(&mut self, at: Nanos, deed: Deed, packet: &P) {
        if self.tap.is_some() {
            self.tell(at, deed, packet);
        }
    }

    #[cold]
    fn tell(&mut self, at: Nanos, deed: Deed, packet: &P) {
        let Some(mut tap) = self.tap.take() else { return };
        let waits = self.sending.is_some() || self.queue.packets() > 0;
        if !tap.has_begun() && deed != Deed::Left && !waits {
            let flying = self.flying.iter().map(|(at, ..)| *at);
            tap.begin(self.position(), flying.collect());
        }
        tap.see(at, deed, packet, memory_of(packet));
        self.tap = Some(tap);
    }

    /// What it was told to do.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What it does at a moment that is no earlier than any before: what its course says then.
    pub fn current(&self, now: Nanos) -> Cow<'_, Settings> {
        match &self.settings.course {
            Some(course) => {
                Cow::Owned(course.apply(&self.settings, now.saturating_sub(self.origin)).0)
            }
            None => Cow::Borrowed(&self.settings),
        }
    }

    /// What it has done so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// What came in or was made here, and what became of it: as much, at every moment.
    pub fn account(&self) -> (u64, u64) {
        let Counts { received, copied, arrived, .. } = self.counts;
        (received + copied, arrived + self.counts.all_dropped() + self.inside() as u64)
    }

    /// Packets that its queue's discipline marked instead of dropping them.
    pub fn marked(&self) -> u64 {
        self.queue.marked()
    }

    /// Packets and bytes that wait; the one that is being sent is none of them.
    pub fn waiting(&self) -> (usize, u64) {
        (self.queue.packets(), self.queue.bytes())
    }

    /// Packets that are inside: waiting, being sent, on their way.
    pub fn inside(&self) -> usize {
        self.queue.packets() + usize::from(self.sending.is_some()) + self.flying.len()
    }

    /// Bytes of memory that the packets inside take, about.
    pub fn memory(&self) -> u64 {
        // Small packets take as much as full ones.
        let waiting = self.queue.bytes().max(self.queue.packets() as u64 * PACKET);
        let sending = self.sending.as_ref().map_or(0, |sending| memory_of(&sending.packet.packet));
        waiting + sending + self.flying_bytes
    }

    /// A packet for which there is no room left in the network: it has its number, and goes no further.
    pub fn refuse(&mut self, now: Nanos, packet: &P) {
        self.see(now, Deed::Refused, packet);
        self.counts.received += 1;
        let fates = if packet.is_cross() { &mut self.others } else { &mut self.fates };
        fates.next(&self.now.impairments);
        self.drop(1, Cause::Backlog);
    }

    /// Whether it does nothing to packets, and nobody watches.
    pub(crate) fn is_clear(&self) -> bool {
        self.is_plain && self.tap.is_none()
    }

    /// Carries a packet to its end at once, if the link does nothing to packets, none is on it, and nobody
    /// watches. Returns whether it has.
    pub(crate) fn carry(&mut self, packet: &P) -> bool {
        let is_busy = !self.flying.is_empty() || self.sending.is_some();
        if !self.is_plain || is_busy || self.tap.is_some() {
            return false;
        }
        let (count, bytes) = (packet.count(), u64::from(packet.length()));
        self.fates.skip(count);
        self.counts.received += count;
        self.counts.sent += count;
        self.counts.sent_bytes += bytes;
        self.counts.arrived += count;
        self.counts.arrived_bytes += bytes;
        true
    }

    /// Takes a packet. Whoever calls has called [`Link::advance`] for everything before `now`.
    pub fn receive(&mut self, now: Nanos, mut packet: P) {
        self.follow(now);
        self.see(now, Deed::Came, &packet);
        self.counts.received += 1;
        let fates = if packet.is_cross() { &mut self.others } else { &mut self.fates };
        let roll = fates.discipline();
        let fate = fates.next(&self.now.impairments);
        if self.now.is_down {
            return self.drop(1, Cause::Down);
        }
        if fate.lost {
            return self.drop(1, Cause::Loss);
        }
        self.counts.overtook += u64::from(fate.overtakes);
        let copy = fate.twice.then(|| packet.clone());
        if let Some(bit) = fate.wrong_bit {
            self.counts.corrupted += 1;
            packet.flip(bit);
        }
        let Fate { delay, overtakes, .. } = fate;
        let charged = |packet| Charged { packet, came: now, delay, overtakes };
        self.admit(now, charged(packet), roll);
        if let Some(copy) = copy {
            self.counts.copied += 1;
            self.admit(now, charged(copy), roll);
        }
    }

    /// Into the queue; without a rate, straight on.
    fn admit(&mut self, now: Nanos, packet: Charged<P>, roll: u64) {
        if self.now.rate == Rate::Unlimited && self.sending.is_none() {
            return self.fly(now, packet);
        }
        let sender = Sender { bps: self.bps(), is_idle: self.sending.is_none() };
        let bytes = packet.packet.length();
        match self.queue.offer(now, packet, bytes, sender, roll) {
            Ok(()) => self.send_next(now),
            Err((_, Refusal::Full)) => self.drop(1, Cause::Full),
            Err((_, Refusal::Early)) => self.drop(1, Cause::Early),
        }
    }

    /// When it wants [`Link::advance`] to be called.
    pub fn next(&self) -> Option<Nanos> {
        let sent = self.sending.as_ref().map(|sending| sending.until);
        let arrives = self.flying.front().map(|(at, ..)| *at);
        // Who is empty finds out where its course is when a packet comes.
        let turn = self.turn.filter(|_| self.sending.is_some());
        sent.into_iter().chain(arrives).chain(turn).min()
    }

    /// Lets time pass until `now`: what arrives goes to `arrived`, with the moment when it did.
    pub fn advance(&mut self, now: Nanos, mut arrived: impl FnMut(Nanos, P)) {
        while self.sending.is_some()
            && let Some(turn) = self.turn.filter(|turn| *turn <= now)
        {
            self.send_until(turn);
            self.follow(turn);
        }
        self.send_until(now);
        while self.flying.front().is_some_and(|(at, ..)| *at <= now) {
            let (at, came, packet) = self.flying.pop_front().expect("there is a first one");
            self.flying_bytes -= memory_of(&packet);
            self.counts.arrived += 1;
            self.counts.arrived_bytes += u64::from(packet.length());
            self.counts.delayed += u128::from(at.saturating_sub(came));
            self.see(at, Deed::Left, &packet);
            arrived(at, packet);
        }
    }

    fn send_until(&mut self, now: Nanos) {
        while let Some(sending) = self.sending.take_if(|sending| sending.until <= now) {
            self.fly(sending.until, sending.packet);
            self.send_next(sending.until);
        }
    }

    /// Does what its course says now.
    fn follow(&mut self, now: Nanos) {
        let Some(course) = &self.settings.course else { return };
        if self.turn.is_some_and(|turn| turn > now) {
            return;
        }
        let (settings, next) = course.apply(&self.settings, now.saturating_sub(self.origin));
        self.turn = Some(next.map_or(Nanos::MAX, |next| next.saturating_add(self.origin)));
        self.become_now(now, settings);
    }

    /// Says when its course and its trace have begun.
    pub fn begin(&mut self, now: Nanos, origin: Nanos) {
        self.say_changed();
        let is_another = std::mem::replace(&mut self.origin, origin) != origin;
        self.turn = None;
        self.follow(now);
        if is_another && matches!(self.now.rate, Rate::Recorded(_)) {
            self.send_anew(now, 0);
        }
    }

    /// Changes what it does from `now` on. A packet that is being sent goes on at the new rate; those on
    /// their way arrive when they would have.
    pub fn change(&mut self, now: Nanos, settings: Settings) {
        self.say_changed();
        self.settings = settings;
        self.turn = None;
        match self.settings.course {
            Some(_) => self.follow(now),
            None => self.become_now(now, self.settings.clone()),
        }
    }

    fn say_changed(&mut self) {
        if let Some(tap) = &mut self.tap {
            tap.breaks(Gap::Changed);
        }
    }

    fn become_now(&mut self, now: Nanos, settings: Settings) {
        if (settings.limit, &settings.discipline) != (self.now.limit, &self.now.discipline) {
            self.queue.change(settings.limit, &settings.discipline);
        }
        self.queue.set_ecn(settings.ecn);
        let old = std::mem::replace(&mut self.now, settings);
        self.is_plain = self.now.is_plain() && self.settings.course.is_none();
        if self.now.is_down {
            let inside = self.inside() as u64;
            self.queue.clear().for_each(drop);
            self.flying.clear();
            self.flying_bytes = 0;
            self.sending = None;
            self.drop(inside, Cause::Down);
        }
        if old.rate == self.now.rate {
            return;
        }
        let since = self.sending.as_ref().map_or(now, |sending| sending.since);
        let sent = match old.rate {
            Rate::Constant(bps) => bits_in(now.saturating_sub(since), bps),
            _ => 0,
        };
        self.send_anew(now, sent);
    }

    /// What is left of the packet that is being sent leaves as the rate says from now on; a trace begins to
    /// count again.
    fn send_anew(&mut self, now: Nanos, sent: u64) {
        self.place = Place::default();
        if let Some(sending) = self.sending.take() {
            let left = sending.bits.saturating_sub(sent);
            self.sending = Some(self.sending_of(now, sending.packet, left));
        }
    }

    /// The next of the queue, if nothing is being sent.
    fn send_next(&mut self, now: Nanos) {
        if self.sending.is_some() {
            return;
        }
        let next = self.queue.take(now, &mut self.refused);
        let refused = self.refused.drain(..).count() as u64;
        self.drop(refused, Cause::Early);
        if let Some((packet, bytes)) = next {
            self.sending = Some(self.sending_of(now, packet, u64::from(bytes) * 8));
        }
    }

    fn sending_of(&mut self, now: Nanos, packet: Charged<P>, bits: u64) -> Sending<P> {
        let until = match &self.now.rate {
            Rate::Unlimited => now,
            Rate::Constant(bps) => now.saturating_add(time_of(bits, *bps)),
            Rate::Recorded(trace) => {
                let (bytes, since) =
                    (bits.div_ceil(8).max(1) as u32, now.saturating_sub(self.origin));
                trace.send(&mut self.place, since, bytes).saturating_add(self.origin)
            }
        };
        Sending { packet, until, since: now, bits }
    }

    /// Onto the way. What nothing overtakes arrives behind everything before it.
    fn fly(&mut self, now: Nanos, packet: Charged<P>) {
        let mut at = now.saturating_add(packet.delay);
        if !packet.overtakes {
            at = at.max(self.last);
            self.last = at;
        }
        self.counts.sent += 1;
        self.counts.sent_bytes += u64::from(packet.packet.length());
        self.flying_bytes += memory_of(&packet.packet);
        let place = self.flying.iter().rposition(|(before, ..)| *before <= at);
        let Charged { came, packet, .. } = packet;
        self.flying.insert(place.map_or(0, |place| place + 1), (at, came, packet));
    }

    fn bps(&self) -> u64 {
        match &self.now.rate {
            Rate::Unlimited => u64::MAX,
            Rate::Constant(bps) => *bps,
            Rate::Recorded(trace) => trace.mean_bps(),
        }
    }

    fn drop(&mut self, packets: u64, cause: Cause) {
        self.counts.drop(packets, cause);
    }
}

/// What a small packet's buffer takes.
const PACKET: u64 = 2048;

pub(crate) fn memory_of(packet: &impl Frame) -> u64 {
    u64::from(packet.length()).max(PACKET)
}

const SECOND: u128 = 1_000_000_000;

/// How long bits take: to the next nanosecond.
fn time_of(bits: u64, bps: u64) -> Nanos {
    (u128::from(bits) * SECOND).div_ceil(u128::from(bps.max(1))).try_into().unwrap_or(Nanos::MAX)
}

/// How many bits leave in a time.
fn bits_in(time: Nanos, bps: u64) -> u64 {
    (u128::from(time) * u128::from(bps) / SECOND).try_into().unwrap_or(u64::MAX)
}
