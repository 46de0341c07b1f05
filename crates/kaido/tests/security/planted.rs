//! Files that another user has put where root will look, in directories that all users may write.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use testkit::{Said, until};

use crate::{Ended, NOBODY, give_away, kaido, node, open, python};

/// Creates a directory like /tmp.
fn sticky(path: &Path) {
    std::fs::create_dir(path).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o1777)).unwrap();
}

/// Runs a shell script as an unprivileged user.
fn plant(script: &str, directory: &Path) {
    let mut command = Command::new("sh");
    command.args(["-euc", script]).current_dir(directory).uid(NOBODY).gid(NOBODY);
    Said::run(&mut command).ok();
}

#[test]
fn root_a_file_that_another_user_planted_is_not_applied() {
    let kaido = kaido();
    open(&kaido);
    let state = kaido.directory().join("state");
    sticky(&state);
    let check = "health: {run: [sh, -c, \"id > PWNED\"]}";
    let pwned = kaido.directory().join("pwned");
    let check = check.replace("PWNED", pwned.to_str().unwrap());
    plant(
        &format!(
            "printf '%s' 'locators: [fd00:1::/48]\nports: {{l: {{}}}}\nsids: {{fd00:1:0:f::/112: \
             {{behavior: End.AN.NF, {check}}}}}' > applied.yaml"
        ),
        &state,
    );
    let node = node();
    for command in ["run", "show", "detach"] {
        let mut command =
            kaido.command(&["dataplane", command, "--state", state.to_str().unwrap()]);
        let said = node.run(|| Said::run(&mut command)).unwrap();
        said.failed(2, &["state is not safe: its mode is 1777"]);
    }
    assert!(!pwned.exists());
    assert_eq!(std::fs::metadata(&state).unwrap().permissions().mode() & 0o7777, 0o1777);
}

#[test]
fn root_a_namespace_that_another_user_planted_keeps_its_processes() {
    let kaido = kaido();
    open(&kaido);
    let run = kaido.directory().join("sticky");
    sticky(&run);
    let node = node();
    let mut sleep = Command::new("sleep");
    let mut sleep = Ended(node.run(|| sleep.arg("60").spawn().unwrap()).unwrap());
    let script = format!(
        "mkdir -p labs/x/netns; touch labs/x/.kaido-lab; ln -s /proc/{}/ns/net labs/x/netns/a",
        sleep.0.id()
    );
    plant(&script, &run);
    let with = |arguments: &[&str]| Said::run(kaido.command(arguments).env("KAIDO_RUN", &run));
    for arguments in
        [&["lab", "gc"][..], &["lab", "down", "x"], &["lab", "ls"], &["p4", "table", "ls"]]
    {
        if arguments[0] == "lab" {
            with(arguments).failed(2, &["labs is not safe: it is user 65534's"]);
        }
    }
    assert!(sleep.0.try_wait().unwrap().is_none(), "it was killed");
    // In a directory of root's own a link is not a namespace either.
    let own = kaido.run_directory().join("labs/x/netns");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.parent().unwrap().join(".kaido-lab"), "").unwrap();
    symlink(format!("/proc/{}/ns/net", sleep.0.id()), own.join("a")).unwrap();
    kaido.run(&["lab", "down", "x"]);
    assert!(sleep.0.try_wait().unwrap().is_none(), "it was killed");
}

#[test]
fn root_a_directory_that_another_user_made_first_is_refused() {
    let kaido = kaido();
    open(&kaido);
    let shared = kaido.directory().join("shared");
    sticky(&shared);
    plant("mkdir run", &shared);
    let run = shared.join("run");
    let file = kaido.file("lab.yaml", "name: x\nnodes: {h1: {}}\n");
    let program = kaido.file("p.p4", "");
    for arguments in [&["lab", "up", &file][..], &["p4", "run", &program]] {
        let said = Said::run(kaido.command(arguments).env("KAIDO_RUN", &run));
        assert!(said.code.is_some_and(|code| code != 0), "{said}");
        assert_eq!(std::fs::read_dir(&run).unwrap().count(), 0, "nothing is created there");
    }
}

