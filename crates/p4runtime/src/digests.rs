//! Digest lists for the primary ("DigestEntry"): collects values, and suppresses duplicates until
//! the list is acknowledged. Time is a parameter.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::data::Data;
use crate::v1::digest_entry::Config;

/// Maximum list size, independent of the client's configuration.
const MAX_LEN: usize = 4096;

/// Maximum number of remembered values per digest. Further values are dropped.
const MAX_KNOWN: usize = 65_536;

/// Maximum memory of the remembered values per digest in bytes. Further values are dropped.
const MAX_BYTES: usize = 16 << 20;

#[derive(Debug, Default)]
pub(crate) struct Digests {
    of: BTreeMap<u32, Digest>,
    lists: u64,
    /// Number of values dropped because of a limit.
    dropped: u64,
}

/// Memory of a remembered value: one that is known, and one that is pending or sent.
fn memory(data: &Data) -> usize {
    2 * data.memory()
}

#[derive(Debug, Default)]
struct Digest {
    waiting: Vec<Data>,
    /// Time of the oldest pending value.
    since: Option<Instant>,
    /// Sent lists that have not been acknowledged.
    sent: BTreeMap<u64, (Instant, Vec<Data>)>,
    /// Values that are pending or unacknowledged.
    known: BTreeSet<Data>,
    /// Memory of these values in bytes.
    bytes: usize,
}

/// A digest list to send.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) digest: u32,
    pub(crate) list: u64,
    pub(crate) data: Vec<Data>,
}

fn time(ns: i64) -> Duration {
    Duration::from_nanos(u64::try_from(ns).unwrap_or(0))
}

impl Digests {
    /// Discards everything after a change of the program or of the primary.
    pub(crate) fn clear(&mut self) {
        self.of.clear();
    }

    /// Adds a value; returns a list if it is complete.
    pub(crate) fn add(
        &mut self,
        id: u32,
        data: Data,
        config: &Config,
        now: Instant,
    ) -> Option<List> {
        let digest = self.of.entry(id).or_default();
        digest.expire(time(config.ack_timeout_ns), now);
        if digest.known.contains(&data) {
            return None;
        }
        let bytes = digest.bytes + memory(&data);
        if digest.known.len() >= MAX_KNOWN || bytes > MAX_BYTES {
            self.dropped += 1;
            return None;
        }
        digest.bytes = bytes;
        digest.known.insert(data.clone());
        digest.waiting.push(data);
        digest.since.get_or_insert(now);
        let longest = match usize::try_from(config.max_list_size) {
            Ok(size @ 1..) => size.min(MAX_LEN),
            _ => MAX_LEN,
        };
        let whole = digest.waiting.len() >= longest || config.max_timeout_ns == 0;
        whole.then(|| self.take(id, config, now)).flatten()
    }

    /// Takes the pending values of a digest as a list.
    fn take(&mut self, id: u32, config: &Config, now: Instant) -> Option<List> {
        let digest = self.of.get_mut(&id)?;
        digest.since = None;
        let data = std::mem::take(&mut digest.waiting);
        if data.is_empty() {
            return None;
        }
        self.lists += 1;
        if config.ack_timeout_ns > 0 {
            digest.sent.insert(self.lists, (now, data.clone()));
        } else {
            digest.forget(&data);
        }
        Some(List { digest: id, list: self.lists, data })
    }

    /// Number of values dropped because of a limit since the last call.
    pub(crate) fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    /// Lists with an elapsed `max_timeout_ns`.
    pub(crate) fn due(&mut self, configs: &BTreeMap<u32, Config>, now: Instant) -> Vec<List> {
        let ids: Vec<u32> = self.of.keys().copied().collect();
        let mut due = Vec::new();
        for id in ids {
            let Some(config) = configs.get(&id) else {
                self.of.remove(&id);
                continue;
            };
            let since = self.of.get(&id).and_then(|digest| digest.since);
            if since.is_some_and(|since| now.duration_since(since) >= time(config.max_timeout_ns)) {
                due.extend(self.take(id, config, now));
            }
        }
        due
    }

    /// Time of the next timeout.
    pub(crate) fn next(&self, configs: &BTreeMap<u32, Config>) -> Option<Instant> {
        let due = |(id, digest): (&u32, &Digest)| {
            digest.since?.checked_add(time(configs.get(id)?.max_timeout_ns))
        };
        self.of.iter().filter_map(due).min()
    }

