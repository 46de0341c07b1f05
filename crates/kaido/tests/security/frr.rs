//! Attacks by a compromised routing daemon, as user `frr`, on the machine's file system and on its
//! router.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::unistd::User;
use private::Owner;

use testkit::Said;

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

/// Does the same from inside a router, also in the directory of its daemons' sockets, and in a
/// directory that it owns.
const PLANT_INSIDE: &str = "import os, sys
victim = sys.argv[1]
for directory in ['/etc/frr', '/run/frr', *sys.argv[2:]]:
    for name in ['zebra.vty', 'ospfd.vty', 'zebra.pid']:
        try: os.rename(directory + '/' + name, directory + '/gone')
        except OSError: continue
        print(directory + '/' + name)
    for name in ['frr.conf', 'frr.conf.new', 'vtysh.conf', 'bfdd.log', 'zebra.log', 'x']:
        try:
            os.symlink(victim, directory + '/' + name)
            print(directory + '/' + name)
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
    planter.args(["-c", PLANT, &victim]).arg(kaido.run_directory()).arg(&going);
    let mut planter = planter.uid(user).gid(group).spawn().unwrap();
    let lab = kaido.lab_up(LAB);
    std::fs::remove_file(&going).unwrap();
    assert!(planter.wait().unwrap().success());
    untouched("while the lab came up");

    // FRR's user owns its daemons' sockets, and no directory.
    let directory = kaido.run_directory().join("labs/frr");
    each(&directory, &mut |path, owner, mode| {
        let is_in_run = path.parent().is_some_and(|parent| parent.ends_with("run"));
        let is_frrs = is_in_run && !path.is_dir();
        assert!(is_frrs || (owner == 0 && mode & 0o022 == 0), "{}", path.display());
    });

    let own = kaido.directory().join("own");
    std::fs::create_dir(&own).unwrap();
    Owner { user, group }.give_directory(&own).unwrap();
    let [user, group] = [user, group].map(|id| id.to_string());
    let host = directory.join("nodes/r1/etc");
    let as_frr = ["setpriv", "--reuid", &user, "--regid", &group, "--clear-groups"];
    let program = ["/usr/bin/python3", "-c", PLANT_INSIDE, &victim, host.to_str().unwrap()];
    let inside = ["lab", "exec", "r1", "--"];
    let planted = kaido.ok(&[&inside[..], &as_frr, &program, &[own.to_str().unwrap()]].concat());
    for path in planted.lines() {
        assert!(path.starts_with(own.to_str().unwrap()), "{path}");
    }
    assert!(planted.contains("own/x"), "the attack reaches its own directory: {planted}");
    kaido.ok(&["lab", "exec", "r1", "--", "vtysh", "-c", "show version"]);
    lab.down();
    untouched("on the router");
}

/// Actions of a compromised daemon with its capabilities. Prints those that succeed. Arguments:
/// PIDs of a process in another network namespace and of another router's daemon, and a directory
/// that all users can reach. Descriptor 9 is another network namespace, which a local user has
/// passed.
const ESCAPE: &str = r"import ctypes, os, resource, shutil, socket, struct, sys, tempfile
libc = ctypes.CDLL(None, use_errno=True)
other, daemon = map(int, sys.argv[1:3])
def call(name, *arguments):
    if libc.syscall(*arguments) >= 0: print(name)
def attempt(name, action):
    try: action()
    except OSError: return
    print(name)
