//! Tests of the isolation of a sandbox process.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use sandbox::process::{Arena, Config, Isolation, Launcher, Sandbox, StartError};

use super::common::*;

fn status(process: u32, field: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix(field)).expect("a field");
    line.trim_start_matches(':').trim().to_owned()
}

#[test]
fn the_process_has_no_rights_and_filtered_calls() {
    let sandbox = sandbox(&pass(), patient());
    let said = sandbox.status();
    let process = said.process.unwrap();
    assert!(said.isolation.has(Isolation::NO_RIGHTS) && said.isolation.has(Isolation::CALLS));
    eprintln!("what this machine lets it have: {}", said.isolation);
    for field in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
        assert_eq!(status(process, field), "0000000000000000", "{field}");
    }
    assert_eq!(status(process, "NoNewPrivs"), "1");
    assert_eq!(status(process, "Seccomp"), "2");
    assert_eq!(status(process, "Threads"), "1");
    assert!(said.isolation.has(Isolation::NOBODY));
    let user = status(process, "Uid");
    assert!(!user.split_whitespace().any(|id| id == "0"), "{user}");
}

/// Only root may inspect the process.
#[test]
fn root_the_process_has_two_files_and_its_own_namespaces() {
    let sandbox = sandbox(&pass(), patient());
    let said = sandbox.status();
    let process = said.process.unwrap();
    let files = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
    assert_eq!(files, 2, "the control socket and the bell");
    for (part, name) in [
        (Isolation::NETWORK, "net"),
        (Isolation::MOUNT, "mnt"),
        (Isolation::IPC, "ipc"),
        (Isolation::HOSTNAME, "uts"),
    ] {
        assert!(said.isolation.has(part), "{name}");
        let of = |whose: &str| std::fs::read_link(format!("/proc/{whose}/ns/{name}")).unwrap();
        assert_ne!(of(&process.to_string()), of("self"), "{name}");
    }
    assert!(said.isolation.has(Isolation::NO_FILES));
    let root = std::fs::read_dir(format!("/proc/{process}/root")).unwrap().count();
    assert_eq!(root, 0);
}

/// Contents of a file in the process's control groups, if it exists.
pub(crate) fn of_group(process: u32, file: &str) -> Option<String> {
    let read = |file: &str| std::fs::read_to_string(file).expect("procfs");
    let (groups, mounts) = (read(&format!("/proc/{process}/cgroup")), read("/proc/self/mounts"));
    let mounts: Vec<_> = mounts.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    let paths = groups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let own = paths.filter(|path| path.contains("/kaido-"));
    let files =
        own.flat_map(|path| mounts.iter().map(move |mount| format!("{mount}{path}/{file}")));
    files.filter_map(|file| std::fs::read_to_string(file).ok()).next()
}

#[test]
fn root_groups_limit_memory_and_processors() {
    let config = Config { cpu: Some(20), ..patient() };
    let sandbox = sandbox(&pass(), config);
    let said = sandbox.status();
    let process = said.process.unwrap();
    let number = |text: String| text.trim().parse::<u64>().unwrap();
    if said.isolation.has(Isolation::MEMORY) {
        let limit = of_group(process, "memory.max").or(of_group(process, "memory.limit_in_bytes"));
        assert!((1 << 30..2 << 30).contains(&number(limit.unwrap())));
    } else {
        eprintln!("SKIPPED: this machine lets nobody make groups that limit memory");
    }
    if said.isolation.has(Isolation::CPU) {
        let (two, one) = (of_group(process, "cpu.max"), of_group(process, "cpu.cfs_quota_us"));
        let limit = two.map_or_else(|| number(one.unwrap()), |two| number(two[..4].to_owned()));
        assert_eq!(limit, 2000);
    } else {
        eprintln!("SKIPPED: this machine lets nobody make groups that limit CPUs");
    }
    let groups = std::fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap();
    let mine = format!("/kaido-{}-", std::process::id());
    let own: Vec<_> = groups.lines().filter_map(|line| line.split(':').nth(2)).collect();
    let own: Vec<_> = own.into_iter().filter(|path| path.contains(&mine)).collect();
    drop(sandbox);
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    for mount in mounts.lines().filter_map(|line| line.split(' ').nth(1)) {
        for path in &own {
            let left = format!("{mount}{path}");
            assert!(!std::path::Path::new(&left).exists(), "{left}");
        }
    }
}

