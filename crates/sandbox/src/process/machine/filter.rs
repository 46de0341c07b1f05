//! Seccomp filter of QEMU (seccomp(2)), in addition to its own (`-sandbox`): a list of denied calls,
//! since those that it needs differ between versions.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen as Size, SeccompCmpOp as Compare,
    SeccompCondition as Condition, SeccompFilter, SeccompRule as Rule,
};

/// Denied calls.
const DENIED: &[i64] = &[
    // Connections: sockets are those that QEMU has inherited.
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    // Parts of the kernel with many errors, which QEMU does not need.
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    // Other processes, namespaces and mounts.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_pidfd_open,
    libc::SYS_process_madvise,
    libc::SYS_open_by_handle_at,
];

/// Calls that are denied if bits of an argument have this value: call, argument, bits, value. They punch
/// holes into the memory that QEMU shares with the client, take huge pages, which no memory group counts,
/// or keep QEMU when its parent ends.
const DENIED_WITH: &[(i64, u8, u64, u64)] = &[
    (libc::SYS_madvise, 2, 0xffff_ffff, libc::MADV_REMOVE as u64),
    (libc::SYS_fallocate, 1, libc::FALLOC_FL_PUNCH_HOLE as u64, libc::FALLOC_FL_PUNCH_HOLE as u64),
    (libc::SYS_mmap, 3, libc::MAP_HUGETLB as u64, libc::MAP_HUGETLB as u64),
    (libc::SYS_memfd_create, 1, libc::MFD_HUGETLB as u64, libc::MFD_HUGETLB as u64),
    (libc::SYS_prctl, 0, 0xffff_ffff, libc::PR_SET_PDEATHSIG as u64),
    (libc::SYS_shmget, 2, libc::SHM_HUGETLB as u64, libc::SHM_HUGETLB as u64),
];

/// Bit of the numbers of the x32 ABI, which has the same architecture (asm/unistd.h).
const X32: i64 = 0x4000_0000;

/// Installs the filter. It stays when the process becomes QEMU.
///
/// # Errors
///
/// Fails if the kernel does not support seccomp filters.
pub(super) fn install() -> Result<(), String> {
    let failed = |why: &dyn std::fmt::Display| format!("a filter of system calls: {why}");
    let numbers = |call: &i64| [*call, X32 | *call];
    let mut rules: BTreeMap<i64, _> =
        DENIED.iter().flat_map(numbers).map(|call| (call, vec![])).collect();
    for (call, argument, bits, value) in DENIED_WITH {
        let rule = rule(*argument, *bits, *value).map_err(|why| failed(&why))?;
        rules.extend(numbers(call).map(|call| (call, vec![rule.clone()])));
    }
    let machine = std::env::consts::ARCH.try_into().map_err(|why| failed(&why))?;
    let denied = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, machine);
    let filter: Result<BpfProgram, _> = filter.and_then(TryInto::try_into);
    let filter = filter.map_err(|why| failed(&why))?;
    seccompiler::apply_filter(&filter).map_err(|why| failed(&why))
}

/// Returns a rule for calls with this value of some bits of an argument.
fn rule(argument: u8, bits: u64, value: u64) -> Result<Rule, BackendError> {
    let condition = Condition::new(argument, Size::Dword, Compare::MaskedEq(bits), value)?;
    Rule::new(vec![condition])
}
