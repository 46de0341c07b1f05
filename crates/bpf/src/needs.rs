//! Kernel features that the programs need. They are probed only after a program was rejected.

use libbpf_sys::{
    BPF_FUNC_loop, BPF_FUNC_timer_init, BPF_FUNC_xdp_get_buff_len, BPF_PROG_TYPE_SCHED_CLS,
    BPF_PROG_TYPE_XDP, bpf_func_id, bpf_prog_type, libbpf_probe_bpf_helper,
};
use nix::sched::{CloneFlags, setns};

/// Helpers, a program type that has them, and the message if they are missing.
const HELPERS: [(bpf_func_id, bpf_prog_type, &str); 3] = [
    (
        BPF_FUNC_xdp_get_buff_len,
        BPF_PROG_TYPE_XDP,
        "it has no XDP of several buffers; Linux 5.18 has",
    ),
    (BPF_FUNC_loop, BPF_PROG_TYPE_SCHED_CLS, "it has no bpf_loop; Linux 5.17 has"),
    (BPF_FUNC_timer_init, BPF_PROG_TYPE_SCHED_CLS, "it has no BPF timers; Linux 5.15 has"),
];

/// Returns the feature that this kernel lacks, as far as it can be determined.
pub(crate) fn lacks() -> Option<&'static str> {
    if std::thread::spawn(is_compiler_off).join().unwrap_or(false) {
        return Some(
            "it runs programs with callbacks only through its compiler, which is switched off: \
             `sysctl net.core.bpf_jit_enable=1`",
        );
    }
    let is_missing = |helper, kind| {
        // SAFETY: no options; the call takes numbers. 0 means that the kernel lacks the helper.
        unsafe { libbpf_probe_bpf_helper(kind, helper, std::ptr::null()) == 0 }
    };
    let missing = HELPERS.into_iter().find(|(helper, kind, _)| is_missing(*helper, *kind));
    missing.map(|(_, _, lacks)| lacks)
}

/// Returns true if the JIT is disabled. Only the initial network namespace has the file, so this
/// must run on a separate thread, which enters that namespace.
fn is_compiler_off() -> bool {
    let first = std::fs::File::open("/proc/1/ns/net");
    // In a container, this is another namespace. Without the file, the JIT counts as enabled.
    let _ = first.map(|first| setns(first, CloneFlags::CLONE_NEWNET));
    let jit = std::fs::read_to_string("/proc/sys/net/core/bpf_jit_enable");
    jit.is_ok_and(|jit| jit.trim() == "0")
}

#[cfg(test)]
mod tests {
    /// The probes run only after a rejection, so they must not report a feature as missing that
    /// exists.
    #[test]
    fn root_nothing_is_missing_where_the_programs_load() {
        crate::Srv6::load(crate::srv6::Sizes::default()).unwrap();
        assert_eq!(super::lacks(), None);
    }
}