    /// Acknowledges a list. Returns false if it was not pending.
    pub(crate) fn acknowledge(&mut self, id: u32, list: u64) -> bool {
        let Some(digest) = self.of.get_mut(&id) else { return false };
        let sent = digest.sent.remove(&list);
        sent.inspect(|(_, data)| digest.forget(data)).is_some()
    }
}

impl Digest {
    fn forget(&mut self, data: &[Data]) {
        for one in data {
            if self.known.remove(one) {
                self.bytes -= memory(one);
            }
        }
    }

    /// Discards lists after the timeout of their acknowledgement.
    fn expire(&mut self, after: Duration, now: Instant) {
        while let Some(oldest) = self.sent.first_entry()
            && now.duration_since(oldest.get().0) >= after
        {
            let (_, data) = oldest.remove();
            self.forget(&data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(number: u8) -> Data {
        Data::Bits(vec![number].into())
    }

    const CONFIG: Config =
        Config { max_timeout_ns: 1_000_000, max_list_size: 3, ack_timeout_ns: 5_000_000 };

    #[test]
    fn lists_are_sent_when_they_are_long_or_old_enough() {
        let (mut digests, start) = (Digests::default(), Instant::now());
        let configs = BTreeMap::from([(1, CONFIG)]);
        assert_eq!(digests.add(1, value(1), &CONFIG, start), None);
        assert_eq!(digests.add(1, value(2), &CONFIG, start), None);
        let whole = digests.add(1, value(3), &CONFIG, start).unwrap();
        assert_eq!(whole, List { digest: 1, list: 1, data: vec![value(1), value(2), value(3)] });
        assert_eq!(digests.next(&configs), None);

        assert_eq!(digests.add(1, value(4), &CONFIG, start), None);
        let due = start + Duration::from_millis(1);
        assert_eq!(digests.next(&configs), Some(due));
        assert_eq!(digests.due(&configs, start), []);
        assert_eq!(digests.due(&configs, due), [List { digest: 1, list: 2, data: vec![value(4)] }]);
    }

    #[test]
    fn nothing_is_sent_twice_before_it_is_acknowledged_or_old() {
        let (mut digests, start) = (Digests::default(), Instant::now());
        let config = Config { max_list_size: 1, ..CONFIG };
        let first = digests.add(1, value(1), &config, start).unwrap();
        assert_eq!(digests.add(1, value(1), &config, start), None);
        assert!(digests.acknowledge(1, first.list));
        assert!(!digests.acknowledge(1, first.list), "once");
        assert!(!digests.acknowledge(2, first.list), "of another digest");
        assert!(digests.add(1, value(1), &config, start).is_some());
        assert_eq!(digests.add(1, value(1), &config, start + Duration::from_millis(4)), None);
        assert!(digests.add(1, value(1), &config, start + Duration::from_millis(5)).is_some());
    }

    #[test]
    fn known_digests_are_bounded() {
        let (mut digests, start) = (Digests::default(), Instant::now());
        let config = Config { max_list_size: i32::MAX, ..CONFIG };
        let mut sent = 0;
        for number in 0..100_000_u32 {
            let data = Data::Bits(number.to_be_bytes().to_vec().into());
            sent += digests.add(1, data, &config, start).map_or(0, |list| list.data.len());
        }
        assert_eq!(sent, MAX_KNOWN);
        assert_eq!(digests.of[&1].known.len(), MAX_KNOWN);
        assert_eq!(digests.take_dropped(), 100_000 - MAX_KNOWN as u64);
    }

    #[test]
    fn known_digests_are_bounded_in_bytes() {
        let (mut digests, start) = (Digests::default(), Instant::now());
        let config = Config { max_list_size: 100, ..CONFIG };
        let mut lists = Vec::new();
        for number in 0..1000_u32 {
            let data = Data::Bits([&number.to_be_bytes()[..], &[7; 64 << 10]].concat().into());
            lists.extend(digests.add(1, data, &config, start).map(|list| list.list));
        }
        let bytes: usize = digests.of[&1].known.iter().map(memory).sum();
        assert!(bytes <= MAX_BYTES && bytes > MAX_BYTES / 2, "{bytes} bytes");
        assert_eq!((digests.of[&1].bytes, digests.of[&1].known.len()), (bytes, 127));
        assert_eq!(digests.take_dropped(), 1000 - 127);
        assert_eq!(digests.take_dropped(), 0);
        // An acknowledged list makes room.
        assert!(digests.acknowledge(1, lists[0]));
        assert_eq!(digests.of[&1].known.len(), 27);
        digests.add(1, value(1), &config, start);
        assert_eq!(digests.take_dropped(), 0);
    }
}
