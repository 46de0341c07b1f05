//! Tokio, signals, and blocking work that can be cancelled.

use std::future::Future;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;

/// Runs a future on a single-threaded runtime.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        // After 61 polls, the default, sockets of other clients would be read too late if some clients
        // always have data.
        .event_interval(8)
        .enable_all()
        .build()
        .map_err(Failure::failed)?;
    Ok(runtime.block_on(future))
}

/// Completes when the process is asked to end: by Ctrl-C, SIGTERM or SIGHUP.
pub(crate) async fn asked_to_end() {
    listen().await;
}

/// Completes when the reader of standard output has gone (`| head`), or the process is asked to
/// end. Ends commands that otherwise run forever.
pub(crate) async fn nobody_watches() {
    const LOOK: Duration = Duration::from_millis(200);
    let reader_gone = async {
        while !is_closed(std::io::stdout().as_fd()) {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::select! {
        () = asked_to_end() => {}
        () = reader_gone => {}
    }
}

/// Returns true if this is a pipe or a socket with a closed peer.
fn is_closed(output: std::os::fd::BorrowedFd<'_>) -> bool {
    let mut looked_at = [PollFd::new(output, PollFlags::empty())];
    let closed = PollFlags::POLLERR | PollFlags::POLLHUP;
    poll(&mut looked_at, PollTimeout::ZERO).is_ok()
        && looked_at[0].revents().is_some_and(|seen| seen.intersects(closed))
}

/// Installs signal handlers immediately; needs a runtime. The future completes with the first
/// signal.
pub(crate) fn listen() -> impl Future<Output = ()> + Send {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let signals = kinds.map(signal);
    async move {
        let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = signals else {
            // Without handlers the signals terminate the process anyway.
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// Runs blocking work that polls `cancel`, which is set when the process is asked to end. The work
/// then cleans up and returns.
pub(crate) fn cancellable<T: Send>(
    cancel: &lab::Cancel,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(Failure::failed)?;
    let watched = cancel.clone();
    let asked = {
        let _context = runtime.enter();
        listen()
    };
    runtime.spawn(async move {
        asked.await;
        watched.cancel();
    });
    let done = work();
    runtime.shutdown_background();
    Ok(done)
}
