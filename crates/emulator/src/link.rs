//! One direction of a link: a queue, a rate and a propagation delay.

use std::borrow::Cow;
use std::collections::VecDeque;

use crate::opportunities::Place;
use crate::queue::{Mark, Queue, Refusal, Sender};
use crate::tap::{Deed, Gap, Position, Tap, Tapped};
use crate::{Account, Backlog, Cause, Counts, Dice, Effect, Fate, Fates, Nanos, Rate, Settings};

/// A packet or frame sent over a link.
pub trait Frame: Clone {
    /// Returns the length in layer-2 bytes.
    fn length(&self) -> u32;

    /// Sets the ECN congestion mark if the endpoints support ECN (RFC 3168). Returns true if the
    /// frame is marked now.
    fn mark(&mut self) -> bool {
        false
    }

    /// Returns the number of packets that this frame represents.
    fn count(&self) -> u64 {
        1
    }

    /// Returns true for cross traffic. It uses a separate random generator, so that it does not
    /// change the outcome of other packets.
    fn is_cross(&self) -> bool {
        false
    }

    /// Inverts one bit: this one, modulo the frame's length in bits.
    fn flip(&mut self, bit: u64);
}

/// The packet being transmitted.
#[derive(Debug, Clone)]
struct Sending<P> {
    packet: Charged<P>,
    /// End of the transmission (the last bit leaves).
    until: Nanos,
    /// Start of the transmission, or of its part at the present rate.
    since: Nanos,
    /// Bits left at `since`.
    bits: u64,
}

/// A packet with its arrival time and its propagation delay.
#[derive(Debug, Clone)]
struct Charged<P> {
    packet: P,
    came: Nanos,
    delay: Nanos,
    reorder: bool,
}

impl<P: Frame> Mark for Charged<P> {
    fn mark(&mut self) -> bool {
        self.packet.mark()
    }
}

/// One direction of a link.
#[derive(Debug, Clone)]
pub struct Link<P> {
    /// Configured settings.
    settings: Settings,
    /// Effective settings, with the schedule applied.
    now: Settings,
    /// True if the link forwards packets unchanged and without delay, now and later.
    is_plain: bool,
    /// Start time of the schedule and of the rate trace.
    origin: Nanos,
    /// Time of the next change in the schedule.
    turn: Option<Nanos>,
    fates: Fates,
    /// Outcomes of cross traffic.
    others: Fates,
    queue: Queue<Charged<P>>,
    sending: Option<Sending<P>>,
    place: Place,
    /// In-flight packets as (arrival, time received, packet), ordered by arrival; ties in the order
    /// in which they were sent.
    flying: VecDeque<(Nanos, Nanos, P)>,
    /// Latest arrival time of a packet that was not reordered.
    last: Nanos,
    counts: Counts,
    refused: Vec<Charged<P>>,
    /// Memory in bytes of the in-flight packets.
    flying_bytes: u64,
    /// Capture tap.
    tap: Option<Box<Tap<P>>>,
}

impl<P: Frame> Link<P> {
    /// Creates an idle link.
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

    /// Creates a link that continues at the position of another one.
    pub fn at(dice: Dice, settings: Settings, position: Position) -> Self {
        let mut link = Self::new(dice, settings);
        link.fates = Fates::at(dice, position.number, position.is_bad);
        link.others = Fates::at(dice.others(), position.cross_number, position.cross_is_bad);
        (link.origin, link.turn, link.last) = (position.origin, None, position.last);
        link.place = Place { number: position.opportunity, used: position.opportunity_used };
        link
    }

    /// Returns the present position, without the queued and in-flight packets.
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

    /// Attaches a capture tap that buffers up to `room` bytes of packets. A link has at most one
    /// tap. Returns false if there was one already.
    pub fn watch(&mut self, room: u64) -> bool {
        let is_free = self.tap.is_none();
        self.tap.get_or_insert_with(|| Box::new(Tap::new(room)));
        is_free
    }

    /// Removes the capture tap.
    pub fn unwatch(&mut self) {
        self.tap = None;
    }

    /// Returns the packets captured since the last call, or `None` without a tap.
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

