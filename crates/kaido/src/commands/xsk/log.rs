//! Messages of a running client's daemon.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use crate::output::tell;

/// Maximum number of messages that wait.
const MAX_QUEUED: usize = 1024;
/// Timeout of the last messages at the end.
const TIMEOUT: Duration = Duration::from_secs(2);

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
            messages.into_iter().for_each(|line| tell(&line));
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
