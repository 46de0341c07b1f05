//! Real-time priority of the pump's thread: delays of the thread make packets late.

use emulator::Nanos;
use nix::errno::Errno;

/// The lowest real-time priority, below all other real-time threads of the machine.
const LOWEST: libc::c_int = 1;
/// More packets than this in one window are a high packet rate.
const MANY: usize = 50;
const WINDOW: Nanos = 10_000_000;
/// Hold time of an observation: every change of the priority is a system call.
const AFTER: Nanos = 1_000_000_000;

/// Disables timer slack for the calling thread. By default the kernel coalesces timers, which
/// delays them by up to 50 us.
pub(crate) fn end_slack() {
    // SAFETY: prctl(2) with PR_SET_TIMERSLACK takes a number and affects only the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
}

/// Scheduling policy of the calling thread: `SCHED_FIFO`, within the system's limits, or the
/// default.
///
/// On a busy machine other threads occupy the CPUs for milliseconds, which would delay
/// wakeups by as much. At a high rate of packets without deadlines the default policy performs
/// better: with real-time priority the thread would wake up for every single packet instead of for
/// several.
#[derive(Debug)]
pub(crate) struct Priority {
    state: State,
    /// Start of the window, and packets received in it.
    since: Nanos,
    came: usize,
    /// End of the hold times of a high packet rate and of pending deadlines.
    many_until: Nanos,
    timed_until: Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ordinary,
    First,
    /// The system has refused, or other threads need the only CPU.
    Never,
}

impl Priority {
    /// Starts with the default policy.
    pub(crate) fn new() -> Self {
        let is_alone = std::thread::available_parallelism().is_ok_and(|count| count.get() == 1);
        let state = if is_alone { State::Never } else { State::Ordinary };
        Self { state, since: 0, came: 0, many_until: 0, timed_until: 0 }
    }

    /// Updates the policy, given the number of packets received since the last call, and whether
    /// any packets have deadlines.
    pub(crate) fn follow(&mut self, now: Nanos, came: usize, has_times: bool) {
        self.came += came;
        if self.came > MANY {
            self.many_until = now + AFTER;
        }
        if has_times {
            self.timed_until = now + AFTER;
        }
        if self.came > MANY || now.saturating_sub(self.since) > WINDOW {
            (self.since, self.came) = (now, 0);
        }
        let goes_first = now < self.timed_until || now >= self.many_until;
        match self.state {
            State::Ordinary if goes_first => {
                self.state = match schedule(libc::SCHED_FIFO, LOWEST) {
                    Ok(()) => State::First,
                    Err(why) => {
                        tracing::warn!(
                            "the system does not let the emulator go before other threads ({why}): \
                             packets are later where processors are busy"
                        );
                        State::Never
                    }
                };
            }
            State::First if !goes_first => {
                self.state = match schedule(libc::SCHED_OTHER, 0) {
                    Ok(()) => State::Ordinary,
                    Err(_) => State::First,
                };
            }
            _ => {}
        }
    }
}

/// Sets the policy of the calling thread. Child threads do not inherit it.
fn schedule(policy: libc::c_int, sched_priority: libc::c_int) -> nix::Result<()> {
    let parameter = libc::sched_param { sched_priority };
    let policy = policy | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameter outlives the call; 0 is the calling thread.
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
    fn a_thread_goes_first_unless_many_packets_come_that_have_no_times() {
        let thread = std::thread::spawn(|| {
            let mut priority = Priority { state: State::Ordinary, ..Priority::new() };
            let mut is = |now, came, has_times, wanted| {
                priority.follow(now, came, has_times);
                // The user who runs the test may lack the permission.
                let wanted =
                    if priority.state == State::Never { libc::SCHED_OTHER } else { wanted };
                assert_eq!(policy(), wanted, "{now}");
            };
            is(1, 1, false, libc::SCHED_FIFO);
            is(2, MANY, false, libc::SCHED_OTHER);
            is(3, 0, false, libc::SCHED_OTHER);
            is(AFTER, 1, true, libc::SCHED_FIFO);
            is(AFTER + 3, MANY + 1, false, libc::SCHED_FIFO);
            is(2 * AFTER, MANY + 1, false, libc::SCHED_OTHER);
            is(3 * AFTER, 1, false, libc::SCHED_FIFO);
            // The same number of packets in a longer time.
            is(3 * AFTER + WINDOW + 1, MANY / 2, false, libc::SCHED_FIFO);
            is(3 * AFTER + 2 * WINDOW + 2, MANY / 2, false, libc::SCHED_FIFO);
        });
        thread.join().expect("the thread's assertions hold");
        assert_eq!(policy(), libc::SCHED_OTHER);
    }

    #[test]
    fn the_one_processor_that_there_is_is_shared() {
        let mut priority = Priority { state: State::Never, ..Priority::new() };
        priority.follow(1, 1, true);
        assert_eq!((policy(), priority.state), (libc::SCHED_OTHER, State::Never));
    }
}