zeros = ctypes.create_string_buffer(128)
array = ctypes.create_string_buffer(struct.pack('IIII', 2, 4, 4, 1) + bytes(112))
call('bpf', 321, 0, array, 128)                                 # BPF_MAP_CREATE
call('bpf of x32', 321 | 0x40000000, 0, array, 128)
handle = ctypes.create_string_buffer(struct.pack('II', 120, 0) + bytes(120))
call('name_to_handle_at', 303, -100, b'/', handle, zeros, 0)
space = os.open('/proc/self/ns/net', os.O_RDONLY)
call('setns', 308, space, 0x40000000)
call('ioctl', 16, socket.socket().fileno(), 0x894c)             # SIOCGSKNS
attempt('files of all users', lambda: os.stat(sys.argv[3]))
call('mount', 165, b'none', b'/tmp', b'tmpfs', 0, None)
call('keyctl', 250, 0, -3, 1)
call('perf_event_open', 298, zeros, 0, -1, -1, 0)
call('open_tree_attr', 467, -100, b'/', 1, zeros, 32)
memory = libc.syscall(29, 0, 4096, 0o600)                       # shmget, IPC_PRIVATE
if memory >= 0:
    print('shmget')
    libc.syscall(31, memory, 0, None)                           # shmctl, IPC_RMID
context = ctypes.c_ulong(0)
if libc.syscall(206, 1, ctypes.byref(context)) >= 0:            # io_setup
    print('io_setup')
    libc.syscall(207, context)                                  # io_destroy
# socketpair: no family but AF_VSOCK's own code answers otherwise.
if libc.syscall(53, 40, 1, 0, zeros) >= 0 or ctypes.get_errno() != 1: print('pair of vsock')
if resource.getrlimit(resource.RLIMIT_NOFILE)[1] > 1024: print('open files')
ring = struct.pack('IIII', 4096, 1, 4096, 1)
attempt('packet ring', lambda: socket.socket(17, 3, 0).setsockopt(263, 5, ring))
attempt('vsock', lambda: socket.socket(40, socket.SOCK_STREAM))
attempt('terminal', lambda: os.open('/dev/tty', os.O_RDWR))
attempt('new terminal', os.openpty)
def fork():
    if os.fork() == 0: os._exit(0)
attempt('fork', fork)
attempt('signal', lambda: os.kill(daemon, 0))
def files():
    directory = tempfile.mkdtemp(dir='/tmp')
    try:
        for number in range(2000): os.mknod(directory + '/%d' % number)
    finally: shutil.rmtree(directory)
attempt('many files', files)
attempt('namespaces by name', lambda: os.stat('/run/netns'))
attempt('namespaces of labs', lambda: os.stat('/run/kaido'))
def attribute(kind, data):
    return struct.pack('HH', len(data) + 4, kind) + data + bytes(-len(data) % 4)
def request(kind, flags, message):
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    netlink.send(struct.pack('IHHII', len(message) + 16, kind, flags, 1, 0) + message)
    answer = netlink.recv(4096)
    error = -struct.unpack_from('i', answer, 16)[0] if answer[4] == 2 else 0
    if error: raise OSError(error, os.strerror(error))
def veth(name, place):
    # A veth pair with one end in another namespace.
    body = struct.pack('BxHiII', 0, 0, 0, 0, 0)
    peer = body + attribute(3, b'planted-' + name) + place
    link = attribute(1, b'veth\0') + attribute(2, attribute(1, peer))
    request(16, 0x605, body + attribute(3, b'own-' + name) + attribute(18, link))
def by_id(number):
    # RTM_GETLINK of the loopback interface behind a link: IFLA_TARGET_NETNSID.
    body = struct.pack('BxHiII', 0, 0, 1, 0, 0)
    request(18, 1, body + attribute(46, struct.pack('i', number)))
def by_new_id():
    # RTM_NEWNSID, NETNSA_NSID and NETNSA_FD.
    number, descriptor = struct.pack('i', 77), struct.pack('I', 9)
    request(88, 5, bytes(4) + attribute(1, number) + attribute(3, descriptor))
    by_id(77)
attempt('neighbor by ID', lambda: by_id(0))
attempt('descriptor by ID', by_new_id)
# IFLA_NET_NS_PID, IFLA_NET_NS_FD
attempt('veth', lambda: veth(b'1\0', attribute(19, struct.pack('I', other))))
attempt('veth by descriptor', lambda: veth(b'2\0', attribute(28, struct.pack('I', 9))))
call('unshare', 272, 0x40000000)
print('end')
";