    /// Returns the configured settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the settings in effect at `now`, with the schedule applied. `now` must not decrease
    /// between calls.
    pub fn current(&self, now: Nanos) -> Cow<'_, Settings> {
        match &self.settings.course {
            Some(course) => {
                Cow::Owned(course.apply(&self.settings, now.saturating_sub(self.origin)).0)
            }
            None => Cow::Borrowed(&self.settings),
        }
    }

    /// Returns the packet counters.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Compares the packets received or duplicated with those accounted for.
    pub fn account(&self) -> Account {
        let Counts { received, arrived, .. } = self.counts;
        let copied = self.counts.effect(Effect::Duplicated);
        Account {
            entered: received + copied,
            accounted: arrived + self.counts.all_dropped() + self.inside() as u64,
        }
    }

    /// Returns the number of packets that the queue discipline marked instead of dropping them.
    pub fn marked(&self) -> u64 {
        self.queue.marked()
    }

    /// Returns the backlog, without the packet being transmitted.
    pub fn waiting(&self) -> Backlog {
        Backlog { packets: self.queue.packets(), bytes: self.queue.bytes() }
    }

    /// Returns the number of packets in the link: queued, being transmitted and in flight.
    pub fn inside(&self) -> usize {
        self.queue.packets() + usize::from(self.sending.is_some()) + self.flying.len()
    }

    /// Returns the approximate memory in bytes of the packets in the link.
    pub fn memory(&self) -> u64 {
        // A small packet occupies as much memory as a full-sized one.
        let waiting = self.queue.bytes().max(self.queue.packets() as u64 * PACKET);
        let sending = self.sending.as_ref().map_or(0, |sending| memory_of(&sending.packet.packet));
        waiting + sending + self.flying_bytes
    }

    /// Drops a packet because the network has no memory left. The packet still consumes a sequence
    /// number.
    pub fn refuse(&mut self, now: Nanos, packet: &P) {
        self.see(now, Deed::Refused, packet);
        self.counts.received += 1;
        let fates = if packet.is_cross() { &mut self.others } else { &mut self.fates };
        fates.next(&self.now.impairments);
        self.drop(1, Cause::Backlog);
    }

    /// Returns true if the link forwards packets unchanged and without delay, and has no tap.
    pub(crate) fn is_clear(&self) -> bool {
        self.is_plain && self.tap.is_none()
    }

    /// Delivers a packet immediately if the link has no impairments, no rate, no packets and no
    /// tap. Returns true if it did.
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

    /// Receives a packet. The caller must have called [`Link::advance`] for all earlier times.
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
        if fate.reorder {
            self.counts.affect(Effect::Reordered);
        }
        let copy = fate.duplicate.then(|| packet.clone());
        if let Some(bit) = fate.corrupt {
            self.counts.affect(Effect::Corrupted);
            packet.flip(bit);
        }
        let Fate { delay, reorder, .. } = fate;
        let charged = |packet| Charged { packet, came: now, delay, reorder };
        self.admit(now, charged(packet), roll);
        if let Some(copy) = copy {
            self.counts.affect(Effect::Duplicated);
            self.admit(now, charged(copy), roll);
        }
    }

    /// Enqueues a packet, or sends it immediately if the rate is unlimited.
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

    /// Returns the time at which [`Link::advance`] must be called next.
    pub fn next(&self) -> Option<Nanos> {
        let sent = self.sending.as_ref().map(|sending| sending.until);
        let arrives = self.flying.front().map(|(at, ..)| *at);
        // An idle link reads its schedule when the next packet arrives.
        let turn = self.turn.filter(|_| self.sending.is_some());
        sent.into_iter().chain(arrives).chain(turn).min()
    }

    /// Advances time to `now`. Passes each delivered packet to `arrived` with its arrival time.
    pub fn advance(&mut self, now: Nanos, arrived: impl FnMut(Nanos, P)) {
        self.advance_some(now, usize::MAX, arrived);
    }

    /// Does the same, for at most `most` packets.
    pub fn advance_some(&mut self, now: Nanos, most: usize, mut arrived: impl FnMut(Nanos, P)) {
        while self.sending.is_some()
            && let Some(turn) = self.turn.filter(|turn| *turn <= now)
        {
            self.send_until(turn);
            self.follow(turn);
        }
        self.send_until(now);
        for _ in 0..most {
            let due = self.flying.pop_front_if(|(at, ..)| *at <= now);
            let Some((at, came, packet)) = due else { break };
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

    /// Applies the schedule at `now`.
    fn follow(&mut self, now: Nanos) {
        let Some(course) = &self.settings.course else { return };
        if self.turn.is_some_and(|turn| turn > now) {
            return;
        }
        let (settings, next) = course.apply(&self.settings, now.saturating_sub(self.origin));
        self.turn = Some(next.map_or(Nanos::MAX, |next| next.saturating_add(self.origin)));
        self.become_now(now, settings);
    }

    /// Sets the start time of the schedule and the rate trace.
    pub fn begin(&mut self, now: Nanos, origin: Nanos) {
        self.say_changed();
        let is_another = std::mem::replace(&mut self.origin, origin) != origin;
        self.turn = None;
        self.follow(now);
        if is_another && matches!(self.now.rate, Rate::Recorded(_)) {
            self.send_anew(now, 0);
        }
    }

    /// Changes the settings from `now` on. The packet being transmitted continues at the new rate.
    /// The arrival times of in-flight packets do not change.
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

    /// Reschedules the rest of the packet being transmitted at the present rate. A rate trace
    /// starts again at its first opportunity.
    fn send_anew(&mut self, now: Nanos, sent: u64) {
        self.place = Place::default();
        if let Some(sending) = self.sending.take() {
            let left = sending.bits.saturating_sub(sent);
            self.sending = Some(self.sending_of(now, sending.packet, left));
        }
    }

    /// Dequeues the next packet, unless one is being transmitted.
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

    /// Puts a packet in flight. A packet that is not reordered arrives after all earlier ones.
    fn fly(&mut self, now: Nanos, packet: Charged<P>) {
        let mut at = now.saturating_add(packet.delay);
        if !packet.reorder {
            at = at.max(self.last);
            self.last = at;
        }
        self.counts.sent += 1;
        self.counts.sent_bytes += u64::from(packet.packet.length());
        self.flying_bytes += memory_of(&packet.packet);
        let place = self.flying.partition_point(|(one, ..)| *one <= at);
        let Charged { came, packet, .. } = packet;
        self.flying.insert(place, (at, came, packet));
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

/// Buffer size of a small packet.
const PACKET: u64 = 2048;
const SECOND: u128 = 1_000_000_000;

pub(crate) fn memory_of(packet: &impl Frame) -> u64 {
    u64::from(packet.length()).max(PACKET)
}

/// Transmission time of `bits`, rounded up to the next nanosecond.
fn time_of(bits: u64, bps: u64) -> Nanos {
    (u128::from(bits) * SECOND).div_ceil(u128::from(bps.max(1))).try_into().unwrap_or(Nanos::MAX)
}

/// Number of bits transmitted in `time`.
fn bits_in(time: Nanos, bps: u64) -> u64 {
    (u128::from(time) * u128::from(bps) / SECOND).try_into().unwrap_or(u64::MAX)
}
