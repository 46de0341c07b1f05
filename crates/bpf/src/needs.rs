//! What the programs need of a kernel, looked at only once one of them was refused.

use libbpf_sys::{
    BPF_FUNC_loop, BPF_FUNC_timer_init, BPF_FUNC_xdp_get_buff_len, BPF_PROG_TYPE_SCHED_CLS,
    BPF_PROG_TYPE_XDP, bpf_func_id, bpf_prog_type, libbpf_probe_bpf_helper,
};
use nix::sched::{CloneFlags, setns};

/// Helpers, a kind of program that has them, and what to say where they are missing.
const HELPERS: [(bpf_func_id, bpf_prog_type, &str); 3] = [
    (
        BPF_FUNC_xdp_get_buff_len,
        BPF_PROG_TYPE_XDP,
        "it has no XDP of several buffers; Linux 5.18 has",
    ),
    (BPF_FUNC_loop, BPF_PROG_TYPE_SCHED_CLS, "it has no bpf_loop; Linux 5.17 has"),
    (BPF_FUNC_timer_init, BPF_PROG_TYPE_SCHED_CLS, "it has no BPF timers; Linux 5.15 has"),
];

/// What this kernel lacks, as far as that can be told.
pub(crate) fn lacks() -> Option<&'static str> {
    if std::thread::spawn(is_compiler_off).join().unwrap_or(false) {
        return Some(
            "it runs programs with callbacks only through its compiler, which is switched off: \
             `sysctl net.core.bpf_jit_enable=1`",
        );
    }
    let is_missing = |helper, kind| {
        // SAFETY: no options; the call takes numbers. 0 means that the kernel says no.
        unsafe { libbpf_probe_bpf_helper(kind, helper, std::ptr::null()) == 0 }
    };
    let missing = HELPERS.into_iter().find(|(helper, kind, _)| is_missing(*helper, *kind));
    missing.map(|(_, _, lacks)| lacks)
}

/// Only the machine's first network namespace has the file: for a thread of its own, which enters it.
fn is_compiler_off() -> bool {
    let first = std::fs::File::open("/proc/1/ns/net");
    // In a container it is another; what is not readable is not said.
    let _ = first.map(|first| setns(first, CloneFlags::CLONE_NEWNET));
    let jit = std::fs::read_to_string("/proc/sys/net/core/bpf_jit_enable");
    jit.is_ok_and(|jit| jit.trim() == "0")
}

#[cfg(test)]
mod tests {
    /// As anything else is looked for only behind a refusal, it must not see what is not so.
    #[test]
    fn root_nothing_is_missing_where_the_programs_load() {
        crate::Srv6::load(crate::srv6::Sizes::default()).unwrap();
        assert_eq!(super::lacks(), None);
    }
}
