//! A client that opens links without the library.

use std::io::Read as _;
use std::time::Instant;

use nix::sys::signal::Signal;
use testkit::until;

use super::{Running, TIMEOUT, kaido, stats};

/// A client's request for a link. `VERSION`: `xsk_link::VERSION`.
const REQUEST: &str = "import os, signal, socket, sys
VERSION = 3
inherited = socket.socket(fileno=int(os.environ['KAIDO_XSK']))
def request():
    inherited.send(b'x')
    _, files, _, _ = socket.recv_fds(inherited, 1, 1)
    return socket.socket(fileno=files[0]) if files else None
def report(text):
    with open(sys.argv[1] + '.new', 'w') as file:
        file.write(text)
    os.rename(sys.argv[1] + '.new', sys.argv[1])
";

/// Requests 100 links, closes one and requests another, and reports the numbers of links.
const LINKS: &str = "links = [link for link in (request() for _ in range(100)) if link]
links.pop().close()
before = len(links)
while len(links) == before:
    links += [link for link in [request()] if link]
report(f'{before} {len(links)}')
signal.pause()
";

#[test]
fn links_of_a_client_are_limited() {
    let kaido = kaido();
    let file = kaido.file("links", "");
    let client = ["/usr/bin/python3", "-c", &format!("{REQUEST}{LINKS}"), &file];
    let mut running = Running::with_client(&kaido, "default", &[], &client);
    let links = || std::fs::read_to_string(&file).expect("a file");
    until(TIMEOUT, || (links() == "63 64").then_some(()), links);
    let text = end(&mut running);
    let refused = text.lines().filter(|line| line.contains("64 processes use AF_XDP already"));
    assert_eq!(refused.count(), 1, "{text}");
}

/// Opens 1,024 sockets on each of three links, and reports when the last one is closed.
const SOCKETS: &str = "HELLO, OPENED = 0, 1
text = lambda text: bytes([len(text)]) + text
number = lambda number: bytes([number & 127 | 128, number >> 7])
for name in (b'a', b'b', b'c'):
    link = request()
    link.send(bytes([HELLO, VERSION, 1]) + text(b'client'))
    try:
        for one in range(128, 128 + 1024):
            link.send(bytes([OPENED]) + number(one) + text(name + b'%d' % one) + bytes([0, 1, 1]))
            if not link.recv(1 << 18):
                break
    except OSError:
        pass
    globals()[name.decode()] = link
report('done')
signal.pause()
";

#[test]
fn sockets_of_a_client_are_limited() {
    let kaido = kaido();
    let file = kaido.file("links", "");
    let client = ["/usr/bin/python3", "-c", &format!("{REQUEST}{SOCKETS}"), &file];
    let mut running = Running::with_client(&kaido, "default", &[], &client);
    let said = || std::fs::read_to_string(&file).expect("a file");
    until(TIMEOUT, || (said() == "done").then_some(()), said);
    // Two directions of each.
    assert_eq!(stats(&kaido, "default")["sockets"].as_array().map(Vec::len), Some(2 * 2048));
    end(&mut running);
}

/// Opens a socket on each of 200 links, which it closes at once, and then one on a link that stays.
/// Reports the orders to attach, which have two descriptors.
const LEAVING: &str = "HELLO, OPENED = 0, 1
def opened():
    # Those that have left may still count.
    while not (link := request()):
        pass
    link.send(bytes([HELLO, VERSION, 1, 6]) + b'client')
    link.send(bytes([OPENED, 1, 4]) + b'eth1' + bytes([0, 1, 1]))
    return link
for _ in range(200):
    opened().close()
link, orders = opened(), 0
while orders < 2:
    data, files, _, _ = socket.recv_fds(link, 1 << 18, 4)
    if not data:
        break
    orders += len(files) == 2
report(str(orders))
signal.pause()
";

#[test]
fn a_client_that_leaves_at_once_keeps_no_queue() {
    let kaido = kaido();
    let file = kaido.file("links", "");
    let client = ["/usr/bin/python3", "-c", &format!("{REQUEST}{LEAVING}"), &file];
    let mut running = Running::with_client(&kaido, "default", &[], &client);
    let said = || std::fs::read_to_string(&file).expect("a file");
    until(
        TIMEOUT,
        || (said() == "2").then_some(()),
        || format!("{}, {:#}", said(), stats(&kaido, "default")),
    );
    end(&mut running);
}

/// Introduces itself twice, without a process id, and 3,000 times in sessions of their own.
const HELLOS: &str = "hello = lambda process: bytes([0, VERSION, process, 6]) + b'client'
def refused(*processes):
    link = request()
    try:
        for process in processes:
            link.send(hello(process))
        while link.recv(1 << 18):
            pass
    except ConnectionError:
        pass
refused(1, 1)
refused(0)
for _ in range(3000):
    if link := request():
        link.send(hello(1))
        link.close()
report('refused')
signal.pause()
";

