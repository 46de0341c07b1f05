//! Messages of a running client's daemon.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crate::output::tell;

/// Maximum number of messages that wait.
const MAX_QUEUED: usize = 1024;
/// Timeout of the last messages at the end.
const TIMEOUT: Duration = Duration::from_secs(2);
/// A client causes messages: [`BURST`] of them are printed in an interval, as printk_ratelimit() does.
const INTERVAL: Duration = Duration::from_secs(5);
/// See [`INTERVAL`]. Up to 64 tenants have a few messages when they start.
const BURST: u32 = 512;

/// Prints messages on a thread of its own. The client shares the standard error, and can block
/// all writers of it.
pub(super) struct Log {
    queue: SyncSender<String>,
    done: Receiver<()>,
}

impl Log {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// Fails if there are too many threads.
    pub(super) fn start() -> std::io::Result<Self> {
        let (queue, messages) = sync_channel::<String>(MAX_QUEUED);
        let (over, done) = sync_channel(1);
        let print = move || {
            let mut limited = Limited::new(Instant::now());
            for line in messages {
                limited.print(&line, Instant::now(), tell);
            }
            limited.end(tell);
            // The log may not wait any more.
            let _ = over.send(());
        };
        std::thread::Builder::new().name("xsk-log".to_owned()).spawn(print)?;
        Ok(Self { queue, done })
    }

    /// Returns a function that prints a message. It does not block: messages are lost while the
    /// queue is full.
    pub(super) fn printer(&self) -> impl Fn(&str) + Send + 'static {
        let queue = self.queue.clone();
        move |line| drop(queue.try_send(format!("kaido: {line}")))
    }

    /// Waits for the messages that are queued, but not for a client that blocks them. All printers
    /// have to be dropped before.
    pub(super) fn end(self) {
        let Self { queue, done } = self;
        drop(queue);
        // Messages that are blocked are lost.
        let _ = done.recv_timeout(TIMEOUT);
    }
}

/// Messages of the current interval.
struct Limited {
    begin: Instant,
    printed: u32,
    suppressed: u64,
}

impl Limited {
    fn new(begin: Instant) -> Self {
        Self { begin, printed: 0, suppressed: 0 }
    }

    /// Prints a message, unless the interval has had too many.
    fn print(&mut self, line: &str, now: Instant, print: impl Fn(&str)) {
        if now.duration_since(self.begin) >= INTERVAL {
            self.end(&print);
            *self = Self::new(now);
        }
        if self.printed == BURST {
            self.suppressed += 1;
            return;
        }
        self.printed += 1;
        print(line);
    }

    /// Prints the number of suppressed messages.
    fn end(&self, print: impl Fn(&str)) {
        if self.suppressed > 0 {
            print(&format!("kaido: {} messages suppressed", self.suppressed));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn messages_of_an_interval_are_limited() {
        let printed = RefCell::new(Vec::new());
        let print = |line: &str| printed.borrow_mut().push(line.to_owned());
        let begin = Instant::now();
        let mut limited = Limited::new(begin);
        for number in 0..2 * BURST {
            limited.print(&number.to_string(), begin, print);
        }
        limited.print("next", begin + INTERVAL, print);
        limited.end(print);
        let printed = printed.into_inner();
        assert_eq!(printed.len(), BURST as usize + 2);
        let last = [&(BURST - 1).to_string(), "kaido: 512 messages suppressed", "next"];
        assert_eq!(printed[BURST as usize - 1..], last);
    }
}
