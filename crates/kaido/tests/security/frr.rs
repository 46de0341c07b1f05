//! Attacks by a compromised routing daemon, as user `frr`, on the machine's file system and on its
//! router.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::unistd::User;

use crate::{kaido, open};

const LAB: &str = "name: frr\nrouting: [ospf]\nnodes:\n  r1: {router: frr}\n  r2: {router: frr}\n  \
                   r3: {router: frr}\n  r4: {router: frr}\nlinks: [r1-r2, r2-r3, r3-r4]\n";

/// Creates symbolic links to the first argument in the place of every file below the second one
/// that root might write, while the third one exists.
const PLANT: &str = "import glob, os, sys
victim, run, going = sys.argv[1:]
while os.path.exists(going):
    for node in glob.glob(run + '/labs/*/nodes/*'):
        for name in ['etc/frr.conf', 'etc/vtysh.conf', 'etc/frr.conf.new', 'run/frr.conf',
                     'log/zebra.log', 'log/ospfd.log', 'run/zebra.log', 'run/ospfd.log']:
            try: os.symlink(victim, node + '/' + name)
            except OSError: pass
";

/// Does the same from inside a router, where it owns FRR's folders.
const PLANT_INSIDE: &str = "import os, sys
victim = sys.argv[1]
for folder in ['/etc/frr', '/run/frr', sys.argv[2]]:
    for name in ['frr.conf', 'frr.conf.new', 'vtysh.conf', 'bfdd.log', 'zebra.log', 'x']:
        try:
            os.symlink(victim, folder + '/' + name)
            print(folder + '/' + name)
        except OSError: pass
";

#[test]
fn root_frrs_user_reaches_no_file_of_roots() {
    let kaido = kaido();
    open(&kaido);
    let frr = User::from_name("frr").unwrap().unwrap();
    let [user, group] = [frr.uid.as_raw(), frr.gid.as_raw()];
    let victim = kaido.file("victim", "untouched");
    let untouched = |when: &str| {
        let found = std::fs::metadata(&victim).unwrap();
        assert_eq!(
            (found.uid(), std::fs::read_to_string(&victim).unwrap()),
            (0, "untouched".into()),
            "{when}"
        );
    };
    let going = kaido.file("going", "");
    let mut planter = Command::new("/usr/bin/python3");
    planter.args(["-c", PLANT, &victim]).arg(kaido.run_folder()).arg(&going);
    let mut planter = planter.uid(user).gid(group).spawn().unwrap();
    let lab = kaido.lab_up(LAB);
    std::fs::remove_file(&going).unwrap();
    assert!(planter.wait().unwrap().success());
    untouched("while the lab came up");

    // FRR's user owns the folder of its daemons' sockets, and nothing else.
    let folder = kaido.run_folder().join("labs/frr");
    each(&folder, &mut |path, owner, mode| {
        let is_frrs = path.strip_prefix(folder.join("nodes")).is_ok_and(|below| {
            below.components().nth(1).is_some_and(|name| name.as_os_str() == "run")
        });
        assert!(is_frrs || (owner == 0 && mode & 0o022 == 0), "{}", path.display());
    });

    let [user, group] = [user, group].map(|id| id.to_string());
    let host = folder.join("nodes/r1/etc");
    let inside = [
        "lab",
        "exec",
        "r1",
        "--",
        "setpriv",
        "--reuid",
        &user,
        "--regid",
        &group,
        "--clear-groups",
    ];
    let program = ["/usr/bin/python3", "-c", PLANT_INSIDE, &victim, host.to_str().unwrap()];
    let planted = kaido.ok(&[&inside[..], &program].concat());
    for path in planted.lines() {
        assert!(path.starts_with("/run/frr/"), "{path}");
    }
    assert!(planted.contains("/run/frr/x"), "the attack reaches FRR's own folder: {planted}");
    kaido.ok(&["lab", "exec", "r1", "--", "vtysh", "-c", "show version"]);
    // zebra keeps CAP_SYS_ADMIN, with which set-user-ID programs would be root's.
    for daemon in ["zebra", "ospfd"] {
        let pid =
            std::fs::read_to_string(folder.join(format!("nodes/r1/run/{daemon}.pid"))).unwrap();
        let status = std::fs::read_to_string(format!("/proc/{}/status", pid.trim())).unwrap();
        assert!(status.lines().any(|line| line == "NoNewPrivs:\t1"), "{daemon}: {status}");
    }
    lab.down();
    untouched("on the router");
}

/// Calls `see` with every path below a folder that is not a mount point, its owner and its mode.
fn each(folder: &Path, see: &mut impl FnMut(&Path, u32, u32)) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let found = entry.metadata().unwrap();
        if entry.path().parent().is_some_and(|parent| parent.ends_with("netns")) {
            continue;
        }
        see(&entry.path(), found.uid(), found.mode());
        if found.is_dir() {
            each(&entry.path(), see);
        }
    }
}
