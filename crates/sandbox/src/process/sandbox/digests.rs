//! What programs have for the control plane.

use std::collections::VecDeque;
use std::time::Instant;

use p4::cells::{Colour, MeterCell, Rates};

use super::{Lie, Sandbox, State};
use crate::digests::Digest;
use crate::process::policy::Config;

/// Digests that wait to be fetched, at most.
const WAITING: usize = 1024;
/// Digests that are taken at one look, at most: verdicts are not to wait for them.
const AT_ONCE: u32 = 64;

/// What is known of a program's digests.
#[derive(Debug)]
pub(super) struct Digests {
    /// The bytes of each, by its id.
    sizes: Vec<u32>,
    waiting: VecDeque<Digest>,
    /// How many the program may send.
    rate: MeterCell,
    since: Instant,
    /// What the process says of those that it lost, when it was looked at last.
    lost: u32,
}

impl Digests {
    pub(super) fn new(config: &Config, digests: &[p4::object::Digest]) -> Self {
        let (rate, burst) = (config.digests.rate.into(), config.digests.burst.into());
        let rates = Rates { cir: rate, cburst: burst, pir: rate, pburst: burst };
        let mut all = Self {
            sizes: Vec::new(),
            waiting: VecDeque::new(),
            rate: MeterCell::set(Some(rates)),
            since: Instant::now(),
            lost: 0,
        };
        all.begin(digests);
        all
    }

    /// Another process begins.
    pub(super) fn begin(&mut self, digests: &[p4::object::Digest]) {
        self.sizes = digests.iter().map(|digest| digest.size).collect();
        self.lost = 0;
    }

    /// Another program: the ids of what waits mean something else.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }
}

impl Sandbox {
    /// Fetches what the program has for the control plane, oldest first. Another version of it begins
    /// anew: what nobody has fetched before it took over is gone.
    pub fn digests(&mut self) -> Vec<Digest> {
        self.digests.waiting.drain(..).collect()
    }

    /// Takes the digests that there are, or says what is wrong with them. What is too much is counted.
    pub(super) fn collect_digests(&mut self) -> Result<(), Lie> {
        let State::Running(peer) = &mut self.state else { return Ok(()) };
        let new = peer.rings.digests().ok_or(Lie::Digest)?.min(AT_ONCE);
        let (digests, counters) = (&mut self.digests, &mut self.counters);
        // A number that goes back has gone around, or is a lie that nobody minds.
        let lost = peer.rings.lost_digests();
        let more = u64::from(lost.wrapping_sub(digests.lost));
        counters.lost_digests = counters.lost_digests.saturating_add(more);
        digests.lost = lost;
        if new == 0 {
            return Ok(());
        }
        let now = u64::try_from(digests.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        for _ in 0..new {
            let (id, length, bytes) = peer.rings.take_digest();
            let size = digests.sizes.get(id as usize).filter(|size| **size == length);
            let data = size.and_then(|size| bytes.get(..*size as usize)).ok_or(Lie::Digest)?;
            counters.digests += 1;
            let is_much = digests.rate.execute(now, 1, Colour::Green) != Colour::Green;
            if is_much || digests.waiting.len() >= WAITING {
                counters.excess_digests += 1;
                continue;
            }
            digests.waiting.push_back(Digest { id, data: data.to_vec() });
        }
        peer.rings.took_digests();
        Ok(())
    }
}
