//! What programs read of their tenant's VM: values under names, each with its time.

/// The most keys that a program reads.
pub const MAX_KEYS: usize = 64;
/// The most bytes of a key's name.
pub const MAX_NAME: usize = 63;

/// What [`GET_VM_INFO`](crate::object::helper::GET_VM_INFO) reads of a value.
pub mod part {
    /// The value; 0 if there is none.
    pub const VALUE: u64 = 0;
    /// 1 if it is fresh, else 0.
    pub const FRESH: u64 = 1;
    /// Nanoseconds since the VM counted it; all ones if it never did.
    pub const AGE: u64 = 2;
}

/// A value that a VM has published, on the clock of the machine on which the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The value.
    pub value: u64,
    /// When the VM counted it, in nanoseconds. Times before the clock's beginning wrap.
    pub at_ns: u64,
    /// When it is fresh no longer; 0: it is stale already.
    pub until_ns: u64,
}

impl Reading {
    /// A value that stays fresh, and is as old as that.
    pub fn fresh(value: u64, age_ns: u64, now_ns: u64) -> Self {
        Self { value, at_ns: now_ns.wrapping_sub(age_ns), until_ns: u64::MAX }
    }

    /// The same value, stale.
    #[must_use]
    pub fn stale(self) -> Self {
        Self { until_ns: 0, ..self }
    }

    /// Whether it is no older than it may be.
    pub fn is_fresh(&self, now_ns: u64) -> bool {
        now_ns < self.until_ns
    }

    /// How old it is, in nanoseconds; one from the future has just been counted.
    pub fn age_ns(&self, now_ns: u64) -> u64 {
        (now_ns.wrapping_sub(self.at_ns) as i64).max(0) as u64
    }
}

/// What [`GET_VM_INFO`](crate::object::helper::GET_VM_INFO) gives; 0 of a part that there is not.
pub fn get(reading: Option<Reading>, part: u64, now_ns: u64) -> u64 {
    match (reading, part) {
        (Some(reading), part::VALUE) => reading.value,
        (Some(reading), part::FRESH) => u64::from(reading.is_fresh(now_ns)),
        (Some(reading), part::AGE) => reading.age_ns(now_ns),
        (None, part::AGE) => u64::MAX,
        _ => 0,
    }
}

/// Whether this can be a key's name: letters, digits, and `.`, `-`, `_`, `:`, `/` and `@` between them.
pub fn is_name(name: &str) -> bool {
    let is_letter = |c: u8| c.is_ascii_alphanumeric() || b".-_:/@".contains(&c);
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_grow_old() {
        let one = Reading { value: 7, at_ns: 100, until_ns: 150 };
        let parts = |now| [part::VALUE, part::FRESH, part::AGE].map(|of| get(Some(one), of, now));
        assert_eq!(parts(100), [7, 1, 0]);
        assert_eq!(parts(149), [7, 1, 49]);
        assert_eq!(parts(150), [7, 0, 50]);
        assert_eq!(parts(99), [7, 1, 0], "clocks may have been read in another order");
        assert_eq!(get(None, part::AGE, 5), u64::MAX);
        assert_eq!(get(Some(one), 3, 100), 0);
        let before = Reading::fresh(1, 1000, 10);
        assert_eq!((before.age_ns(10), before.is_fresh(10)), (1000, true));
        assert!(!before.stale().is_fresh(0));
    }

    #[test]
    fn names_are_words() {
        assert!(is_name("net.eth0.utilisation") && is_name("a") && is_name("disk/by-id:3@x_y"));
        for wrong in ["", "a b", "ä", "a\0", &"a".repeat(64)] {
            assert!(!is_name(wrong), "{wrong:?}");
        }
    }
}
