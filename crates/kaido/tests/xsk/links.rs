//! A client that opens links without the library.

use std::io::Read as _;

use nix::sys::signal::Signal;
use testkit::until;

use super::{LIMIT, Running, kaido};

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
    until(LIMIT, || (closed() == "36").then_some(()), closed);
    running.signal(Signal::SIGTERM);
    assert_eq!(running.code(), Some(143));
    let mut text = String::new();
    let errors = running.child.stderr.as_mut().expect("it is a pipe");
    errors.read_to_string(&mut text).expect("text");
    let refused = text.lines().filter(|line| line.contains("64 processes use AF_XDP already"));
    assert_eq!(refused.count(), 36, "{text}");
}
