//! Tenants files with mistakes, and programs that cannot be used.

use testkit::Said;

use super::{TABLE, TENANTS, assert_empty, kaido, run};

/// Asserts that a tenants file is refused by both commands, which report the same.
#[track_caller]
fn refused(tenants: &str, files: &[(&str, &[u8])], words: &[&str]) -> Said {
    let kaido = kaido();
    let config = kaido.file("tenants.yaml", tenants);
    for (name, bytes) in files {
        std::fs::write(kaido.directory().join(name), bytes).expect("a file");
    }
    run(&kaido, &[], &["true"]).failed(2, words);
    assert_empty(&kaido);
    kaido.run(&["xsk", "check", &config]).failed(2, words);
    let said = kaido.run(&["--json", "xsk", "check", &config]);
    said.failed(2, &[]);
    said
}

#[test]
fn all_mistakes_of_a_tenants_file_are_reported() {
    let wrong = "tenants:\n\
                 \x20 blue: {program: firewall.p4, ports: {eth1: 1}}\n\
                 \x20 Red: {program: table.p4, ports: {eth1: 300}}\n\
                 \x20 green: {program: table.p4, ports: {}, queues: 99}\n";
    let words = [
        "tenants.yaml has errors",
        "`Red` cannot name a tenant",
        "`eth1` is a port of tenant `blue`",
        "300 cannot be a port's number",
        "the tenant has no ports",
        "`queues` cannot be 99",
    ];
    let json = refused(wrong, &[], &words);
    let error: serde_json::Value = serde_json::from_str(&json.stderr).expect("JSON");
    assert_eq!(error["problems"].as_array().map(Vec::len), Some(5), "{error}");
    refused("", &[], &["the file is empty"]);
}

#[test]
fn mistakes_of_all_programs_are_reported() {
    let misspelt = TABLE.replace("hdr.h.b = to", "hdr.h.bb = to");
    let wrong = TENANTS.replace("firewall", "none").replace("table", "misspelt");
    let words = ["cannot read ", "none.p4", "has no `bb`", "misspelt.p4: 1 error"];
    let json = refused(&wrong, &[("misspelt.p4", misspelt.as_bytes())], &words);
    let error: serde_json::Value = serde_json::from_str(&json.stderr).expect("JSON");
    assert_eq!(error["diagnostics"].as_array().map(Vec::len), Some(1), "{error}");
}

#[test]
fn a_program_that_does_not_load_is_refused() {
    let kaido = kaido();
    let table = kaido.directory().join("table.p4");
    kaido.ok(&["p4", "compile", table.to_str().expect("it is ASCII")]);
    let object = std::fs::read(table.with_extension("o")).expect("it was written");
    // A helper that does not exist.
    let call = [0x85, 0, 0, 0, 1, 0, 0, 0];
    let at = object.windows(8).position(|window| window == call).expect("it looks something up");
    let mut odd = object;
    odd[at + 4] = 99;
    let tenants = TENANTS.replace("table.p4", "odd.o");
    refused(&tenants, &[("odd.o", &odd)], &["odd.o: ", "no helper 99"]);
    refused(&tenants, &[("odd.o", b"no object")], &["odd.o: it is not a valid ELF file"]);
    let entries = TENANTS.replace("device: 7", "entries: rules.txt");
    let words = ["rules.txt: line 2: no table `odd`"];
    refused(&entries, &[("rules.txt", b"# none\nodd a=1 drop\n")], &words);
}

#[test]
fn a_virtual_machine_without_a_kernel_is_refused() {
    let tenants = TENANTS.replace("device: 7", "isolation: vm, kernel: vmlinuz");
    let kernel = "cannot read the virtual machine's kernel ";
    refused(&tenants, &[], &[kernel, "vmlinuz: No such file"]);
    refused(&tenants, &[("vmlinuz", b"text")], &[kernel, "vmlinuz: it is not a bzImage of Linux"]);
}

#[test]
fn a_program_without_its_vm_is_refused() {
    let vm = include_bytes!("../../../p4/tests/programs/vm_filter.p4");
    let tenants = TENANTS.replace("table.p4", "vm.p4");
    let words = ["vm.p4: the program reads ", "net.utilisation", "add `vm_info`"];
    refused(&tenants, &[("vm.p4", vm)], &words);
}

#[test]
fn a_pipe_is_not_waited_for() {
    let kaido = kaido();
    let path = kaido.directory().join("pipe.p4");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a directory takes it");
    let config = kaido.file("tenants.yaml", &TENANTS.replace("table.p4", "pipe.p4"));
    kaido.run(&["xsk", "check", &config]).failed(2, &["pipe.p4"]);
}

#[test]
fn a_valid_file_is_checked() {
    let kaido = kaido();
    let config =
        kaido.file("tenants.yaml", &TENANTS.replace("device: 7", "device: 7, entries: rules.txt"));
    kaido.file("rules.txt", "c.t hdr.h.a=1 set(5)\n");
    let said = kaido.ok(&["xsk", "check", &config]);
    assert_eq!(said, format!("{config}: no errors, 2 tenants\n"));
    let said = kaido.json(&["xsk", "check", &config]);
    let red = &said["tenants"][1];
    assert_eq!((&red["tenant"], &red["device_id"]), (&"red".into(), &7.into()), "{said}");
    assert_eq!((&red["entries"], &red["ports"][1]["number"]), (&1.into(), &5.into()), "{said}");
}

/// Runs in the directory of examples, which the documentation names.
#[test]
fn the_example_is_valid() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs/xsk/tenants.yaml");
    let said = kaido().json(&["xsk", "check", example]);
    assert_eq!(said["tenants"][1]["entries"], 1, "{said}");
}
