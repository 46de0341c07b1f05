//! A local user who takes the names and locks of root's commands.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use netlink::Namespace;
use testkit::{Kaido, Said, until};

use crate::{Ended, FILE, kaido, node, open, python};

/// Binds abstract socket names, locks the given directories where possible, prints the number of
/// each, and waits until it is killed.
const SQUAT: &str = "import fcntl, os, socket, sys
names, locks = [], []
for name in ['kaido/dataplane', 'kaido-node', 'kaido-attaching'] + \
            ['kaido-attached-%d' % index for index in range(1, 9)]:
    s = socket.socket(socket.AF_UNIX)
    s.bind(chr(0) + name)
    s.listen()
    names.append(s)
for path in sys.argv[1:]:
    try:
        fd = os.open(path, os.O_RDONLY)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        locks.append(fd)
    except OSError: pass
print(len(names), len(locks), flush=True)
sys.stdin.read()
";

/// A squatter, killed on drop.
struct Squatter {
    _process: Ended,
    /// The number of locks that it got.
    locks: usize,
}

impl Squatter {
    fn start(kaido: &Kaido, namespace: &Namespace) -> Self {
        let run = kaido.run_directory();
        let paths = ["", "labs", "labs/x", "labs/x/owner", "dataplane", "dataplane/applied.yaml"];
        let machine = ["/run/kaido", "/run/kaido/namespaces"].map(std::path::PathBuf::from);
        let paths: Vec<_> = paths.iter().map(|path| run.join(path)).chain(machine).collect();
        let mut command = python(SQUAT, &paths.iter().map(|path| &**path).collect::<Vec<_>>());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Ended(namespace.run(|| command.spawn().unwrap()).unwrap());
        let mut line = String::new();
        BufReader::new(process.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let (names, locks) = line.trim().split_once(' ').unwrap();
        assert_eq!(names, "11");
        Self { _process: process, locks: locks.parse().unwrap() }
    }
}

#[test]
fn root_a_squatter_keeps_no_data_plane_from_starting() {
    let kaido = kaido();
    open(&kaido);
    let node = node();
    let _squatter = Squatter::start(&kaido, &node);
    let file = kaido.file("file.yaml", FILE);
    let mut command = kaido.command(&["dataplane", "run", "--file", &file]);
    let daemon = Ended(node.run(|| command.spawn().unwrap()).unwrap());
    let shown = || kaido.run(&["dataplane", "show"]).code.filter(|code| *code == 0);
    until(Duration::from_secs(20), shown, || "the data plane does not respond".into());
    // Now its directory exists, and none of its locks can be taken.
    assert_eq!(
        Squatter::start(&kaido, &Namespace::unnamed().unwrap()).locks,
        0,
        "with the run directory open"
    );

    // A second daemon names the process of the first.
    let state = kaido.directory().join("second");
    let mut second = kaido.command(&["dataplane", "run", "--state", state.to_str().unwrap()]);
    let said = node.run(|| Said::run(&mut second)).unwrap();
    said.failed(1, &[&format!("another data plane (process {})", daemon.0.id())]);
    drop(daemon);
    let _ = nix::mount::umount(&kaido.run_directory().join("dataplane/bpf"));
}

#[test]
fn root_a_squatter_keeps_no_lab_from_coming_up_or_going_down() {
    let kaido = kaido();
    open(&kaido);
    let machine = Namespace::unnamed().unwrap();
    let before = Squatter::start(&kaido, &machine);
    let file = kaido.file("lab.yaml", "name: x\nnodes: {h1: {}, h2: {}}\nlinks: [h1-h2]\n");
    let within = |arguments: &[&str]| {
        let mut command = kaido.command(arguments);
        machine.run(|| Said::run(&mut command)).unwrap().ok()
    };
    within(&["lab", "up", &file]);
    let after = Squatter::start(&kaido, &Namespace::unnamed().unwrap());
    assert_eq!(after.locks, 0, "with the run directory open");
    within(&["lab", "down", "x"]);
    drop((before, after));
}
