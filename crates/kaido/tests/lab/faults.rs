//! Machines without prerequisites, and daemons that exit while a lab comes up.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use private::NamespaceLock;
use testkit::{Kaido, Machine, Said, process_in, until};

use crate::topologies::{CHAIN, FRR, frr_ring, with_xdp};
use crate::{file_in_labs, kaido};

/// Runs `up` after `script` in a private mount namespace; it must fail and leave no trace.
fn up_fails(kaido: &Kaido, topology: &str, script: &str, words: &[&str]) {
    let before = Machine::now(kaido);
    let file = kaido.file("lab.yaml", topology);
    kaido.script(&format!("{script}\nexec \"$K\" lab up {file}")).failed(1, words);
    before.assert_restored(kaido);
}

#[test]
fn root_without_frr_the_message_says_how_to_install_it() {
    let kaido = kaido();
    let hide = "for directory in /usr/lib/frr /usr/libexec/frr; do
        [ ! -d $directory ] || mount -t tmpfs none $directory; done";
    up_fails(&kaido, FRR, hide, &["FRR is not installed", "apt-get install frr"]);
    // A lab without FRR routers does not need FRR. It exists in the script's mount namespace.
    let file = kaido.file("chain.yaml", CHAIN);
    kaido.script(&format!("{hide}\n\"$K\" lab up {file}\n\"$K\" lab down chain")).ok();
}

#[test]
fn root_without_ipv6_the_message_says_so() {
    let kaido = kaido();
    // As with ipv6.disable=1: the module is loaded, but its sysctls are missing.
    up_fails(&kaido, CHAIN, "mount -t tmpfs none /proc/sys/net", &["IPv6 is disabled"]);
    let disabled = "echo 1 > \"${KAIDO_RUN%/*}/one\"
        mount --bind \"${KAIDO_RUN%/*}/one\" /sys/module/ipv6/parameters/disable";
    up_fails(&kaido, CHAIN, disabled, &["IPv6 is disabled", "ipv6.disable=1"]);
}

#[test]
fn root_a_lab_is_not_removed_from_one_of_its_nodes() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    kaido.ok(&["lab", "up", &kaido.file("chain.yaml", CHAIN)]);
    let within = ["this shell is on a node of the lab `chain`: leave it first"];
    let own = env!("CARGO_BIN_EXE_kaido");
    kaido.run(&["lab", "exec", "h1", "--", own, "lab", "down", "chain"]).failed(2, &within);
    // Simulates a killed owner.
    kaido.script(": > \"$KAIDO_RUN/labs/chain/owner\"").ok();
    let gc = "nsenter --net=\"$KAIDO_RUN/labs/chain/netns/h1\" \"$K\" lab gc";
    kaido.script(gc).failed(1, &within);
    kaido.ok(&["lab", "gc"]);
    before.assert_restored(&kaido);
}

#[test]
fn root_other_users_get_an_error_that_names_root() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    // An unprivileged user can read neither the binary in the target directory nor the test's
    // directory.
    let program = kaido.directory().join("kaido");
    std::fs::copy(env!("CARGO_BIN_EXE_kaido"), &program).unwrap();
    std::fs::set_permissions(kaido.directory(), PermissionsExt::from_mode(0o755)).unwrap();
    let file = kaido.file("lab.yaml", CHAIN);
    let as_nobody = |arguments: &str| {
        let program = program.display();
        let drop = "setpriv --reuid=65534 --regid=65534 --clear-groups";
        kaido.script(&format!("exec {drop} {program} {arguments}"))
    };
    as_nobody(&format!("lab up {file}")).failed(1, &["a lab needs root", "sudo"]);
    // Reading a file needs no privileges.
    as_nobody(&format!("lab check {file}")).ok();
    as_nobody("lab ls").ok();
    before.assert_restored(&kaido);
    let lab = kaido.lab_up(CHAIN);
    for command in ["lab exec h1 -- true", "lab link r1-r2 down", "lab down chain"] {
        let said = as_nobody(command);
        said.failed(1, &["Kaido needs root for this: use sudo"]);
    }
    lab.ping("h1", &["10.255.0.3"]);
}

