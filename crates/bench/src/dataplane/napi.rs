//! Threaded NAPI: a kernel thread polls a device, instead of the CPU on which packets arrive.

use std::collections::BTreeSet;
use std::fs;

use anyhow::Context as _;
use bpf::measure::go_first;
use netlink::Namespace;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

/// Moves the polling of a device to threads on one CPU, with priority over all others there.
/// The threads end with the device.
pub(super) fn keep_on(namespace: &Namespace, device: &str, processor: usize) -> anyhow::Result<()> {
    // A device of the same name in another namespace may already have threads.
    let before = threads(device)?;
    namespace.run(|| enable(device))??;
    let threads = threads(device)?;
    let mut made = threads.difference(&before).peekable();
    anyhow::ensure!(made.peek().is_some(), "the kernel has made no thread for {device}");
    for &thread in made {
        crate::processor::keep_on(thread, processor)
            .and_then(|()| Ok(go_first(thread)?))
            .with_context(|| format!("cannot schedule the thread that polls {device}"))?;
    }
    Ok(())
}

/// Enables threaded NAPI in the calling thread's namespace. The thread gets a private /sys, which
/// shows the devices of the namespace in which it was mounted.
fn enable(device: &str) -> anyhow::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>)?;
    mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), None::<&str>)
        .context("cannot mount /sys")?;
    let file = format!("/sys/class/net/{device}/threaded");
    fs::write(&file, "1").with_context(|| format!("cannot write {file} (threaded NAPI)"))
}

/// Returns the threads that poll devices of this name, in any namespace.
fn threads(device: &str) -> anyhow::Result<BTreeSet<i32>> {
    let prefix = format!("napi/{device}-");
    let processes = fs::read_dir("/proc").context("cannot read /proc")?;
    let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    // A process that has ended meanwhile has no name.
    Ok(ids
        .filter(|id: &i32| {
            fs::read_to_string(format!("/proc/{id}/comm"))
                .is_ok_and(|name| name.starts_with(&prefix))
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use netlink::{Batch, Handle, Offload, VethEnd, add_veth, set_offload, set_up};

    use super::*;

    const INDEX: u32 = 10;

    #[test]
    fn root_a_thread_polls_the_device_and_ends_with_it() {
        let namespace = Namespace::unnamed().unwrap();
        // Thread names are not per namespace.
        let name = format!("t{}", std::process::id());
        let end = |name, index| VethEnd {
            name,
            namespace: &namespace,
            mtu: 1500,
            mac: None,
            index: Some(index),
        };
        let mut batch = Batch::new();
        batch.push("a pair", add_veth(&end(&name, INDEX), &end("peer", INDEX + 1)));
        Handle::new().unwrap().commit(batch).unwrap();
        namespace
            .run(|| {
                set_offload(&name, Offload::Gro, true).unwrap();
                Handle::new().unwrap().request("up", set_up(INDEX)).unwrap();
            })
            .unwrap();
        keep_on(&namespace, &name, 0).unwrap();
        let made = threads(&name).unwrap();
        assert!(!made.is_empty());
        for thread in made {
            let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap();
            assert!(status.contains("Cpus_allowed_list:\t0\n"), "{status}");
        }

        drop(namespace);
        let since = Instant::now();
        while !threads(&name).unwrap().is_empty() {
            assert!(since.elapsed() < Duration::from_secs(20), "the thread is still there");
            std::thread::yield_now();
        }
    }

    #[test]
    fn root_a_device_that_is_not_polled_is_an_error_that_says_what_is_missing() {
        let namespace = Namespace::unnamed().unwrap();
        let error = format!("{:#}", keep_on(&namespace, "lo", 0).unwrap_err());
        assert!(error.contains("/sys/class/net/lo/threaded (threaded NAPI)"), "{error}");
    }
}
