//! Digests of a program for the control plane.

use std::collections::VecDeque;
use std::time::Instant;

use p4_object::cells::{Color, MeterCell, Rates};

use sandbox_queue::ProtocolViolation;

use super::{Sandbox, State};
use crate::digests::Digest;
use crate::process::policy::Config;

/// Maximum number of digests that have not been fetched.
const WAITING: usize = 1024;
/// Maximum number of digests taken per poll, which bounds the delay of verdicts.
const AT_ONCE: u32 = 64;

/// Digest state of a program.
#[derive(Debug)]
pub(super) struct Digests {
    /// Size of each digest in bytes, by id.
    sizes: Vec<u32>,
    waiting: VecDeque<Digest>,
    /// Rate limit.
    rate: MeterCell,
    since: Instant,
    /// Lost digests as last reported by the process.
    lost: u32,
}

impl Digests {
    pub(super) fn new(config: &Config, digests: &[p4_object::Digest]) -> Self {
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

    /// Resets the state for a new process.
    pub(super) fn begin(&mut self, digests: &[p4_object::Digest]) {
        self.sizes = digests.iter().map(|digest| digest.size).collect();
        self.lost = 0;
    }

    /// Discards pending digests, because their ids may differ in another program.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }
}

impl Sandbox {
    /// Takes pending digests, oldest first. Digests that have not been fetched before a new version
    /// takes over are discarded.
    pub fn digests(&mut self) -> Vec<Digest> {
        self.digests.waiting.drain(..).collect()
    }

    /// Takes digests from the ring and validates them. Excess digests are counted and dropped.
    pub(super) fn collect_digests(&mut self) -> Result<(), ProtocolViolation> {
        let State::Running(peer) = &mut self.state else { return Ok(()) };
        let new = peer.notices.digests().ok_or(ProtocolViolation::Digest)?.min(AT_ONCE);
        let (digests, counters) = (&mut self.digests, &mut self.counters);
        // The counter wraps. A false value only affects the tenant's own statistics.
        let lost = peer.notices.lost_digests();
        let more = u64::from(lost.wrapping_sub(digests.lost));
        counters.lost_digests = counters.lost_digests.saturating_add(more);
        digests.lost = lost;
        if new == 0 {
            return Ok(());
        }
        let now = u64::try_from(digests.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        for _ in 0..new {
            let (id, length, bytes) = peer.notices.take_digest();
            let size = digests.sizes.get(id as usize).filter(|size| **size == length);
            let data = size
                .and_then(|size| bytes.get(..*size as usize))
                .ok_or(ProtocolViolation::Digest)?;
            counters.digests += 1;
            let is_much = digests.rate.execute(now, 1, Color::Green) != Color::Green;
            if is_much || digests.waiting.len() >= WAITING {
                counters.excess_digests += 1;
                continue;
            }
            digests.waiting.push_back(Digest { id, data: data.to_vec() });
        }
        peer.notices.took_digests();
        Ok(())
    }
}
