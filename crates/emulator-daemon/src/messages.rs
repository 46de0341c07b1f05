//! Batched reception of messages.

use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;

/// Receives up to `messages.len()` available messages without blocking: recvmmsg(2).
///
/// # Safety
///
/// Every pointer in `messages` must refer to memory of the length given with it, which must not be
/// accessed otherwise until the call returns.
pub(crate) unsafe fn receive(fd: &OwnedFd, messages: &mut [libc::mmsghdr]) -> nix::Result<usize> {
    // SAFETY: the length matches the slice; the caller guarantees that its pointers are valid.
    let count = unsafe {
        libc::recvmmsg(
            fd.as_raw_fd(),
            messages.as_mut_ptr(),
            messages.len() as u32,
            libc::MSG_DONTWAIT as _,
            std::ptr::null_mut(),
        )
    };
    Errno::result(count).map(|count| count as usize)
}

/// Maximum number of messages to receive at once.
pub(crate) const BATCH: usize = 64;
/// Number of packets after which the next batch is smaller. A message can have 1,500 datagrams
/// (UDP_SEGMENT), and other gates wait for the whole batch.
const MOST_PACKETS: u64 = 256;

/// Number of messages of the next batch.
#[derive(Debug)]
pub(crate) struct BatchSize {
    now: usize,
    most: usize,
}

impl Default for BatchSize {
    fn default() -> Self {
        Self { now: BATCH, most: BATCH }
    }
}

impl BatchSize {
    pub(crate) fn get(&self) -> usize {
        self.now
    }

    /// Limits the size for packets of which the network makes this number of copies each.
    pub(crate) fn limit(&mut self, copies: usize) {
        self.most = (MOST_PACKETS as usize / copies.max(1)).clamp(1, BATCH);
        self.now = self.now.min(self.most);
    }

    /// Follows the number of packets of the last batch.
    pub(crate) fn follow(&mut self, packets: u64) {
        self.now = match packets > MOST_PACKETS {
            true => (self.now as u64 * MOST_PACKETS / packets).max(1) as usize,
            false => (2 * self.now).min(self.most),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_many_packets_come_in_small_batches() {
        let mut size = BatchSize::default();
        size.follow(64);
        assert_eq!(size.get(), BATCH);
        size.follow(64 * 120);
        assert_eq!(size.get(), 2);
        size.follow(2 * 1500);
        assert_eq!(size.get(), 1);
        size.follow(1500);
        assert_eq!(size.get(), 1);
        for _ in 0..6 {
            size.follow(1);
        }
        assert_eq!(size.get(), BATCH);
        // A switch copies each packet to all its ports.
        for (copies, most) in [(0, BATCH), (4, BATCH), (100, 2), (1000, 1)] {
            size.limit(copies);
            size.follow(1);
            assert_eq!(size.get(), most, "{copies}");
        }
    }
}
