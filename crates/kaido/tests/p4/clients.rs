//! Access to P4Runtime: this user through a Unix socket, and owners of certificates through TLS.

use std::io::{BufRead, BufReader, ErrorKind, Read as _};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Deserializer, Value};

use super::{PROGRAM, directory, says};

/// The page with the commands that create certificates.
const PAGE: &str = include_str!("../../../../docs/p4runtime.md");

fn kaido(arguments: &[&str], directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kaido"));
    command
        .arg("p4")
        .args(arguments)
        .current_dir(directory)
        .env("KAIDO_RUN", directory.join("run"));
    command
}

fn done(arguments: &[&str], directory: &Path) -> Output {
    kaido(arguments, directory).output().expect("it runs")
}

/// `kaido p4 run`, killed on drop.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(arguments: &[&str], directory: &Path) -> Self {
        let mut command = kaido(&[&["run", "p.p4", "--json"], arguments].concat(), directory);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut said = Deserializer::from_reader(child.stdout.take().expect("a pipe"));
        let first = serde::Deserialize::deserialize(&mut said);
        let first: Value = first.expect("it says that it runs");
        let address = first["p4runtime"].as_str().expect("an address").to_owned();
        Self { child, address }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

#[test]
fn a_device_is_found_at_its_own_socket() {
    let here = directory(&[("p.p4", PROGRAM)]);
    let served = Served::start(&[], here.path());
    let socket = here.path().join("run/p4/device-1.sock");
    assert_eq!(served.address, format!("unix:{}", socket.display()));
    let mode = |path: &Path| std::fs::metadata(path).expect("it is there").mode() & 0o777;
    assert_eq!((mode(&socket), mode(socket.parent().expect("a directory"))), (0o600, 0o700));
    says(&done(&["table", "ls"], here.path()), 0, &["c.t"]);
    // Each device has its own socket.
    let again = done(&["run", "p.p4"], here.path());
    says(&again, 1, &["another process listens on", "`--device-id`"]);
    let _other = Served::start(&["--device-id", "2"], here.path());
    says(&done(&["table", "ls", "--device-id", "2"], here.path()), 0, &["c.t"]);
    // A killed command leaves a stale socket.
    drop(served);
    assert!(socket.exists());
    let _again = Served::start(&[], here.path());
    says(
        &done(&["table", "ls", "--address", &format!("unix:{}", socket.display())], here.path()),
        0,
        &["c.t"],
    );
}

/// Connects to a Unix socket as an unprivileged user, and prints the number of bytes before the
/// end: none.
const STRANGER: &str = "import socket, sys; s = socket.socket(socket.AF_UNIX); \
    s.connect(sys.argv[1]); s.settimeout(20); print(len(s.recv(1)))";

#[test]
fn root_other_users_do_not_reach_a_device() {
    use std::os::unix::process::CommandExt as _;
    let here = directory(&[("p.p4", PROGRAM)]);
    let _served = Served::start(&[], here.path());
    let socket = here.path().join("run/p4/device-1.sock");
    let stranger = || {
        let mut command = Command::new("python3");
        command.args(["-c", STRANGER]).arg(&socket).uid(65534).gid(65534);
        command.output().expect("it runs")
    };
    let refused = stranger();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("PermissionError"), "{refused:?}");
    // Even with open modes, the peer's user is checked.
    for path in [here.path(), &here.path().join("run"), &here.path().join("run/p4"), &socket] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).expect("it is ours");
    }
    let closed = stranger();
    assert_eq!(String::from_utf8_lossy(&closed.stdout), "0\n", "{closed:?}");
}

