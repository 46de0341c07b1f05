//! Probes for the kernel features that SRv6 in XDP needs, on a veth in the caller's namespace.

use bpf::Srv6;
use bpf::attach::{Attached, Mode};
use bpf::srv6::Sizes;

use super::Probe;

/// Loads the program, and attaches it to an interface of the calling thread's namespace.
pub(super) fn probe(interface: u32) -> Vec<Probe> {
    let finding = |what, tried: Result<(), String>| Probe {
        what,
        ok: tried.is_ok(),
        required: false,
        needed_for: "kaido dataplane",
        fix: tried.err().unwrap_or_default(),
    };
    let program = match Srv6::load(Sizes::default()) {
        Ok(program) => program,
        Err(error) => return vec![finding("SRv6 in XDP", Err(in_one_line(&error)))],
    };
    let attached = Attached::new(program.program(), interface, Mode::Native);
    let filesystems = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let has_bpf = filesystems.lines().any(|line| line.ends_with("\tbpf"));
    let or = |ok: bool, fix: &str| if ok { Ok(()) } else { Err(fix.into()) };
    vec![
        finding("SRv6 in XDP", Ok(())),
        finding("XDP on veth", attached.map(drop).map_err(|error| in_one_line(&error))),
        finding(
            "tables in XDP",
            or(
                program.has_table_lookup(),
                "Linux 6.5 and later updates of 6.1 find a table by its number; here a SID's table \
                 must be a VRF's",
            ),
        ),
        finding("BPF file system", or(has_bpf, "the kernel needs CONFIG_BPF_SYSCALL")),
    ]
}

pub(super) fn in_one_line(error: &bpf::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