#[test]
fn a_client_introduces_itself_once() {
    let kaido = kaido();
    let file = kaido.file("links", "");
    let client = ["/usr/bin/python3", "-c", &format!("{REQUEST}{HELLOS}"), &file];
    let mut running = Running::with_client(&kaido, "default", &[], &client);
    let said = || std::fs::read_to_string(&file).expect("a file");
    until(TIMEOUT, || (said() == "refused").then_some(()), said);
    let text = end(&mut running);
    assert!(text.contains("is disconnected"), "{text}");
    assert!(text.contains("messages suppressed"), "{text}");
}

/// Sends a lingering TCP socket on each of its links, which it then closes. Reports before it keep
/// `kaido` busy, so that most often it has the last descriptor. Reports the number of links once
/// another one is refused.
const LINGERING: &str = "import struct, threading
peers, CLOSED = [], bytes([2, 7])
def lingering():
    listener = socket.create_server(('127.0.0.1', 0))
    tcp = socket.create_connection(listener.getsockname())
    peers.append(listener.accept()[0])
    tcp.setblocking(False)
    try:
        while True:
            tcp.send(bytes(1 << 16))
    except BlockingIOError:
        pass
    tcp.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 3600))
    return tcp
count = 0
while link := request():
    tcp = lingering()
    for _ in range(100):
        link.send(CLOSED)
    socket.send_fds(link, [CLOSED], [tcp.fileno()])
    # It blocks if this was the last descriptor.
    threading.Thread(target=tcp.close, daemon=True).start()
    link.close()
    count += 1
report(str(count))
signal.pause()
";

/// Each link blocks one thread, and no other one: requests and the end do not wait.
#[test]
fn links_whose_descriptors_linger_delay_no_one() {
    let kaido = kaido();
    let file = kaido.file("links", "");
    let client = ["/usr/bin/python3", "-c", &format!("{REQUEST}{LINGERING}"), &file];
    let mut running = Running::with_client(&kaido, "default", &[], &client);
    let links = || std::fs::read_to_string(&file).expect("a file");
    until(TIMEOUT, || links().parse().is_ok_and(|links: u32| links >= 64).then_some(()), links);
    assert_eq!(stats(&kaido, "default")["sockets"].as_array().map(Vec::len), Some(0));
    let begin = Instant::now();
    end(&mut running);
    assert!(begin.elapsed() < TIMEOUT, "{:?}", begin.elapsed());
}

/// Fills the pipe that is the standard error of `kaido` and of this client, and closes a link, which
/// `kaido` reports there.
const FULL: &str = "import threading
def fill():
    while True:
        os.write(2, bytes(4096))
threading.Thread(target=fill, daemon=True).start()
for _ in range(3):
    link = request()
    link.send(bytes([0, VERSION, 1, 6]) + b'client')
    link.close()
report('closed')
signal.pause()
";

/// Nothing waits for the messages but their own thread.
#[test]
fn a_client_that_blocks_messages_delays_no_one() {
    let kaido = kaido();
    let file = kaido.file("links", "");
    let client = ["/usr/bin/python3", "-c", &format!("{REQUEST}{FULL}"), &file];
    let mut running = Running::with_client(&kaido, "default", &[], &client);
    let said = || std::fs::read_to_string(&file).expect("a file");
    until(TIMEOUT, || (said() == "closed").then_some(()), said);
    for _ in 0..3 {
        assert_eq!(stats(&kaido, "default")["sockets"].as_array().map(Vec::len), Some(0));
    }
    running.signal(Signal::SIGTERM);
    assert_eq!(running.code(), Some(143));
}

/// Ends a client, and returns its messages.
fn end(running: &mut Running) -> String {
    running.signal(Signal::SIGTERM);
    assert_eq!(running.code(), Some(143));
    let mut text = String::new();
    let errors = running.child.stderr.as_mut().expect("it is a pipe");
    errors.read_to_string(&mut text).expect("text");
    text
}

/// Opens a socket on `eth1`, and closes the control socket of each program that it is asked to
/// host. Writes the number of requests, and that of responses to counter requests, into a file.
const NO_HOST: &str = "link = request()
HELLO, OPENED, COUNTERS, HOST, COUNT = 0, 1, 5, 0, 7
text = lambda text: bytes([len(text)]) + text
link.send(bytes([HELLO, VERSION, 1]) + text(b'client'))
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
    report(f'{hosts} {counts}')
";

/// Program stays in a process of its own, which the packets of the client use.
#[test]
fn a_client_that_cannot_host_a_program_is_asked_once() {
    let kaido = kaido();
    let tenant = "{program: firewall.p4, ports: {eth1: 1}, isolation: inline}";
    kaido.file("tenants.yaml", &format!("tenants:\n  blue: {tenant}\n"));
    let file = kaido.file("orders", "0 0");
    let client = ["/usr/bin/python3", "-c", &format!("{REQUEST}{NO_HOST}"), &file];
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
    let text = end(&mut running);
    assert!(text.contains("blue: the program stays in a process of its own"), "{text}");
}
