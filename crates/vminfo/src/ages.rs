//! Age of values on the reader's clock.

use crate::publication::Publication;

/// A value with times of the reader's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aged {
    /// The value.
    pub value: u64,
    /// Time at which the value was sampled, in nanoseconds. It wraps if it is before the clock's
    /// origin.
    pub at_ns: u64,
    /// Time at which the value becomes stale; 0 if it is stale already.
    pub until_ns: u64,
}

impl Aged {
    /// Returns true if the value is fresh at this time.
    pub fn is_fresh(&self, now_ns: u64) -> bool {
        now_ns < self.until_ns
    }

    /// Returns the age of the value at this time, in nanoseconds.
    pub fn age_ns(&self, now_ns: u64) -> u64 {
        (now_ns.wrapping_sub(self.at_ns) as i64).max(0) as u64
    }
}

/// Times at which heartbeats were received.
#[derive(Debug, Clone, Default)]
pub struct Ages {
    last: Option<Heartbeat>,
    /// True if the last heartbeat was received while the reader was running.
    is_heard: bool,
}

/// A heartbeat as it was received.
#[derive(Debug, Clone, Copy)]
struct Heartbeat {
    /// Generation of the writer's keys.
    generation: u64,
    number: u64,
    /// The reader's time.
    heard_ns: u64,
}

impl Ages {
    /// Records a publication that was read at this time.
    pub fn hear(&mut self, said: &Publication, now_ns: u64) {
        match self.last {
            Some(last) if (last.generation, last.number) == (said.generation, said.beat) => {}
            before => {
                self.is_heard = before.is_some();
                let (generation, number) = (said.generation, said.beat);
                self.last = Some(Heartbeat { generation, number, heard_ns: now_ns });
            }
        }
    }

    /// Returns a value of the publication recorded last. None if it does not exist.
    pub fn of(&self, said: &Publication, name: &str) -> Option<Aged> {
        let heard_ns = self.last?.heard_ns;
        let entry = said.entries.iter().find(|entry| entry.name == name)?;
        // A time ahead of the writer's own clock is invalid: treat the value as just sampled.
        let before = said.now_ns.saturating_sub(entry.at_ns).min(i64::MAX as u64);
        let at_ns = heard_ns.wrapping_sub(before);
        let valid = u64::try_from(entry.valid.as_nanos()).unwrap_or(u64::MAX);
        let until_ns = match valid.checked_sub(before) {
            Some(left) if self.is_heard && !said.ended => heard_ns.saturating_add(left),
            _ => 0,
        };
        Some(Aged { value: entry.value?, at_ns, until_ns })
    }

    /// Returns true if a heartbeat was received while the reader was running.
    pub fn is_heard(&self) -> bool {
        self.is_heard
    }

    /// Returns the nanoseconds since the last heartbeat. None if none was received while the reader
    /// was running.
    pub fn silent_ns(&self, now_ns: u64) -> Option<u64> {
        let heard_ns = self.last.filter(|_| self.is_heard)?.heard_ns;
        Some(now_ns.saturating_sub(heard_ns))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Entry, Unit};

    fn said(beat: u64, now_ns: u64, at_ns: u64) -> Publication {
        let valid = Duration::from_nanos(100);
        let entry = Entry { name: "a".into(), unit: Unit::Number, value: Some(7), at_ns, valid };
        Publication { generation: 1, beat, now_ns, ended: false, entries: vec![entry] }
    }

    #[test]
    fn clocks_have_nothing_to_do_with_each_other() {
        let mut ages = Ages::default();
        let (first, second) = (said(1, 5_000_000, 4_999_980), said(2, 5_000_050, 5_000_020));
        ages.hear(&first, 10);
        // The age of the first heartbeat is unknown.
        let one = ages.of(&first, "a").unwrap();
        assert_eq!((one.value, one.is_fresh(10), ages.silent_ns(10)), (7, false, None));
        assert!(!ages.is_heard());
        ages.hear(&second, 90);
        assert!(ages.is_heard());
        let one = ages.of(&second, "a").unwrap();
        assert_eq!((one.age_ns(90), one.age_ns(100)), (30, 40));
        assert!(one.is_fresh(159) && !one.is_fresh(160));
        // An unchanged publication is not a heartbeat.
        ages.hear(&second, 500);
        assert_eq!(ages.of(&second, "a"), Some(one));
        assert_eq!(ages.silent_ns(500), Some(410));
        assert_eq!(ages.of(&second, "b"), None);
        // The value was stale on arrival.
        let old = said(3, 6_000_000, 5_000_000);
        ages.hear(&old, 510);
        assert!(!ages.of(&old, "a").unwrap().is_fresh(510));
    }

    #[test]
    fn values_of_an_ended_writer_are_stale() {
        let mut ages = Ages::default();
        ages.hear(&said(1, 100, 100), 10);
        let last = Publication { ended: true, ..said(2, 200, 200) };
        ages.hear(&last, 20);
        let one = ages.of(&last, "a").unwrap();
        assert_eq!((one.value, one.is_fresh(20), one.age_ns(25)), (7, false, 5));
        let none =
            Publication { entries: vec![Entry { value: None, ..last.entries[0].clone() }], ..last };
        assert_eq!(ages.of(&none, "a"), None);
    }

    #[test]
    fn no_time_is_too_strange() {
        for (now_ns, at_ns) in [(0, u64::MAX), (u64::MAX, 0), (0, 0), (u64::MAX, u64::MAX)] {
            let mut ages = Ages::default();
            ages.hear(&said(1, 0, 0), 5);
            let mut strange = said(2, now_ns, at_ns);
            strange.entries[0].valid = Duration::from_nanos(u64::MAX);
            ages.hear(&strange, u64::MAX);
            let one = ages.of(&strange, "a").unwrap();
            let _ = (one.age_ns(0), one.is_fresh(u64::MAX));
        }
    }
}
