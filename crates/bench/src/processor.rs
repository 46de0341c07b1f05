//! CPUs of threads.

/// Pins a thread to one CPU; 0 is the calling thread.
pub(crate) fn keep_on(thread: i32, processor: usize) -> anyhow::Result<()> {
    let mut one = nix::sched::CpuSet::new();
    one.set(processor)?;
    Ok(nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(thread), &one)?)
}