/// Limits space, then inodes, so that the disk is full at every possible step.
#[test]
fn root_a_full_disk_leaves_nothing() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let file = kaido.file("lab.yaml", CHAIN);
    // After a failure the directory must be empty, and the error must be the lack of space.
    let script = |limit: &str, file: &str| {
        format!(
            "mkdir -p $KAIDO_RUN
            mount -t tmpfs -o {limit} none $KAIDO_RUN
            code=0; \"$K\" lab up {file} || code=$?
            [ $code = 0 ] && exit 0
            left=$(find $KAIDO_RUN -mindepth 1)
            [ -z \"$left\" ] || {{ echo \"left: $left\" >&2; exit 99; }}
            exit $code"
        )
    };
    // A lab that does come up is in the script's own mount namespace, has no processes and
    // disappears with it.
    let smallest = |limits: &mut dyn Iterator<Item = String>| {
        for (failed, limit) in limits.enumerate() {
            let said = kaido.script(&script(&limit, &file));
            if said.code == Some(0) {
                return failed;
            }
            said.failed(1, &["No space left on device"]);
        }
        panic!("it never came up");
    };
    let by_space = smallest(&mut (1..50).map(|pages| format!("size={}k", pages * 4)));
    assert!(by_space >= 1, "{by_space}");
    let by_files = smallest(&mut (2..50).map(|files| format!("nr_inodes={files}")));
    assert!(by_files >= 6, "{by_files}");
    // FRR also writes logs and sockets.
    let file = kaido.file("frr.yaml", FRR);
    for limit in ["size=12k", "size=40k", "nr_inodes=24", "nr_inodes=40"] {
        let said = kaido.script(&script(limit, &file));
        assert_eq!(said.code, Some(1), "{limit}: {said}");
    }
    before.assert_restored(&kaido);
}

/// The directory of all state cannot be created.
#[test]
fn root_an_unusable_run_directory_is_named() {
    let kaido = kaido();
    std::fs::remove_dir(kaido.run_directory()).unwrap();
    std::fs::write(kaido.run_directory(), "").unwrap();
    let file = kaido.file("lab.yaml", CHAIN);
    let said = kaido.run(&["lab", "up", &file]);
    said.failed(2, &["for labs", "Not a directory", "set KAIDO_RUN"]);
    std::fs::remove_file(kaido.run_directory()).unwrap();
}

/// A topology with a router that loads these rules.
fn with_rules(rules: &str) -> String {
    format!(
        "name: fw\nrouting: [static]\nsrv6: {{}}\nnodes: {{h1: {{}}, r1: {{router: linux, functions: {{fw: \
         {{{rules}}}}}}}}}\nlinks: [h1-r1]\n"
    )
}