/// Listens where a data plane would, and prints what it is sent.
const IMPOSTOR: &str = "import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
print('listens', flush=True)
c, _ = s.accept()
if c.recv(1 << 16): print('secret', flush=True)
";

#[test]
fn root_a_command_sends_nothing_to_the_socket_of_another_user() {
    let kaido = kaido();
    open(&kaido);
    let shared = kaido.directory().join("shared");
    sticky(&shared);
    let socket = shared.join("c.sock");
    let mut impostor = python(IMPOSTOR, &[&socket]);
    let mut impostor = Ended(impostor.stdout(Stdio::piped()).spawn().unwrap());
    let there = || socket.exists().then_some(());
    until(Duration::from_secs(10), there, || "the impostor does not listen".into());
    let said = kaido.run(&["app", "ls", "--controller", socket.to_str().unwrap()]);
    said.failed(1, &["is served by user 65534"]);
    let _ = impostor.0.kill();
    let mut heard = String::new();
    std::io::Read::read_to_string(impostor.0.stdout.as_mut().unwrap(), &mut heard).unwrap();
    assert!(!heard.contains("secret"), "{heard}");
}

#[test]
fn root_a_library_of_another_user_is_not_preloaded() {
    let kaido = kaido();
    let directory = kaido.directory().join("bin");
    std::fs::create_dir(&directory).unwrap();
    let [own, sandbox, planted] =
        ["kaido", "kaido-sandbox", "libkaido_xsk.so"].map(|name| directory.join(name));
    std::fs::copy(env!("CARGO_BIN_EXE_kaido"), &own).unwrap();
    // The client is started before a program's process.
    let built = Path::new(env!("CARGO_BIN_EXE_kaido")).with_file_name("kaido-sandbox");
    std::fs::copy(built, sandbox).unwrap();
    std::fs::write(&planted, "").unwrap();
    assert!(Command::new("chown").arg("nobody").arg(&planted).status().unwrap().success());
    kaido.file("pass.p4", PASS);
    let config = kaido.file("t.yaml", "tenants: {blue: {program: pass.p4, ports: {eth1: 1}}}\n");
    let mut command = Command::new(&own);
    command.args(["xsk", "run", "--config", &config, "--", "true"]);
    let said = Said::run(command.env("KAIDO_RUN", kaido.run_directory()));
    said.failed(1, &["libkaido_xsk.so is not used: its owner, user 65534, is neither root nor"]);
    assert!(Command::new("chown").arg("root:nogroup").arg(&planted).status().unwrap().success());
    std::fs::set_permissions(&planted, std::fs::Permissions::from_mode(0o664)).unwrap();
    let said = Said::run(&mut command);
    said.failed(1, &["libkaido_xsk.so is not used: its mode is 0664, which others may write"]);
}

/// Passes all packets.
const PASS: &str = "#include <core.p4>
#include <ubpf_model.p4>
struct headers {}
struct metadata {}
parser P(packet_in packet, out headers h, inout metadata m, inout standard_metadata s) {
    state start { transition accept; }
}
control I(inout headers h, inout metadata m, inout standard_metadata s) {
    apply { mark_to_pass(); }
}
control D(packet_out packet, in headers h) { apply {} }
ubpf(P(), I(), D()) main;
";

#[test]
fn root_a_link_beside_a_program_is_not_written_through() {
    let kaido = kaido();
    let victim = kaido.file("victim", "a file of root's");
    let directory = kaido.directory().join("planted");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("pass.p4"), PASS).unwrap();
    symlink(&victim, directory.join("pass.o")).unwrap();
    kaido.ok(&["p4", "compile", directory.join("pass.p4").to_str().unwrap()]);
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "a file of root's");
    assert!(!std::fs::symlink_metadata(directory.join("pass.o")).unwrap().is_symlink());
}

