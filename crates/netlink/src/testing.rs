//! Test helpers of this crate: a thread in private namespaces, and `ip` as the oracle.

use std::process::Command;
use std::thread;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use crate::{Handle, Namespace, VethEnd, add_veth, set_up};

/// Runs `test` in a thread with private network and mount namespaces, which end with the thread.
pub(crate) fn in_namespace(test: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let result = scope
            .spawn(|| {
                unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).expect("needs root");
                let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
                mount(None::<&str>, "/", None::<&str>, private, None::<&str>).unwrap();
                Handle::new().unwrap().request("lo up", set_up(1)).unwrap();
                test();
            })
            .join();
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Runs `program`, which must succeed, and returns its standard output.
pub(crate) fn output(program: &str, arguments: &str) -> String {
    let output = Command::new(program).args(arguments.split_whitespace()).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments}: {}{}",
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(&output.stdout)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Creates the veth pair `a`, `b` in the calling thread's namespace, sets both ends up, and returns
/// their indexes.
pub(crate) fn veth(handle: &mut Handle) -> [u32; 2] {
    let here = Namespace::current().unwrap();
    let end = |name| VethEnd { name, namespace: &here, mtu: 1500, mac: None, index: None };
    handle.request("veth", add_veth(&end("a"), &end("b"))).unwrap();
    ["a", "b"].map(|name| {
        let index = handle.link(name).unwrap().index;
        handle.request("up", set_up(index)).unwrap();
        index
    })
}
