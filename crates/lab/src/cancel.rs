//! Cancellation of long operations, for example by Ctrl-C.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::Error;

/// A flag that long operations check between their steps.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<(Mutex<bool>, Condvar)>);

impl Cancel {
    /// Requests cancellation.
    pub fn cancel(&self) {
        let (cancelled, changed) = &*self.0;
        *cancelled.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
    }

    /// Returns an error once cancellation has been requested.
    pub fn check(&self) -> Result<(), Error> {
        self.wait(Duration::ZERO)
    }

    /// Waits for the duration. Returns an error as soon as cancellation has been requested.
    pub fn wait(&self, duration: Duration) -> Result<(), Error> {
        let (cancelled, changed) = &*self.0;
        let guard = cancelled.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(guard, duration, |cancelled| !*cancelled);
        let (cancelled, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *cancelled { Err(Error::Cancelled) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_cancellation() {
        let cancel = Cancel::default();
        cancel.wait(Duration::from_millis(1)).unwrap();
        let waiting = cancel.clone();
        let thread = std::thread::spawn(move || waiting.wait(Duration::from_secs(3600)));
        cancel.cancel();
        assert!(matches!(thread.join().unwrap(), Err(Error::Cancelled)));
        assert!(matches!(cancel.check(), Err(Error::Cancelled)));
    }
}