/// Others wait for it. The limit applies from the first packet on.
#[test]
fn root_a_program_with_little_cpu_time_is_loaded_as_fast_as_others() {
    // Takes several periods of the limit to compile.
    let mut code: Vec<_> = (0..2000).map(|n| one(0xb7, 1, 0, 0, n)).collect();
    code.extend([one(0xb7, 0, 0, 0, 1), EXIT]);
    let sandbox = sandbox(&object(code, vec![]), Config { cpu: Some(1), ..patient() });
    let said = sandbox.status();
    if !said.isolation.has(Isolation::CPU) {
        eprintln!("SKIPPED: this machine lets nobody make groups that limit CPUs");
        return;
    }
    let process = said.process.unwrap();
    let text = of_group(process, "cpu.stat").unwrap();
    let throttled = text.lines().find_map(|line| line.strip_prefix("nr_throttled "));
    assert_eq!(throttled, Some("0"), "{text}");
    let limit = of_group(process, "cpu.max").or(of_group(process, "cpu.cfs_quota_us"));
    assert!(limit.unwrap().starts_with("1000"));
}

/// A second process would see the first one's packets.
#[test]
fn packets_of_one_sandbox_are_not_shown_to_another() {
    let first = sandbox(&pass(), patient());
    let arena = first.arena().clone();
    let second = Sandbox::start(launcher(), patient(), arena.clone(), &pass());
    assert!(matches!(second, Err(StartError::ArenaTaken)), "{second:?}");
    drop(first);
    Sandbox::start(launcher(), patient(), arena, &pass()).expect("it is free");
}

/// A restart uses the original executable, not the one that now has its path.
#[test]
fn an_upgrade_in_place_changes_no_process() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("program");
    // Written by another process: a process that another test is starting would hold a copy of a
    // descriptor of this one, and a file that is open for writing cannot be executed.
    let mut copy = std::process::Command::new("cp");
    copy.arg(env!("CARGO_BIN_EXE_sandbox-process")).arg(&program);
    assert!(copy.status().unwrap().success());
    let launcher = Launcher::of(&program, [""; 0]).unwrap();
    std::fs::remove_file(&program).unwrap();
    std::fs::copy("/bin/false", &program).unwrap();
    let arena = std::sync::Arc::new(Arena::new(FRAMES, FRAME).unwrap());
    let sandbox = Sandbox::start(launcher, patient(), arena, &pass()).expect("the old one starts");
    assert!(sandbox.status().process.is_some());
}

/// Not a test: `no_other_call_gets_through` runs this in a child process.
#[test]
#[ignore = "ends its process"]
fn jailed() {
    let Ok(what) = std::env::var("KAIDO_JAILED") else { return };
    sandbox::process::filtered().expect("a filter");
    let path = c"/etc/passwd".as_ptr();
    // SAFETY: these calls access only a path and an address that outlive them.
    unsafe {
        match what.as_str() {
            "nothing" => {}
            "socket" => {
                libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0);
            }
            "open" => {
                libc::open(path, libc::O_RDONLY);
            }
            "fork" => {
                libc::fork();
            }
            "ptrace" => {
                libc::ptrace(libc::PTRACE_TRACEME);
            }
            "connect" => {
                let address: libc::sockaddr_in = std::mem::zeroed();
                libc::connect(0, (&raw const address).cast(), 16);
            }
            "execve" => {
                libc::execve(path, std::ptr::null(), std::ptr::null());
            }
            "code" => {
                let (size, access) = (4096, libc::PROT_READ | libc::PROT_EXEC);
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                libc::mmap(std::ptr::null_mut(), size, access, flags, -1, 0);
            }
            "huge" => {
                let (size, access) = (2 << 20, libc::PROT_READ | libc::PROT_WRITE);
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB;
                libc::mmap(std::ptr::null_mut(), size, access, flags, -1, 0);
            }
            "hole" => {
                libc::madvise(std::ptr::null_mut(), 4096, libc::MADV_REMOVE);
            }
            "urgent" => {
                libc::send(0, path.cast(), 1, libc::MSG_OOB);
            }
            "futex" => {
                let mut word = 0_u32;
                let none = std::ptr::null::<libc::timespec>();
                libc::syscall(libc::SYS_futex, &raw mut word, libc::FUTEX_LOCK_PI, 0, none);
            }
            "write" => {
                libc::write(5, path.cast(), 1);
            }
            "kill" => {
                libc::kill(1, 0);
            }
            "unshare" => {
                libc::unshare(libc::CLONE_NEWUSER);
            }
            other => panic!("{other}"),
        }
        libc::syscall(libc::SYS_exit_group, 7);
    }
}

#[test]
fn no_other_call_gets_through() {
    let run = |what: &str| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "isolation::jailed", "--ignored", "--test-threads=1"])
            .env("KAIDO_JAILED", what)
            .output()
            .expect("it runs")
            .status
    };
    assert_eq!(run("nothing").code(), Some(7));
    for what in [
        "socket", "open", "fork", "ptrace", "connect", "execve", "code", "huge", "hole", "urgent",
        "futex", "write", "kill", "unshare",
    ] {
        assert_eq!(run(what).signal(), Some(libc::SIGSYS), "{what}");
    }
}
