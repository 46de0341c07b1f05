//! The engine's thread goes before others where packets have their times: whoever is before it then makes
//! them late.

use emulator::Nanos;
use nix::errno::Errno;

/// Behind whatever else of this machine is in real time: the lowest such priority.
const LOWEST: libc::c_int = 1;
/// So long after the last such packet it is one of many again.
const AFTER: Nanos = 1_000_000_000;

/// Has timers of the calling thread end when they are to. 1 ms of sleep was 93 us too long at the median
/// with the slack in which the kernel looks for other timers, and is 43 us too long without.
pub(crate) fn end_slack() {
    // SAFETY: prctl(2) with PR_SET_TIMERSLACK takes a number, and is about the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
}

/// Whether the calling thread goes before others (`SCHED_FIFO`, as far as the system's limit on that).
///
/// A busy machine had 1 ms of sleep 3634 us too long at most, and 113 us for who goes before others. But
/// where packets have no times to leave at, it does better as one of many: it would be woken for each
/// packet alone (7 us of a processor in place of 5), where in its turn it finds several.
#[derive(Debug)]
pub(crate) struct Priority {
    state: State,
    /// When a packet had one last.
    last: Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ordinary,
    First,
    /// The system has refused, or others need the one processor that there is.
    Never,
}

impl Priority {
    /// As threads are.
    pub(crate) fn new() -> Self {
        let is_alone = std::thread::available_parallelism().is_ok_and(|count| count.get() == 1);
        Self { state: if is_alone { State::Never } else { State::Ordinary }, last: 0 }
    }

    /// Follows what the engine has to do: whether packets have their times to leave at.
    pub(crate) fn follow(&mut self, now: Nanos, has_times: bool) {
        if has_times {
            self.last = now;
        }
        match self.state {
            State::Ordinary if has_times => {
                self.state = match schedule(libc::SCHED_FIFO, LOWEST) {
                    Ok(()) => State::First,
                    Err(why) => {
                        tracing::warn!(
                            "the system does not let the engine go before other threads ({why}): \
                             packets are later where processors are busy"
                        );
                        State::Never
                    }
                };
            }
            State::First if now.saturating_sub(self.last) > AFTER => {
                self.state = match schedule(libc::SCHED_OTHER, 0) {
                    Ok(()) => State::Ordinary,
                    Err(_) => State::First,
                };
            }
            _ => {}
        }
    }

    /// When it is to be told again, if nothing happens.
    pub(crate) fn next(&self) -> Option<Nanos> {
        (self.state == State::First).then_some(self.last.saturating_add(AFTER + 1))
    }
}

/// Of the calling thread, not of those that it starts.
fn schedule(policy: libc::c_int, sched_priority: libc::c_int) -> nix::Result<()> {
    let parameter = libc::sched_param { sched_priority };
    let policy = policy | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameter lives until the call returns; 0 is the calling thread.
    let done = unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) };
    Errno::result(done).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> libc::c_int {
        // SAFETY: 0 is the calling thread.
        unsafe { libc::sched_getscheduler(0) & !libc::SCHED_RESET_ON_FORK }
    }

    #[test]
    fn a_thread_goes_first_while_packets_have_their_times() {
        let thread = std::thread::spawn(|| {
            let mut priority = Priority { state: State::Ordinary, last: 0 };
            priority.follow(1, false);
            assert_eq!((policy(), priority.next()), (libc::SCHED_OTHER, None));
            priority.follow(2, true);
            let first = match priority.state {
                State::First => libc::SCHED_FIFO,
                // Whoever runs this may not.
                _ => libc::SCHED_OTHER,
            };
            assert_eq!(policy(), first);
            priority.follow(2 + AFTER, false);
            assert_eq!(policy(), first);
            priority.follow(3 + AFTER, false);
            assert_eq!((policy(), priority.next()), (libc::SCHED_OTHER, None));
        });
        thread.join().expect("the thread's assertions hold");
        assert_eq!(policy(), libc::SCHED_OTHER);
    }

    #[test]
    fn the_one_processor_that_there_is_is_shared() {
        let mut priority = Priority { state: State::Never, last: 0 };
        priority.follow(1, true);
        assert_eq!((policy(), priority.state), (libc::SCHED_OTHER, State::Never));
    }
}
