//! The seccomp filter (seccomp(2)): a list of denied system calls. The program is not Kaido's, so
//! the calls that it needs are not known; those that it must not have are.

use std::collections::BTreeMap;
use std::io;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction as Action, SeccompCmpArgLen as Size, SeccompCmpOp as Compare,
    SeccompCondition as Condition, SeccompFilter, SeccompRule as Rule,
};

/// Calls denied with any arguments. A second barrier besides a user namespace: most of them act outside
/// of a network namespace if the caller has capabilities there (capabilities(7)).
const CALLS: &[i64] = &[
    // BPF objects of the machine are opened by their IDs.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    // Other namespaces. Their files are also reached by handles, without a path.
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // Mounts.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    // Objects of other users' programs, in an IPC namespace that the daemon may share.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    // Attributes `trusted.*` and `security.*` of any file.
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    // The machine as a whole.
    libc::SYS_ioprio_set,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_fanotify_init,
    libc::SYS_userfaultfd,
    // Memory that no limit of the address space counts.
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // The machine has one limit of contexts for asynchronous I/O (fs.aio-max-nr).
    libc::SYS_io_setup,
    libc::SYS_io_submit,
    // Requests of io_uring pass no filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    // Processes; threads are created by clone.
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
];

/// Requests of ioctl(2) that are denied: the network namespace of a socket (SIOCGSKNS) and of a tun
/// device (TUNGETDEVNETNS); terminals.
const REQUESTS: [u64; 5] = [0x894c, 0x54e3, libc::TIOCSTI, libc::TIOCSCTTY, libc::TIOCLINUX];

/// Types of ioctl requests that are denied: those of file systems (`X`, `f`, btrfs), which also
/// freeze and shut down; namespaces; pidfds. A type is the second byte of a request.
const TYPES: [u64; 5] = [0x58, 0x66, 0x94, 0xb7, 0xff];

/// Address families of sockets; all others are denied.
const FAMILIES: [libc::c_int; 5] =
    [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK, libc::AF_PACKET];

/// Options of packet sockets that are denied: their rings are memory of the kernel that no limit
/// counts.
const RINGS: [libc::c_int; 2] = [libc::PACKET_RX_RING, libc::PACKET_TX_RING];

/// Calls that are not known here: those after removexattrat (Linux 6.13), setxattrat and its kin,
/// and the x32 ABI's own numbers.
const UNKNOWN: [std::ops::RangeInclusive<i64>; 2] = [463..=511, X32 + 512..=X32 + 547];

/// Flags of clone(2) that create namespaces.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Marks a call of the x32 ABI, whose numbers are otherwise those of x86-64.
const X32: i64 = 0x4000_0000;

type Rules = BTreeMap<i64, Vec<Rule>>;

fn rule(argument: u8, size: Size, compare: Compare, value: u64) -> Result<Vec<Rule>, io::Error> {
    let condition = Condition::new(argument, size, compare, value).map_err(io::Error::other)?;
    Ok(vec![Rule::new(vec![condition]).map_err(io::Error::other)?])
}

/// Returns the rules for clone(2): threads alone, in the same namespaces.
fn clone_rules() -> Result<Vec<Rule>, io::Error> {
    let thread = libc::CLONE_THREAD as u64;
    let mut rules = rule(0, Size::Qword, Compare::MaskedEq(thread), 0)?;
    for flag in NAMESPACES.map(|flag| flag as u64) {
        rules.extend(rule(0, Size::Qword, Compare::MaskedEq(flag), flag)?);
    }
    Ok(rules)
}

fn denied() -> Result<Rules, io::Error> {
    let mut rules: Rules = CALLS.iter().map(|call| (*call, vec![])).collect();
    rules.insert(libc::SYS_clone, clone_rules()?);
    let mut requests = Vec::new();
    for request in REQUESTS {
        requests.extend(rule(1, Size::Dword, Compare::Eq, request)?);
    }
    for kind in TYPES {
        requests.extend(rule(1, Size::Dword, Compare::MaskedEq(0xff00), kind << 8)?);
    }
    rules.insert(libc::SYS_ioctl, requests);
    let other = FAMILIES.map(|family| Condition::new(0, Size::Dword, Compare::Ne, family as u64));
    let other: Result<Vec<_>, _> = other.into_iter().collect();
    let other = Rule::new(other.map_err(io::Error::other)?).map_err(io::Error::other)?;
    rules.insert(libc::SYS_socketpair, vec![other.clone()]);
    rules.insert(libc::SYS_socket, vec![other]);
    let mut rings = Vec::new();
    for ring in RINGS {
        let conditions = [(1, libc::SOL_PACKET), (2, ring)]
            .map(|(at, value)| Condition::new(at, Size::Dword, Compare::Eq, value as u64));
        let conditions: Result<Vec<_>, _> = conditions.into_iter().collect();
        let rule = Rule::new(conditions.map_err(io::Error::other)?).map_err(io::Error::other)?;
        rings.push(rule);
    }
    rules.insert(libc::SYS_setsockopt, rings);
    Ok(rules)
}

/// Adds the x32 ABI's number of each call.
fn with_x32(rules: Rules) -> Rules {
    let x32 = rules.clone().into_iter().map(|(call, rules)| (call | X32, rules));
    rules.into_iter().chain(x32).collect()
}

fn compile(rules: Rules, errno: libc::c_int) -> Result<BpfProgram, io::Error> {
    let machine = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let deny = Action::Errno(errno as u32);
    let filter = SeccompFilter::new(with_x32(rules), Action::Allow, deny, machine);
    filter.and_then(BpfProgram::try_from).map_err(io::Error::other)
}

/// Installs the filter for this thread and those that it creates. Calls of other architectures end
/// the process.
pub(crate) fn install() -> Result<(), io::Error> {
    // Its flags are in memory, which a filter cannot read. ENOSYS makes the C library use clone.
    let mut missing = Rules::from([(libc::SYS_clone3, vec![])]);
    missing.extend(UNKNOWN.into_iter().flatten().map(|call| (call, vec![])));
    for filter in [compile(missing, libc::ENOSYS)?, compile(denied()?, libc::EPERM)?] {
        seccompiler::apply_filter(&filter).map_err(io::Error::other)?;
    }
    Ok(())
}
