//! Seccomp filter of the sandbox process (seccomp(2)): an allowlist of the system calls that it
//! needs. Any other call kills the process.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Size, SeccompCmpOp as Compare,
    SeccompCondition as Condition, SeccompFilter, SeccompRule as Rule,
};

/// Stage of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Reading and compiling a program: memory may become executable.
    Load,
    /// Running the program: memory can no longer become executable, and no filter can be installed.
    Run,
}

/// The control socket and the doorbell.
const FILES: [u64; 2] = [0, 1];

/// Calls allowed with any arguments.
const PLAIN: &[i64] = &[
    libc::SYS_munmap,
    libc::SYS_mremap,
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

/// Calls allowed on the open descriptors.
const FILE_CALLS: &[i64] = &[libc::SYS_read, libc::SYS_write];

/// Calls allowed on the open descriptors with these flags, the fourth argument. Others, such as MSG_OOB,
/// reach code of the kernel that the process does not need.
const MESSAGE_CALLS: &[i64] = &[libc::SYS_recvfrom, libc::SYS_sendto];
const MESSAGE_FLAGS: u64 =
    (libc::MSG_PEEK | libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_WAITALL) as u64;

/// Operations of futex(2). Those with priority inheritance and requeuing are not needed.
const FUTEX: [u64; 4] = [
    libc::FUTEX_WAIT as u64,
    libc::FUTEX_WAKE as u64,
    libc::FUTEX_WAIT_BITSET as u64,
    libc::FUTEX_WAKE_BITSET as u64,
];
/// Flags of futex(2).
const FUTEX_FLAGS: u64 = (libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) as u64;

/// Advice on memory that the process may give. MADV_REMOVE would punch holes into the memory that it
/// shares with the client.
const ADVICE: [u64; 2] = [libc::MADV_DONTNEED as u64, libc::MADV_FREE as u64];

/// Calls allowed only while loading, with this first argument: they install the next filter.
/// (`membarrier`, which some machines need to publish code to other cores, is allowed in
/// [`compile`] with any arguments.)
const LOADING: &[(i64, u64)] = &[
    (libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER as u64),
    (libc::SYS_prctl, libc::PR_SET_NO_NEW_PRIVS as u64),
];

fn equal(argument: u8, value: u64) -> Result<Condition, seccompiler::BackendError> {
    Condition::new(argument, Size::Dword, Compare::Eq, value)
}

/// Compares some bits of an argument.
fn masked(argument: u8, bits: u64, value: u64) -> Result<Condition, seccompiler::BackendError> {
    Condition::new(argument, Size::Dword, Compare::MaskedEq(bits & 0xffff_ffff), value)
}

fn compile(stage: Stage) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<Rule>> = PLAIN.iter().map(|call| (*call, vec![])).collect();
    let of_files: Result<Vec<_>, _> =
        FILES.iter().map(|file| Rule::new(vec![equal(0, *file)?])).collect();
    let of_files = of_files?;
    rules.extend(FILE_CALLS.iter().map(|call| (*call, of_files.clone())));
    let of_messages: Result<Vec<_>, _> = FILES
        .iter()
        .map(|file| Rule::new(vec![equal(0, *file)?, masked(3, !MESSAGE_FLAGS, 0)?]))
        .collect();
    let of_messages = of_messages?;
    rules.extend(MESSAGE_CALLS.iter().map(|call| (*call, of_messages.clone())));
    let of_futex: Result<Vec<_>, _> = FUTEX
        .iter()
        .map(|operation| Rule::new(vec![masked(1, !FUTEX_FLAGS, *operation)?]))
        .collect();
    rules.insert(libc::SYS_futex, of_futex?);
    let of_advice: Result<Vec<_>, _> =
        ADVICE.iter().map(|advice| Rule::new(vec![equal(2, *advice)?])).collect();
    rules.insert(libc::SYS_madvise, of_advice?);
    // No memory group counts huge pages that are reserved.
    let small = || masked(3, libc::MAP_HUGETLB as u64, 0);
    match stage {
        Stage::Load => {
            for (call, first) in LOADING {
                rules.insert(*call, vec![Rule::new(vec![equal(0, *first)?])?]);
            }
            rules.extend([libc::SYS_membarrier, libc::SYS_mprotect].map(|call| (call, vec![])));
            rules.insert(libc::SYS_mmap, vec![Rule::new(vec![small()?])?]);
        }
        Stage::Run => {
            let data = || masked(2, libc::PROT_EXEC as u64, 0);
            rules.insert(libc::SYS_mmap, vec![Rule::new(vec![data()?, small()?])?]);
            rules.insert(libc::SYS_mprotect, vec![Rule::new(vec![data()?])?]);
        }
    }
    let machine = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::KillProcess, SeccompAction::Allow, machine)?.try_into()
}

/// Installs a filter for this thread. Installed filters stack: all of them have to allow a call.
///
/// # Errors
///
/// Fails if the kernel does not support seccomp filters, or not on this architecture.
pub(super) fn install(stage: Stage) -> Result<(), String> {
    let filter = compile(stage).map_err(|why| format!("a filter of system calls: {why}"))?;
    seccompiler::apply_filter(&filter).map_err(|why| format!("a filter of system calls: {why}"))
}

/// Installs the filter of a process that runs a program.
///
/// # Errors
///
/// Fails if the kernel does not support seccomp filters.
#[doc(hidden)]
pub fn filtered() -> Result<(), String> {
    install(Stage::Run)
}
