//! Egress through a port's qdisc for frames that XDP sends.

use std::mem::MaybeUninit;
use std::os::fd::AsFd;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{TC_INGRESS, TcHookBuilder};

use crate::Error;

#[allow(missing_docs, unreachable_pub, dead_code)]
#[allow(clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/exit.skel.rs"));
}

const PROGRAM: &str = "exit";
const HANDLE: u32 = 1;
const PRIORITY: u32 = 1;

/// Redirects all packets received on the interface `from` to `port`, through its qdisc. Both are
/// interface indexes in the caller's network namespace. The redirection exists as long as the
/// interface `from`.
pub fn lead_to_queue(from: u32, port: u32) -> Result<(), Error> {
    let load = |source| Error::Load { program: PROGRAM, source };
    let mut object = MaybeUninit::uninit();
    let mut open = skel::ExitSkelBuilder::default().open(&mut object).map_err(load)?;
    // The constant exists, since the program reads it.
    open.maps.rodata_data.as_deref_mut().expect("the object has constants").port = port;
    let skel = open.load().map_err(load)?;
    let interface = from as i32;
    let mut hook = TcHookBuilder::new(skel.progs.exit_to_port.as_fd())
        .ifindex(interface)
        .replace(true)
        .handle(HANDLE)
        .priority(PRIORITY)
        .hook(TC_INGRESS);
    // Fails if the clsact qdisc exists already. Attaching reports all errors that matter.
    let _ = hook.create();
    hook.attach().map_err(|source| Error::Attach { program: PROGRAM, interface, source })?;
    Ok(())
}