/// The kernel checks such a link only where it follows it itself (`fs.protected_symlinks`).
#[test]
fn root_a_link_of_another_user_to_an_output_file_is_not_followed() {
    let kaido = kaido();
    let program = kaido.file("pass.p4", PASS);
    let victim = kaido.file("victim", "a file of root's");
    let [foreign, own] = ["foreign.o", "own.o"].map(|name| kaido.directory().join(name));
    for link in [&foreign, &own] {
        symlink(&victim, link).unwrap();
    }
    give_away(&foreign);
    let compile = |to: &Path| kaido.ok(&["p4", "compile", &program, "-o", to.to_str().unwrap()]);
    compile(&foreign);
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "a file of root's");
    assert!(std::fs::symlink_metadata(&foreign).unwrap().is_file());
    // One of root's leads to the file.
    compile(&own);
    assert!(std::fs::read(&victim).unwrap().starts_with(b"\x7fELF"));
    assert!(std::fs::symlink_metadata(&own).unwrap().is_symlink());
}

/// The link is in place of a directory, before the last name of the path.
#[test]
fn root_a_link_of_another_user_in_place_of_a_directory_is_not_followed() {
    let kaido = kaido();
    let program = kaido.file("pass.p4", PASS);
    let roots = kaido.directory().join("roots");
    std::fs::create_dir(&roots).unwrap();
    let victim = roots.join("pass.o");
    std::fs::write(&victim, "a file of root's").unwrap();
    let link = kaido.directory().join("link");
    symlink(&roots, &link).unwrap();
    give_away(&link);
    let [object, pages, vm] = ["pass.o", "", "vm"].map(|name| link.join(name));
    let [object, pages, vm] = [&object, &pages, &vm].map(|path| path.to_str().unwrap());
    let beside = link.join("pass.p4");
    std::fs::write(roots.join("pass.p4"), PASS).unwrap();
    let lab = kaido.file("lab.conf", "h1[0]=A\nh2[0]=A\n");
    for command in [
        &["lab", "import", &lab, "-o", object][..],
        &["p4", "compile", &program, "-o", object],
        &["p4", "compile", beside.to_str().unwrap()],
        &["p4", "publish", "--to", vm],
        &["man", pages],
    ] {
        kaido.run(command).failed(1, &["is not safe: it is user 65534's"]);
    }
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "a file of root's");
    assert_eq!(std::fs::read_dir(&roots).unwrap().count(), 2);
}

#[test]
fn root_a_directory_of_another_user_gets_no_man_pages() {
    let kaido = kaido();
    let victim = kaido.file("victim", "a file of root's");
    let directory = kaido.directory().join("pages");
    std::fs::create_dir(&directory).unwrap();
    symlink(&victim, directory.join("kaido.1")).unwrap();
    give_away(&directory);
    let said = kaido.run(&["man", directory.to_str().unwrap()]);
    said.failed(1, &["cannot write man pages", "belongs to another user"]);
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "a file of root's");
}

#[test]
fn root_a_sandbox_of_another_user_is_not_run() {
    let kaido = kaido();
    let directory = kaido.directory().join("bin");
    std::fs::create_dir(&directory).unwrap();
    let [own, planted] = ["kaido", "kaido-sandbox"].map(|name| directory.join(name));
    std::fs::copy(env!("CARGO_BIN_EXE_kaido"), &own).unwrap();
    std::fs::copy("/bin/true", &planted).unwrap();
    let doctor = || {
        let said = Command::new(&own).args(["--json", "doctor"]).output().unwrap();
        String::from_utf8(said.stdout).unwrap()
    };
    let refused = |why: &str| {
        let said = doctor();
        assert!(said.contains("is not used: ") && said.contains(why), "{said}");
    };
    let chown = |user: &str| {
        assert!(Command::new("chown").arg(user).arg(&planted).status().unwrap().success());
    };
    chown("nobody");
    refused("its owner, user 65534, is neither root nor the owner of `kaido`");
    chown("root");
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(&directory, open).unwrap();
    refused("its mode is 0777, which others may write");
    let closed = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&directory, closed).unwrap();
    assert!(!doctor().contains("is not used"));
}
