//! Parallel execution of per-node work on all CPUs.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Error;

/// Number of items that a thread processes between two progress reports.
const SHARE: usize = 8;

/// Calls `work` for 0, 1, … up to `count`, on one thread per CPU, and returns the results in order.
/// Calls `progress` from time to time with the number of completed items. After an error no further
/// items are started.
pub(crate) fn in_parallel<T: Send>(
    count: usize,
    work: impl Fn(usize) -> Result<T, Error> + Sync,
    mut progress: impl FnMut(usize),
) -> Result<Vec<T>, Error> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut results = Vec::with_capacity(count);
    while results.len() < count {
        let first = results.len();
        progress(first);
        let end = count.min(first + threads * SHARE);
        let next = AtomicUsize::new(first);
        let worker = || {
            let mut done = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= end {
                    return Ok(done);
                }
                done.push((at, work(at)?));
            }
        };
        let mut round = Vec::with_capacity(end - first);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
            let done = workers.into_iter().map(|one| one.join().expect("the work does not panic"));
            // Join all threads, even if the first one has failed.
            let done: Vec<Result<Vec<_>, Error>> = done.collect();
            done.into_iter().try_for_each(|done| done.map(|done| round.extend(done)))
        })?;
        round.sort_unstable_by_key(|(at, _)| *at);
        results.extend(round.into_iter().map(|(_, result)| result));
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_the_first_error_ends_it() {
        let mut heard = Vec::new();
        let squares = in_parallel(1000, |at| Ok(at * at), |done| heard.push(done)).unwrap();
        assert_eq!(squares, (0..1000).map(|at| at * at).collect::<Vec<_>>());
        assert!(heard.first() == Some(&0) && heard.is_sorted());
        let begun = AtomicUsize::new(0);
        let fails = |at: usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            if at == 10 { Err(Error::Cancelled) } else { Ok(()) }
        };
        assert!(matches!(in_parallel(1_000_000, fails, |_| ()), Err(Error::Cancelled)));
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        assert!(begun.into_inner() <= 11 + threads * SHARE);
    }
}