/// A process that ends with the test.
struct Bystander(std::process::Child);

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn root_a_compromised_routing_daemon_reaches_no_other_namespace() {
    let kaido = kaido();
    open(&kaido);
    let lab = kaido.lab_up(LAB);
    let daemon = |node: &str| {
        let namespace = kaido.run_directory().join("labs/frr/netns").join(node);
        testkit::process_in(&namespace, "zebra").unwrap()
    };
    let [zebra, other] = [daemon("r1"), daemon("r2")].map(|pid| pid.to_string());
    let elsewhere = crate::node();
    let mut bystander = Command::new("sleep");
    let bystander = elsewhere.run(|| bystander.arg("600").spawn()).unwrap().unwrap();
    let bystander = Bystander(bystander);
    let target = bystander.0.id().to_string();
    let passed = format!("/proc/{target}/ns/net");
    let capabilities = "+sys_admin,+net_admin,+net_raw";
    // With a daemon's user and capabilities.
    let attack = |from: &[&str], restricted: &[&str], user: &str| {
        let identity = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups"];
        let rights = ["--inh-caps", capabilities, "--ambient-caps", capabilities];
        let shared = kaido.directory().to_str().unwrap();
        let python = ["/usr/bin/python3", "-c", ESCAPE, &target, &other, shared];
        let words = [from, restricted, &identity, &rights, &python].concat();
        let mut command = Command::new("sh");
        command.args(["-c", "exec 9<$0 \"$@\"", &passed]).args(words).current_dir("/");
        Said::run(&mut command).ok()
    };
    // The unrestricted attack mounts: not on this machine.
    let network = ["nsenter", "--target", &zebra, "--net", "unshare", "--mount"];
    // The ID of FRR's user in the machine's user namespace.
    let user = std::fs::metadata(format!("/proc/{zebra}")).unwrap().uid();
    let open = attack(&network, &[], &user.to_string());
    let works = [
        "bpf",
        "name_to_handle_at",
        "setns",
        "shmget",
        "io_setup",
        "pair of vsock",
        "files of all users",
        "fork",
        "new terminal",
    ];
    let by_netlink = ["veth", "veth by descriptor", "neighbor by ID", "descriptor by ID"];
    for action in works.into_iter().chain(by_netlink).chain(["signal", "unshare"]) {
        assert!(open.lines().any(|line| line == action), "{action} works elsewhere: {open}");
    }
    let program = kaido.command(&[]).get_program().to_str().unwrap().to_owned();
    let place = ["nsenter", "--target", &zebra, "--net", "--mount", "--pid"];
    assert_eq!(attack(&place, &[&program, "routing-daemon"], "frr"), "end\n");
    // Without the filter of system calls, the router's user namespace is enough against netlink.
    let unfiltered = attack(&[&place[..], &["--user"]].concat(), &[], "frr");
    let netlink = unfiltered.lines().filter(|line| by_netlink.contains(line));
    assert_eq!(netlink.count(), 0, "{unfiltered}");
    // The daemons themselves run like this.
    let status = std::fs::read_to_string(format!("/proc/{zebra}/status")).unwrap();
    let has = |line: &str| status.lines().any(|found| found == line);
    assert!(has("NoNewPrivs:\t1") && has("Seccomp:\t2"), "{status}");
    assert!(status.lines().any(|line| line.starts_with("NSpid:") && line.ends_with("\t1")));
    // Without the session of root's terminal.
    let stat = std::fs::read_to_string(format!("/proc/{zebra}/stat")).unwrap();
    assert_eq!(stat.split(' ').nth(5), Some(&*zebra), "{stat}");
    assert!(user >= 1 << 31, "user {user} has files on the machine");
    // Its log does not fill the disk, and its threads and memory are limited.
    let log = kaido.directory().join("log");
    let mut daemon = Command::new(place[0]);
    daemon.args(&place[1..]).args([&program, "routing-daemon", "/usr/bin/head", "-c", "100M"]);
    let log_file = std::fs::File::create(&log).unwrap();
    let status = daemon.arg("/dev/zero").stdout(log_file).status().unwrap();
    assert_eq!(status.code(), Some(1), "it is not ended by a signal: {status}");
    assert_eq!(std::fs::metadata(&log).unwrap().len(), 64 << 20);
    let limits = std::fs::read_to_string(format!("/proc/{zebra}/limits")).unwrap();
    let has = |name: &str, limit: &str| {
        limits.lines().any(|line| line.starts_with(name) && line.contains(limit))
    };
    assert!(has("Max processes", "256") && has("Max address space", "4294967296"), "{limits}");
    assert!(has("Max pending signals", "256") && has("Max msgqueue size", "0"), "{limits}");
    // The kernel accounts what they use to an owner that is not root (NS_GET_OWNER_UID).
    let owner = "import fcntl, os, sys; owner = bytearray(4); \
                 fcntl.ioctl(os.open(sys.argv[1], 0), 0xb704, owner); \
                 print(int.from_bytes(owner, sys.byteorder))";
    let mut asked = Command::new("/usr/bin/python3");
    asked.args(["-c", owner, &format!("/proc/{zebra}/ns/user")]);
    let owner = Said::run(&mut asked);
    assert!(owner.ok().trim().parse::<u32>().unwrap() >= 0xd000_0000);
    // They see no process but their own, by which /proc would show other networks.
    let mut seen = Command::new(place[0]);
    seen.args(&place[1..]).args(["sh", "-c", "cat /proc/1/comm; ls /proc"]);
    let seen = Said::run(&mut seen).ok();
    let processes = seen.lines().filter(|name| name.parse::<u32>().is_ok()).count();
    assert!(seen.starts_with("zebra\n") && processes <= 4, "{seen}");
    lab.down();
}

