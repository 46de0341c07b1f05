//! Invalid topology files on the command line.

use std::process::Stdio;

use serde_json::Value;
use testkit::{Machine, Said, check_error};

use crate::kaido;

const HEAD: &str = "name: bad\nnodes:\n  h1: {}\n  r1: {router: linux}\n  r2: {router: linux}\n";

/// Description, content, location of the error and part of its message.
fn mistakes() -> Vec<(&'static str, String, &'static str, &'static str)> {
    let with = |rest: &str| format!("{HEAD}{rest}");
    vec![
        ("malformed YAML", "name: bad\nnodes: {h1: [}\n".into(), "2:", ""),
        ("a name twice", format!("{HEAD}  r1: {{}}\n"), "6:3", "r1"),
        ("a link to nowhere", with("links: [r1-r9]\n"), "6:", "r9"),
        (
            "overlapping prefixes",
            with("links:\n- h1-r1: {ipv4: 10.9.0.0/16}\n- r1-r2: {ipv4: 10.9.3.0/24}\n"),
            "8:",
            "overlaps 10.9.0.0/16 of h1-r1",
        ),
        (
            "a locator outside its block",
            with("srv6: {block: fd00::/32}\n").replace(
                "r1: {router: linux}",
                "r1: {router: linux, srv6: {locator: fd77:0:1::/48}}",
            ),
            "4:",
            "fd00::/32",
        ),
        (
            "a demand larger than every link",
            with(
                "links: [h1-r1: {rate: 10mbit}, r1-r2: {rate: 10mbit}]\n\
                 applications: {big: {from: h1, to: r2, demand: 1gbit}}\n",
            ),
            "7:",
            "1gbit",
        ),
        (
            "a jitter that is more than the delay",
            with("links: [r1-r2: {delay: 10ms, jitter: 20ms}]\n"),
            "6:",
            "a jitter of 20ms is more than the delay of 10ms",
        ),
        (
            "XDP where nothing is forwarded",
            with("").replace("h1: {}", "h1: {dataplane: xdp}"),
            "3:",
            "`dataplane: xdp` is for routers, and `h1` is a host",
        ),
        (
            "rules that are not there",
            with("links: [r1-r2]\n").replace(
                "r1: {router: linux}",
                "r1: {router: linux, functions: {fw: {file: gone.nft}}}",
            ),
            "4:",
            "gone.nft: No such file",
        ),
        ("an unknown data plane", with("dataplane: ebpf\n"), "6:", "use kernel, xdp"),
        ("a key with a slip", with("linsk: []\n"), "6:1", "links"),
    ]
}

#[test]
fn root_a_mistake_is_shown_with_its_place_and_nothing_is_made() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    for (what, text, place, words) in mistakes() {
        let file = kaido.file("bad.yaml", &text);
        for command in ["up", "check"] {
            let said = kaido.run(&["lab", command, &file]);
            said.failed(2, &[&format!("{file}:{place}"), words]);
            assert!(said.stdout.is_empty(), "{what}: {said}");
        }
        let said = kaido.run(&["--json", "lab", "up", &file]);
        assert_eq!(said.code, Some(2), "{what}: {said}");
        let error: Value = serde_json::from_str(&said.stderr).unwrap();
        check_error(&error);
        let problem = &error["problems"][0];
        let at = format!("{}:{}", problem["line"], problem["column"]);
        assert!(at.starts_with(place), "{what}: {at} is not {place}: {said}");
        assert!(problem["message"].is_string() && error["error"].is_string(), "{what}: {said}");
    }
    before.assert_restored(&kaido);
}

#[test]
fn root_bad_files_of_rules_are_reported_before_anything_is_created() {
    let kaido = kaido();
    let before = Machine::now(&kaido);
    let path = |name: &str| kaido.directory().join(name);
    nix::unistd::mkfifo(&path("pipe.nft"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::fs::File::create(path("large.nft")).unwrap().set_len(20 << 30).unwrap();
    kaido.file("nul.nft", "table ip a {}\0");
    for (rules, why) in [
        ("pipe.nft", "it is not a regular file"),
        ("/dev/zero", "it is not a regular file"),
        (".", "it is not a regular file"),
        ("large.nft", "it is larger than 64 MiB"),
        ("nul.nft", "it has a NUL byte"),
    ] {
        let router = format!("r1: {{router: linux, functions: {{fw: {{file: {rules}}}}}}}");
        let text = HEAD.replace("r1: {router: linux}", &router);
        let file = kaido.file("bad.yaml", &format!("{text}links: [r1-r2]\n"));
        for command in ["check", "up"] {
            let said = kaido.run(&["lab", command, &file]);
            said.failed(2, &[&format!("{file}:4:"), rules, why]);
        }
    }
    before.assert_restored(&kaido);
}

/// Runs a command with this standard output.
fn into(kaido: &testkit::Kaido, output: impl Into<Stdio>, command: &[&str]) -> Said {
    let mut command = kaido.command(command);
    command.stdout(output).stderr(Stdio::piped());
    Said::from_output(format!("{command:?}"), command.spawn().unwrap().wait_with_output().unwrap())
}

#[test]
fn root_lost_output_is_a_failure_unless_the_reader_has_gone() {
    let kaido = kaido();
    let topology = kaido.file("fine.yaml", crate::topologies::CHAIN);
    let dataplane = kaido.file("dataplane.yaml", "ports: {eth0: {}}\n");
    for command in [
        &["lab", "check", &topology][..],
        &["--json", "lab", "check", &topology],
        &["lab", "graph", &topology],
        &["lab", "ls"],
        &["dataplane", "check", &dataplane],
        &["completions", "bash"],
        &["lab", "--help"],
        &["--version"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let says = ["cannot write the output: No space left on device"];
        into(&kaido, full, command).failed(1, &says);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let said = into(&kaido, writer, command);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said}");
    }
}

#[test]
fn root_a_file_that_is_not_a_topology_is_reported_as_such() {
    let kaido = kaido();
    let up = |file: &str| kaido.run(&["lab", "up", file]);
    up("/nonexistent/lab.yaml").failed(2, &["cannot read /nonexistent/lab.yaml", "No such file"]);
    up("/tmp").failed(2, &["/tmp is not a topology file"]);
    up("/dev/zero").failed(2, &["/dev/zero is not a topology file"]);
    for (command, what) in [
        (&["dataplane", "check", "/dev/zero"][..], "data plane file"),
        (&["dataplane", "apply", "/dev/zero"], "data plane file"),
        (&["dataplane", "run", "--file", "/dev/zero"], "data plane file"),
        (&["node", "--config", "/dev/zero"], "configuration"),
    ] {
        let says = format!("/dev/zero is not a {what}: neither a file nor a pipe");
        kaido.run(command).failed(2, &[&says]);
    }
    let file = kaido.file("bytes.yaml", "");
    std::fs::write(&file, [0xff, 0xfe, 0x00]).unwrap();
    up(&file).failed(2, &["bytes.yaml"]);
    let file = kaido.file("fine.yaml", crate::topologies::CHAIN);
    for name in ["Up", "../etc", "a b", ""] {
        let said = kaido.run(&["lab", "up", &file, "--name", name]);
        said.failed(2, &["is not a valid lab name"]);
    }
    kaido.run(&["lab", "down", "../.."]).failed(2, &["is not a valid lab name"]);
    kaido.run(&["demo", "--dataplane", "ebpf"]).failed(2, &["kernel, xdp"]);
    kaido.run(&["lab"]).failed(2, &["Usage"]);
    kaido.run(&["lab", "exec", "h1"]).failed(2, &["COMMAND"]);
}
