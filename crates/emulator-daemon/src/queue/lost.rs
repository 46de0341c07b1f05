//! Packets lost because a netfilter queue was full.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// The kernel's statistics of the netfilter queues of a network namespace.
pub(super) struct Lost(Option<File>);

impl Lost {
    /// Opens the statistics of the calling thread's namespace. The file remains bound to it.
    pub(super) fn open() -> Self {
        let path = "/proc/thread-self/net/netfilter/nfnetlink_queue";
        let opened = File::open(path).inspect_err(|error| {
            tracing::warn!("packets that find a queue full are not counted: {path}: {error}");
        });
        Self(opened.ok())
    }

    /// Returns the number of packets lost at these queues because the queue or the socket was full.
    pub(super) fn of(&self, queues: impl IntoIterator<Item = u16> + Clone) -> u64 {
        let Some(file) = &self.0 else { return 0 };
        let (mut all, mut part) = (Vec::new(), [0; 4096]);
        // The kernel returns one page at a time, which holds about eighty queues.
        while let Ok(length @ 1..) = file.read_at(&mut part, all.len() as u64) {
            all.extend_from_slice(&part[..length]);
        }
        let text = String::from_utf8_lossy(&all);
        text.lines()
            .filter_map(read)
            .filter(|(number, _)| queues.clone().into_iter().any(|queue| queue == *number))
            .map(|(_, lost)| lost)
            .sum()
    }
}

/// Parses a queue's number and its number of lost packets. Columns: number, port, backlog, copy
/// mode, copy range, packets dropped at a full queue, packets dropped at a full socket, last packet
/// id, 1.
fn read(line: &str) -> Option<(u16, u64)> {
    let mut words = line.split_ascii_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut lost = words.skip(4).map_while(|word| word.parse::<u64>().ok());
    Some((number, lost.next()? + lost.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_loss_are_read() {
        let line = "  100  31024     3 2 65531    17     5   123456  1";
        assert_eq!(read(line), Some((100, 22)));
        assert_eq!(read("  100  31024     3 2 65531    17"), None);
        assert_eq!(read(""), None);
    }
}