#[test]
fn root_daemons_do_not_inherit_descriptors_of_the_command_that_starts_them() {
    let kaido = kaido();
    let secret = kaido.directory().join("secret");
    let file = kaido.file("lab.yaml", LAB);
    let up = kaido.command(&["lab", "up", &file]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec 9>>\"$0\"; exec \"$@\""]).arg(&secret).arg(up.get_program());
    shell.args(up.get_args()).env("KAIDO_RUN", kaido.run_directory());
    Said::run(&mut shell).ok();
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let files = std::fs::read_dir(entry.ok()?.path().join("fd")).ok()?;
        Some(
            files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok()).collect::<Vec<_>>(),
        )
    });
    assert_eq!(processes.flatten().filter(|file| *file == secret).count(), 0);
    kaido.ok(&["lab", "down", "frr"]);
}

/// A daemon that is compromised while its router starts owns the directory of the sockets. root's
/// vtysh would follow a link to the socket of another router.
#[test]
fn root_a_link_between_the_sockets_of_a_router_stops_it() {
    let kaido = kaido();
    let file = kaido.file("frr.yaml", LAB);
    let directory = kaido.directory().to_str().unwrap();
    let daemon = "import os, sys
os.symlink('/run/frr/zebra.vty', '/run/frr/bgpd.vty')
os.execv('/usr/lib/frr/real', ['staticd'] + sys.argv[1:])
";
    let daemon = kaido.file("staticd", &format!("#!/usr/bin/python3\n{daemon}"));
    let said = kaido.script(&format!(
        "cp -r /usr/lib/frr {directory}/frr && mv {directory}/frr/staticd {directory}/frr/real
         cp {daemon} {directory}/frr/staticd && chmod 755 {directory}/frr/staticd
         mount --bind {directory}/frr /usr/lib/frr && exec $K lab up {file}"
    ));
    said.failed(1, &["cannot take back", "bgpd.vty is not safe"]);
    assert!(!kaido.run_directory().join("labs/frr").exists());
}

/// Calls `see` with every path below a directory that is not a mount point, its owner and its mode.
fn each(directory: &Path, see: &mut impl FnMut(&Path, u32, u32)) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
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