#[test]
fn root_rules_that_include_an_endless_file_time_out() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let pipe = kaido.directory().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let include = format!(r#"rules: "include \"{}\"\n""#, pipe.display());
    let file = kaido.file("lab.yaml", &with_rules(&include));
    let started = std::time::Instant::now();
    let said = kaido.run(&["lab", "up", &file]);
    said.failed(1, &["nft on r1 did not finish loading the rules of fw within 30 s"]);
    assert!(started.elapsed() < Duration::from_secs(60));
    before.assert_restored(&kaido);
    // Nor does it delay a signal.
    let mut up = kaido.start(&["lab", "up", &file]);
    let task = format!("/proc/{0}/task", up.id());
    let runs_nft = || {
        let children = |task: std::fs::DirEntry| {
            std::fs::read_to_string(task.path().join("children")).unwrap_or_default()
        };
        let pids: String = std::fs::read_dir(&task).unwrap().flatten().map(children).collect();
        let name = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/comm"));
        let is_nft = |pid| name(pid).is_ok_and(|name| name.trim() == "nft");
        // The first nft process only prints its version.
        let labs = kaido.run_directory().join("labs/fw/netns/r1");
        (labs.exists() && pids.split_whitespace().any(is_nft)).then_some(())
    };
    until(Duration::from_secs(20), runs_nft, || "no nft".into());
    let asked = std::time::Instant::now();
    kill(Pid::from_raw(up.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(up.wait().unwrap().code(), Some(1));
    assert!(asked.elapsed() < Duration::from_secs(8), "{:?}", asked.elapsed());
    before.assert_restored(&kaido);
}

#[test]
fn root_a_daemon_that_dies_during_up_is_named() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let file = kaido.file("lab.yaml", &frr_ring(4, "ospf: {hello: 10s, dead: 40s}"));
    // Once r4's last daemon runs, or while vtysh loads r3's configuration.
    let killed_at = [("ospfd", "r4", "ospf6d"), ("ospf6d", "r4", "ospf6d")];
    let while_it_loads = [("ospfd", "r3", "vtysh"), ("zebra", "r3", "vtysh")];
    for (daemon, other, process) in killed_at.into_iter().chain(while_it_loads) {
        let up = kaido.start(&["lab", "up", &file]);
        let namespace = |node: &str| kaido.run_directory().join(format!("labs/many/netns/{node}"));
        // The first routes take 10 s.
        let pid = || {
            process_in(&namespace(other), process).and(process_in(&namespace("r3"), "ospf6d"))?;
            process_in(&namespace("r3"), daemon)
        };
        let pid: i32 = until(Duration::from_secs(20), pid, || format!("no {daemon}"));
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
        let said = Said::from_output("up".into(), up.wait_with_output().unwrap());
        said.failed(1, &[daemon, "r3"]);
        // It may have been found just before it opened its socket.
        let words = ["exited", "did not start"];
        assert!(words.iter().any(|word| said.stderr.contains(word)), "{said}");
        before.assert_restored(&kaido);
    }
}

/// Takes the lock that a node's daemon needs.
fn take_the_nodes_lock(namespace: &Path) -> Option<NamespaceLock> {
    let namespace = std::fs::File::open(namespace).ok()?;
    let taken = std::thread::spawn(move || {
        // This fails until a namespace is mounted on the file.
        setns(namespace, CloneFlags::CLONE_NEWNET).ok()?;
        Some(NamespaceLock::take("node").unwrap())
    });
    taken.join().unwrap()
}

#[test]
fn root_a_node_that_ends_at_once_is_named_at_once() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let up = kaido.start(&["lab", "up", &file_in_labs("paper-path.yaml")]);
    let namespace = kaido.run_directory().join("labs/paper-path/netns/r3");
    // FRR is still starting, and its routes take at least a second.
    let taken = until(
        Duration::from_secs(20),
        || take_the_nodes_lock(&namespace),
        || "the namespace does not come".into(),
    );
    let said = Said::from_output("up".into(), up.wait_with_output().unwrap());
    let why =
        format!("a node (process {}) already runs in this network namespace", std::process::id());
    said.failed(1, &["the daemon of node r3 exited", &why]);
    drop(taken);
    before.assert_restored(&kaido);
}

#[test]
fn root_a_directory_that_is_too_deep_for_sockets_is_refused() {
    let kaido = kaido();
    let deep = kaido.directory().join("x".repeat(100));
    let file = kaido.file("lab.yaml", CHAIN);
    let up = ["lab", "up", file.as_str()];
    for command in [&up[..], &["bench", "path", "--quick"], &["bench", "lab"], &["demo"]] {
        let said = Said::run(kaido.command(command).env("KAIDO_RUN", &deep));
        said.failed(2, &["a Unix socket's path has at most 107", "KAIDO_RUN"]);
        assert!(!deep.exists(), "{command:?}");
    }
}

#[test]
fn parts_of_a_benchmark_without_parts_are_refused() {
    let kaido = kaido();
    let reroute = ["bench", "emulator", "--quick", "--only", "reroute"];
    kaido.run(&reroute).failed(2, &["not with `--quick`"]);
    for (name, part) in [("lab", "exact"), ("xsk", "exact"), ("emulator", "steady")] {
        let said = kaido.run(&["bench", name, "--only", part]);
        said.failed(2, &["`kaido bench emulator` or `xsk`"]);
    }
    let steady = ["bench", "xsk", "--quick", "--only", "steady"];
    kaido.run(&steady).failed(2, &["takes minutes"]);
    kaido.run(&["bench", "emulator", "--only", "all"]).failed(2, &["streams", "reroute"]);
}

#[test]
fn root_a_path_that_is_not_a_directory_is_refused() {
    let kaido = kaido();
    let file = kaido.file("lab.yaml", CHAIN);
    let run = |directory: &str, command: &[&str]| {
        Said::run(kaido.command(command).env("KAIDO_RUN", directory))
    };
    for command in
        [&["lab", "up", &file][..], &["lab", "ls"], &["dataplane", "show"], &["app", "ls"]]
    {
        run("", command).failed(2, &["KAIDO_RUN is empty: set it to a directory, or unset it"]);
    }
    for directory in ["/proc/kaido", "/dev/null"] {
        let says = format!("cannot use {directory} for labs: set KAIDO_RUN to another directory");
        run(directory, &["lab", "up", &file]).failed(2, &[&says]);
    }
}

