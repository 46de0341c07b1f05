//! A client that opens links without the library.

use std::io::Read as _;

use nix::sys::signal::Signal;
use testkit::until;

use super::{Running, TIMEOUT, kaido, stats};

/// Opens 100 links, and writes the number of those that the other side has closed into a file.
const LINKS: &str = "import os, select, socket, sys
inherited = socket.socket(fileno=int(os.environ['KAIDO_XSK']))
links = []
for _ in range(100):
    mine, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    socket.send_fds(inherited, [b'x'], [other.fileno()])
    other.close()
    links.append(mine)
while True:
    for link in select.select(links, [], [])[0]:
        if not link.recv(1 << 18):
            links.remove(link)
    with open(sys.argv[1] + '.new', 'w') as file:
        file.write(str(100 - len(links)))
    os.rename(sys.argv[1] + '.new', sys.argv[1])
";

#[test]
fn links_of_a_client_are_limited() {
    let kaido = kaido();
    let file = kaido.file("closed", "");
    let client = ["/usr/bin/python3", "-c", LINKS, &file];
    let mut running = Running::with_client(&kaido, "default", &[], &client);
    let closed = || std::fs::read_to_string(&file).expect("a file");
    until(TIMEOUT, || (closed() == "36").then_some(()), closed);
    running.signal(Signal::SIGTERM);
    assert_eq!(running.code(), Some(143));
    let mut text = String::new();
    let errors = running.child.stderr.as_mut().expect("it is a pipe");
    errors.read_to_string(&mut text).expect("text");
    let refused = text.lines().filter(|line| line.contains("64 processes use AF_XDP already"));
    assert_eq!(refused.count(), 36, "{text}");
}

/// Opens a socket on `eth1`, and closes the control socket of each program that it is asked to
/// host. Writes the number of requests, and that of responses to counter requests, into a file.
const NO_HOST: &str = "import os, socket, sys
inherited = socket.socket(fileno=int(os.environ['KAIDO_XSK']))
link, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
socket.send_fds(inherited, [b'x'], [other.fileno()])
other.close()
HELLO, OPENED, COUNTERS, HOST, COUNT = 0, 1, 5, 0, 7
text = lambda text: bytes([len(text)]) + text
link.send(bytes([HELLO, 1, 1]) + text(b'client'))
link.send(bytes([OPENED, 0]) + text(b'eth1') + bytes([0, 1, 1]))
hosts = counts = 0
while True:
    order, files, _, _ = socket.recv_fds(link, 1 << 18, 4)
    for file in files:
        os.close(file)
    hosts += order[0] == HOST
    counts += order[0] == COUNT
    if order[0] == COUNT:
        link.send(bytes([COUNTERS, 0]))
    with open(sys.argv[1] + '.new', 'w') as file:
        file.write(f'{hosts} {counts}')
    os.rename(sys.argv[1] + '.new', sys.argv[1])
";

/// Program stays in a process of its own, which the packets of the client use.
#[test]
fn a_client_that_cannot_host_a_program_is_asked_once() {
    let kaido = kaido();
    let tenant = "{program: firewall.p4, ports: {eth1: 1}, isolation: inline}";
    kaido.file("tenants.yaml", &format!("tenants:\n  blue: {tenant}\n"));
    let file = kaido.file("orders", "0 0");
    let client = ["/usr/bin/python3", "-c", NO_HOST, &file];
    let mut running = Running::with_client(&kaido, "default", &[], &client);
    let orders = || {
        let text = std::fs::read_to_string(&file).expect("a file");
        let (hosts, counts) = text.split_once(' ').expect("two numbers");
        (hosts.parse::<u32>().expect("a number"), counts.parse::<u32>().expect("a number"))
    };
    until(TIMEOUT, || (orders().0 > 0).then_some(()), || "it is not asked".to_owned());
    // The daemon looks after programs every 5 ms, and reads counters every 500 ms.
    let (_, before) = orders();
    until(TIMEOUT, || (orders().1 > before + 3).then_some(()), || "it is not counted".to_owned());
    assert_eq!(orders().0, 1);
    let program = &stats(&kaido, "default")["programs"][0];
    assert_eq!(
        (program["is_inline"].as_bool(), program["failures"].as_u64()),
        (Some(false), Some(0))
    );
    running.signal(Signal::SIGTERM);
    assert_eq!(running.code(), Some(143));
    let mut text = String::new();
    let errors = running.child.stderr.as_mut().expect("it is a pipe");
    errors.read_to_string(&mut text).expect("text");
    assert!(text.contains("blue: the program stays in a process of its own"), "{text}");
}
