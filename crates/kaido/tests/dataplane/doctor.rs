//! `kaido doctor` says what SRv6 in XDP needs and finds it here.

use testkit::Kaido;

#[test]
fn root_the_doctor_finds_what_xdp_needs() {
    let kaido = Kaido::new(env!("CARGO_BIN_EXE_kaido"));
    // FRR may be missing: what is at stake are the lines.
    let said = kaido.run(&["--json", "doctor"]);
    let findings: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    for what in ["SRv6 in XDP", "XDP on veth", "tables in XDP", "BPF file system"] {
        let finding = findings.as_array().unwrap().iter().find(|finding| finding["what"] == what);
        let finding = finding.unwrap_or_else(|| panic!("no line for {what}: {said}"));
        assert_eq!(finding["ok"], true, "{said}");
        assert_eq!(finding["required"], false, "{said}");
        assert_eq!(finding["needed_for"], "kaido dataplane");
    }
}
