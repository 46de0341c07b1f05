//! Values that programs read from their tenant's VM. Each has a key and a time.

/// Maximum number of keys that a program reads.
pub const MAX_KEYS: usize = 64;
/// Maximum length of a key in bytes.
pub const MAX_NAME: usize = 63;

/// Parts of a value that [`GET_VM_INFO`](crate::helper::GET_VM_INFO) can read.
pub mod part {
    /// The value; 0 if it does not exist.
    pub const VALUE: u64 = 0;
    /// 1 if the value is fresh, 0 otherwise.
    pub const FRESH: u64 = 1;
    /// Nanoseconds since the VM counted the value; all ones if it never did.
    pub const AGE: u64 = 2;
}

/// A value published by a VM. Times are of the clock of the machine that runs the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The value.
    pub value: u64,
    /// Time in nanoseconds at which the VM counted it. Times before the clock's epoch wrap around.
    pub at_ns: u64,
    /// Time in nanoseconds at which it becomes stale; 0 if it is already stale.
    pub until_ns: u64,
}

impl Reading {
    /// Creates a value of this age that never becomes stale.
    pub fn fresh(value: u64, age_ns: u64, now_ns: u64) -> Self {
        Self { value, at_ns: now_ns.wrapping_sub(age_ns), until_ns: u64::MAX }
    }

    /// Returns the same value, stale.
    #[must_use]
    pub fn stale(self) -> Self {
        Self { until_ns: 0, ..self }
    }

    /// Returns true if the value has not exceeded its maximum age.
    pub fn is_fresh(&self, now_ns: u64) -> bool {
        now_ns < self.until_ns
    }

    /// Returns the age in nanoseconds; 0 for a timestamp in the future.
    pub fn age_ns(&self, now_ns: u64) -> u64 {
        (now_ns.wrapping_sub(self.at_ns) as i64).max(0) as u64
    }
}

/// Returns the result of [`GET_VM_INFO`](crate::helper::GET_VM_INFO); 0 for an unknown
/// part.
pub fn get(reading: Option<Reading>, part: u64, now_ns: u64) -> u64 {
    match (reading, part) {
        (Some(reading), part::VALUE) => reading.value,
        (Some(reading), part::FRESH) => u64::from(reading.is_fresh(now_ns)),
        (Some(reading), part::AGE) => reading.age_ns(now_ns),
        (None, part::AGE) => u64::MAX,
        _ => 0,
    }
}

/// Returns true if the name is a valid key: 1 to [`MAX_NAME`] letters, digits or characters of
/// `.-_:/@`.
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