#[test]
fn tcp_without_certificates_is_asked_for_and_local() {
    let here = directory(&[("p.p4", PROGRAM)]);
    let run = |more: &[&str]| done(&[&["run", "p.p4", "--p4runtime"], more].concat(), here.path());
    says(&run(&["127.0.0.1:0"]), 2, &["TCP does not authenticate the peer", "`--insecure-tcp`"]);
    says(&run(&["0.0.0.0:0", "--insecure-tcp"]), 2, &["is for loopback addresses"]);
    says(&run(&["[::]:0", "--insecure-tcp"]), 2, &["is for loopback addresses"]);
    says(&run(&["somewhere"]), 2, &["not a socket (unix:PATH)"]);
    says(&run(&["127.0.0.1:0", "--tls-cert", "a"]), 2, &["--tls-key"]);
    says(&done(&["run", "p.p4", "--insecure-tcp"], here.path()), 2, &["without an address"]);
    let ls = |more: &[&str]| done(&[&["table", "ls", "--address"], more].concat(), here.path());
    says(&ls(&["127.0.0.1:1"]), 2, &["TCP does not authenticate"]);
    says(&ls(&["192.0.2.1:1", "--insecure-tcp"]), 2, &["is for loopback addresses"]);
    // The command warns about it.
    let mut command =
        kaido(&["run", "p.p4", "--p4runtime", "127.0.0.1:0", "--insecure-tcp"], here.path());
    let mut child =
        command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let line = lines.next().expect("a line").expect("text");
    assert!(line.contains("every user of this machine may program the device"), "{line}");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

/// Runs the page's block that creates an authority and certificates.
fn certificates(directory: &Path) {
    let (_, rest) = PAGE.split_once("```console\n$ openssl req").expect("the page has it");
    let (block, _) = rest.split_once("```\n").expect("it ends");
    let script = format!("$ openssl req{block}").replace("\n$ ", "\n");
    let script = script.trim_start_matches("$ ").replace("$ umask", "umask");
    let made = Command::new("sh").args(["-ec", &script]).current_dir(directory).output();
    let made = made.expect("a shell runs");
    assert!(made.status.success(), "{script}\n{}", String::from_utf8_lossy(&made.stderr));
}

/// Connects by TLS: without a certificate, or with a certificate and TLS 1.2.
const BARE: &str = "
import socket, ssl, sys
context = ssl.create_default_context(cafile='ca.pem')
if sys.argv[2]:
    context.load_cert_chain('operator.pem', 'operator.key')
    context.maximum_version = ssl.TLSVersion.TLSv1_2
stream = socket.create_connection(sys.argv[1].rsplit(':', 1))
stream = context.wrap_socket(stream, server_hostname='switch')
stream.settimeout(20)
print(stream.recv(1))
";

#[test]
fn tls_takes_holders_of_certificates_alone() {
    let here = directory(&[("p.p4", PROGRAM)]);
    certificates(here.path());
    let tls = ["--tls-cert", "switch.pem", "--tls-key", "switch.key", "--tls-ca", "ca.pem"];
    let served = Served::start(&[&["--p4runtime", "127.0.0.1:0"], &tls[..]].concat(), here.path());
    let with = |files: &[&str]| {
        let ls = ["table", "ls", "--address", &served.address, "--tls-name", "switch"];
        done(&[&ls[..], files].concat(), here.path())
    };
    let own = ["--tls-cert", "operator.pem", "--tls-key", "operator.key", "--tls-ca", "ca.pem"];
    says(&with(&own), 0, &["c.t"]);
    // Without TLS.
    let ls = ["table", "ls", "--address", &served.address, "--insecure-tcp"];
    let plain = ["cannot connect to P4Runtime at", "a server with TLS needs `--tls-cert`"];
    says(&done(&ls, here.path()), 1, &plain);
    // A certificate of another authority, on either side.
    let other = tempfile::tempdir().expect("a directory");
    certificates(other.path());
    let of = |name: &str| other.path().join(name).display().to_string();
    let (certificate, key, authority) = (of("operator.pem"), of("operator.key"), of("ca.pem"));
    let stranger = ["--tls-cert", &certificate, "--tls-key", &key, "--tls-ca", "ca.pem"];
    let mismatch =
        ["cannot connect to P4Runtime at", "check that the server uses TLS too", "`--tls-ca`"];
    says(&with(&stranger), 1, &mismatch);
    let deceived =
        ["--tls-cert", "operator.pem", "--tls-key", "operator.key", "--tls-ca", &authority];
    says(&with(&deceived), 1, &[&mismatch[..], &["invalid peer certificate"]].concat());
    // Without a certificate, and with an older TLS.
    for (version, alert) in [("", "CERTIFICATE_REQUIRED"), ("1.2", "PROTOCOL_VERSION")] {
        let mut client = Command::new("python3");
        client.args(["-c", BARE, &served.address, version]).current_dir(here.path());
        let said = client.output().expect("it runs");
        let text = String::from_utf8_lossy(&said.stderr);
        assert!(text.contains(alert), "{version}: {text}");
    }
    says(&with(&own), 0, &["c.t"]);
    // A key that others can read.
    let key = here.path().join("operator.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o640)).expect("it is ours");
    says(&with(&own), 2, &["operator.key is accessible to other users (mode 0640)", "chmod 600"]);
    let swapped = ["--tls-cert", "p.p4", "--tls-key", "switch.key", "--tls-ca", "ca.pem"];
    says(&with(&swapped), 2, &["p.p4: no certificate in PEM"]);
}

/// More silent connections than the server has, and than its handshakes.
const SILENT: usize = 700;

#[test]
fn silent_clients_keep_no_holder_of_a_certificate_out() {
    let here = directory(&[("p.p4", PROGRAM)]);
    certificates(here.path());
    let tls = ["--tls-cert", "switch.pem", "--tls-key", "switch.key", "--tls-ca", "ca.pem"];
    let served = Served::start(&[&["--p4runtime", "127.0.0.1:0"], &tls[..]].concat(), here.path());
    let connect = || TcpStream::connect(&served.address).expect("it listens");
    let silent: Vec<TcpStream> = (0..SILENT).map(|_| connect()).collect();
    let begun = Instant::now();
    let ls = ["table", "ls", "--address", &served.address, "--tls-name", "switch"];
    let own = ["--tls-cert", "operator.pem", "--tls-key", "operator.key", "--tls-ca", "ca.pem"];
    says(&done(&[&ls[..], &own].concat(), here.path()), 0, &["c.t"]);
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    // All of them are disconnected, the oldest ones immediately.
    let limit = Some(Duration::from_secs(20));
    for mut stream in silent {
        stream.set_read_timeout(limit).expect("it is open");
        match stream.read(&mut [0]) {
            Ok(count) => assert_eq!(count, 0),
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    }
}

/// A third-party client, with the files of the page.
#[test]
fn p4runtime_shell_connects_by_tls() {
    let here = directory(&[("p.p4", PROGRAM)]);
    certificates(here.path());
    let tls = ["--tls-cert", "switch.pem", "--tls-key", "switch.key", "--tls-ca", "ca.pem"];
    let served = Served::start(&[&["--p4runtime", "127.0.0.1:0"], &tls[..]].concat(), here.path());
    let address = served.address.replace("127.0.0.1", "localhost");
    let shell = |certificate: &[&str]| {
        let mut shell = Command::new("timeout");
        shell.args(["120", super::running::PYTHON, "-m", "p4runtime_sh", "--grpc-addr", &address]);
        shell.args(["--device-id", "1", "--election-id", "0,1", "--ssl", "--cacert", "ca.pem"]);
        shell.args(certificate).current_dir(here.path()).stdin(Stdio::null());
        shell.env("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python").env_remove("PYTHONPATH");
        let said = shell.output().expect("it runs");
        String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned()
    };
    let own = shell(&["--cert", "operator.pem", "--private-key", "operator.key"]);
    assert!(own.contains("P4Runtime sh >>>") && !own.contains("CRITICAL"), "{own}");
    let without = shell(&[]);
    assert!(without.contains("Failed to establish session"), "{without}");
}
