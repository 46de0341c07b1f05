//! Packets that were to come by a netfilter queue, and for which there was no room.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// What the kernel says of the queues of a network namespace.
pub(super) struct Lost(Option<File>);

impl Lost {
    /// Of the calling thread's: the file stays its.
    pub(super) fn open() -> Self {
        let path = "/proc/thread-self/net/netfilter/nfnetlink_queue";
        let opened = File::open(path).inspect_err(|error| {
            tracing::warn!("packets that find a queue full are not counted: {path}: {error}");
        });
        Self(opened.ok())
    }

    /// Those of some queues: the queue was full, or the socket.
    pub(super) fn of(&self, queues: impl IntoIterator<Item = u16> + Clone) -> u64 {
        let Some(file) = &self.0 else { return 0 };
        let (mut all, mut part) = (Vec::new(), [0; 4096]);
        // The kernel gives a page at a time, which some eighty queues fill.
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

/// A queue's number, and how many were lost. The columns: number, port, waiting, mode, range, dropped since the
/// queue was full, dropped since the socket was, the last packet, 1.
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
