//! Virtual machines of tenants' programs (`isolation: vm`).

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use testkit::{Kaido, Said, pause, until};

use crate::{kaido, node};

const PROGRAM: &str = include_str!("../clients/filter.p4");

/// Boot time without KVM, on a busy machine.
const BOOT: Duration = Duration::from_secs(120);

/// Writes a tenants file with a program in a virtual machine, and returns a command that runs a client
/// with it.
fn command(kaido: &Kaido, client: &str) -> Command {
    kaido.file("filter.p4", PROGRAM);
    let kernel = testkit::guest_kernel();
    let tenant = format!("program: filter.p4, isolation: vm, kernel: {}", kernel.display());
    let text = format!("tenants:\n  blue: {{{tenant}, ports: {{eth1: 1}}}}\n");
    let config = kaido.file("tenants.yaml", &text);
    testkit::preloads(Path::new(env!("CARGO_BIN_EXE_kaido")));
    kaido.command(&["xsk", "run", "--config", &config, "--", "sleep", client])
}

/// Starts a client in a session of its own, to which its virtual machine belongs too.
fn start(kaido: &Kaido) -> Child {
    let command = command(kaido, "1000");
    // A shell that leaves a file of root's open.
    let secret = kaido.file("secret", "a secret");
    let mut session = Command::new("setsid");
    session.args(["bash", "-c", "exec 9<> \"$0\"; exec \"$@\"", &secret]);
    session.arg(command.get_program()).args(command.get_args());
    session.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    session.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    node().run(|| session.spawn()).expect("root enters it").expect("it starts")
}

/// Pids of the processes of a session that are a virtual machine, or become one.
fn machines(session: u32) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("it is mounted").flatten();
    let is_machine = |pid: &String| {
        let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let [line, stat] =
            ["cmdline", "stat"].map(|file| String::from_utf8_lossy(&read(file)).into_owned());
        // The session is the fourth field after the name (proc(5)).
        let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let is_its = fields.split(' ').nth(3) == Some(&session.to_string());
        is_its && (line.contains("start-vm\0") || line.contains("ivshmem-plain"))
    };
    processes.filter_map(|one| one.file_name().into_string().ok()).filter(is_machine).collect()
}

/// Waits for QEMU, and returns its pid.
fn qemu(session: u32) -> String {
    let is_qemu = |pid: &String| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.contains("ivshmem-plain")
    };
    until(BOOT, || machines(session).into_iter().find(is_qemu), || "no QEMU".to_owned())
}

fn end(mut child: Child) {
    let session = child.id();
    child.kill().expect("it is a child");
    child.wait().expect("it is a child");
    let are_gone = || machines(session).is_empty().then_some(());
    until(Duration::from_secs(10), are_gone, || format!("these are left: {:?}", machines(session)));
}

/// QEMU searches the current directory for its firmware first.
#[test]
fn root_a_virtual_machine_does_not_use_files_of_the_current_directory() {
    let kaido = kaido();
    let planted = kaido.directory().join("planted");
    std::fs::create_dir(&planted).unwrap();
    for firmware in ["bios-256k.bin", "linuxboot_dma.bin", "kvmvapic.bin"] {
        // A jump to itself at the reset vector.
        let mut code = vec![0x90; 256 << 10];
        code[(256 << 10) - 16..][..2].copy_from_slice(&[0xeb, 0xfe]);
        std::fs::write(planted.join(firmware), code).unwrap();
    }
    let mut command = command(&kaido, "0");
    command.current_dir(&planted);
    node().run(|| Said::run(&mut command)).unwrap().ok();
}

#[test]
fn root_a_virtual_machine_reaches_no_files_and_groups_of_the_machine() {
    let kaido = kaido();
    let child = start(&kaido);
    let pid = qemu(child.id());
    let status = || std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    // QEMU installs its own filter of system calls too.
    let is_filtered = || status().contains("Seccomp_filters:\t2\n").then_some(());
    until(Duration::from_secs(20), is_filtered, status);
    let status = status();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(!field("Groups:").contains(&"0".to_owned()), "{status}");
    assert!(field("Uid:").iter().all(|id| id.parse::<u32>().unwrap() > 65536), "{status}");
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(field(set), ["0000000000000000"], "{status}");
    }
    assert_eq!(field("NoNewPrivs:"), ["1"], "{status}");
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let files: Vec<_> = files.filter_map(|one| std::fs::read_link(one.path()).ok()).collect();
    assert!(!files.iter().any(|file| file.ends_with("secret")), "{files:?}");
    let root = PathBuf::from(format!("/proc/{pid}/root"));
    let entries = std::fs::read_dir(&root).unwrap().flatten();
    let mut names: Vec<_> = entries.map(|one| one.file_name().into_string().unwrap()).collect();
    names.retain(|name| !name.starts_with("lib") && name != "bin");
    names.sort();
    assert_eq!(names, ["dev", "proc", "usr"]);
    for directory in ["", "usr", "dev"] {
        let found = nix::sys::statvfs::statvfs(&root.join(directory)).unwrap();
        let is_read_only = found.flags().contains(nix::sys::statvfs::FsFlags::ST_RDONLY);
        assert!(is_read_only, "/{directory}");
    }
    let mode = std::fs::metadata(&root).unwrap().permissions().mode();
    assert_eq!(mode & 0o022, 0);
    end(child);
}

/// Between the start of the process and that of QEMU too.
#[test]
fn root_no_virtual_machine_survives_its_command() {
    for delay in [20, 60, 100, 150, 200, 250, 300, 400, 600] {
        let kaido = kaido();
        let child = start(&kaido);
        pause(Duration::from_millis(delay));
        end(child);
    }
}
