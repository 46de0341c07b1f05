//! The system calls of a tenant's process (seccomp(2)): those without which it could not run. Any other
//! one kills it.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Size, SeccompCmpOp as Compare,
    SeccompCondition as Condition, SeccompFilter, SeccompRule as Rule,
};

/// How far a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It reads a program and compiles it: memory may become code.
    Load,
    /// It runs the program: no memory becomes code any more, and no filter goes.
    Run,
}

/// The control socket and the bell.
const FILES: [u64; 2] = [0, 1];

/// Calls that need no look at what they are given.
const PLAIN: &[i64] = &[
    libc::SYS_futex,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_sched_yield,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_getrandom,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// What is read and written, of files that are there.
const FILE_CALLS: &[i64] = &[libc::SYS_read, libc::SYS_write, libc::SYS_recvfrom, libc::SYS_sendto];

/// Only before a program runs, with this as the first argument: code for other cores on some machines,
/// and the next filter.
const LOADING: &[(i64, u64)] = &[
    (libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER as u64),
    (libc::SYS_prctl, libc::PR_SET_NO_NEW_PRIVS as u64),
];

fn equal(argument: u8, value: u64) -> Result<Condition, seccompiler::BackendError> {
    Condition::new(argument, Size::Dword, Compare::Eq, value)
}

fn compile(stage: Stage) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<Rule>> = PLAIN.iter().map(|call| (*call, vec![])).collect();
    let of_files: Result<Vec<_>, _> =
        FILES.iter().map(|file| Rule::new(vec![equal(0, *file)?])).collect();
    let of_files = of_files?;
    rules.extend(FILE_CALLS.iter().map(|call| (*call, of_files.clone())));
    match stage {
        Stage::Load => {
            for (call, first) in LOADING {
                rules.insert(*call, vec![Rule::new(vec![equal(0, *first)?])?]);
            }
            let any = [libc::SYS_membarrier, libc::SYS_mmap, libc::SYS_mprotect];
            rules.extend(any.map(|call| (call, vec![])));
        }
        Stage::Run => {
            let exec = Compare::MaskedEq(libc::PROT_EXEC as u64);
            let plain = Rule::new(vec![Condition::new(2, Size::Dword, exec, 0)?])?;
            rules.extend(
                [libc::SYS_mmap, libc::SYS_mprotect].map(|call| (call, vec![plain.clone()])),
            );
        }
    }
    let machine = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::KillProcess, SeccompAction::Allow, machine)?.try_into()
}

/// Filters this thread's calls from now on. A filter that is there stays: both have to allow a call.
///
/// # Errors
///
/// The kernel has none, or not for this machine.
pub(super) fn install(stage: Stage) -> Result<(), String> {
    let filter = compile(stage).map_err(|why| format!("a filter of system calls: {why}"))?;
    seccompiler::apply_filter(&filter).map_err(|why| format!("a filter of system calls: {why}"))
}

/// Filters this thread's calls as those of a process that runs a program.
///
/// # Errors
///
/// The kernel has no such filter.
#[doc(hidden)]
pub fn filtered() -> Result<(), String> {
    install(Stage::Run)
}