#[test]
fn root_a_lab_goes_down_by_its_file_too() {
    let kaido = kaido();
    let file = kaido.file("lab.yaml", CHAIN);
    let other = kaido.file("other.yaml", CHAIN);
    kaido.run(&["lab", "down", &file]).failed(2, &["no lab"]);
    kaido.ok(&["lab", "up", &file, "--name", "one"]);
    kaido.run(&["lab", "down", &other]).failed(2, &["no lab was started from", "name one of: one"]);
    kaido.ok(&["lab", "up", &file, "--name", "two"]);
    kaido.run(&["lab", "down", &file]).failed(2, &["has several labs", "name one of: one, two"]);
    kaido.ok(&["lab", "down", "one"]);
    std::fs::write(&file, "no topology any more").unwrap();
    assert_eq!(kaido.json(&["lab", "down", &file])["lab"], "two");
    kaido.run(&["lab", "down", "/nowhere.yaml"]).failed(2, &["no file /nowhere.yaml, and no lab"]);
    kaido.ok(&["lab", "up", &other, "--name", "three"]);
    std::fs::remove_file(&other).unwrap();
    let nowhere = kaido.run(&["lab", "down", "/nowhere.yaml"]);
    nowhere.failed(2, &["no file /nowhere.yaml: name one of: three"]);
    assert_eq!(kaido.json(&["lab", "down", &other])["lab"], "three");
}

/// A data plane's socket has a longer path than the controller's.
#[test]
fn root_a_directory_that_is_too_deep_for_a_data_planes_socket_is_refused() {
    let kaido = kaido();
    let begin = kaido.directory().as_os_str().len() + 1;
    let deep = kaido.directory().join("x".repeat(70 - begin));
    let up = |text: &str| {
        let file = kaido.file("lab.yaml", text);
        Said::run(kaido.command(&["lab", "up", &file]).env("KAIDO_RUN", &deep))
    };
    let said = up(&with_xdp(CHAIN));
    said.failed(2, &["dataplane.sock is 115 bytes long", "at most 107", "KAIDO_RUN"]);
    assert!(!deep.exists());
    up(CHAIN).ok();
    Said::run(kaido.command(&["lab", "down", "chain"]).env("KAIDO_RUN", &deep)).ok();
}

/// Text that JSON cannot represent is replaced.
#[test]
fn root_a_file_with_an_odd_name_is_brought_up() {
    let kaido = kaido();
    let file = kaido.directory().join(std::ffi::OsStr::from_bytes(b"odd-\xff.yaml"));
    std::fs::write(&file, CHAIN).unwrap();
    Said::run(kaido.command(&["lab", "up"]).arg(&file)).ok();
    let labs = kaido.json(&["lab", "ls"]);
    assert!(labs[0]["file"].as_str().unwrap().ends_with("odd-\u{fffd}.yaml"), "{labs}");
    kaido.ok(&["lab", "down", "chain"]);
    let odd = kaido.directory().join(std::ffi::OsStr::from_bytes(b"odd-\xff"));
    let said = Said::run(kaido.command(&["lab", "up"]).arg(&file).env("KAIDO_RUN", &odd));
    said.failed(2, &["is not UTF-8", "KAIDO_RUN"]);
}

#[test]
fn root_routes_that_never_come_are_named() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let file = kaido.file("lab.yaml", &frr_ring(3, "ospf: {hello: 10s, dead: 40s}"));
    let said = kaido.run(&["lab", "up", &file, "--limit", "1"]);
    said.failed(1, &["routing has not converged after 1 s", "has no route to 10.255.0."]);
    before.assert_restored(&kaido);
}

#[test]
fn root_a_socket_in_use_is_named() {
    let kaido = kaido();
    let socket = kaido.directory().join("in-use.sock");
    let _listener = serve::listen(&socket).unwrap();
    let config = serde_json::json!({ "socket": socket, "store": kaido.directory().join("store") });
    let config = kaido.file("controller.json", &config.to_string());
    let said = kaido.run(&["controller", "--config", &config]);
    said.failed(1, &["another process listens on", "in-use.sock"]);
    assert!(socket.exists());
}
