//! `kaido doctor` lists the requirements of SRv6 in XDP and of service functions, and finds them
//! here.

use netlink::Namespace;
use testkit::{Kaido, value_of};

#[test]
fn root_the_doctor_checks_the_needs_of_xdp() {
    let kaido = Kaido::new(env!("CARGO_BIN_EXE_kaido"));
    // Ignore the exit code, because FRR may be missing: this test checks the lines.
    let said = kaido.run(&["--json", "doctor"]);
    let findings = value_of(&["doctor"], said.stdout.as_bytes());
    for what in ["SRv6 in XDP", "XDP on veth", "tables in XDP", "BPF file system"] {
        let finding = findings.as_array().unwrap().iter().find(|finding| finding["what"] == what);
        let finding = finding.unwrap_or_else(|| panic!("no line for {what}: {said}"));
        assert_eq!(finding["ok"], true, "{said}");
        assert_eq!(finding["required"], false, "{said}");
        assert_eq!(finding["needed_for"], "kaido dataplane");
    }
}

#[test]
fn root_the_doctor_says_which_settings_functions_need() {
    let kaido = Kaido::new(env!("CARGO_BIN_EXE_kaido"));
    let namespace = Namespace::unnamed().unwrap();
    let key = "ipv4/ip_early_demux";
    for (value, ok) in [("1", false), ("0", true)] {
        let look = || {
            netlink::sysctl::write(key, value).unwrap();
            kaido.run(&["--json", "doctor"])
        };
        let said = namespace.run(look).unwrap();
        let findings = value_of(&["doctor"], said.stdout.as_bytes());
        let of = |what: &str| {
            let found = findings.as_array().unwrap().iter().find(|one| one["what"] == what);
            found.unwrap_or_else(|| panic!("no line for {what}: {said}")).clone()
        };
        let setting = of("net.ipv4.ip_early_demux=0");
        assert_eq!(setting["ok"], ok, "{said}");
        assert_eq!(setting["fix"], "sysctl -w net.ipv4.ip_early_demux=0");
        assert_eq!(of("netfilter")["ok"], true, "{said}");
    }
}

#[test]
fn root_the_doctor_says_how_many_neighbors_all_namespaces_share() {
    let kaido = Kaido::new(env!("CARGO_BIN_EXE_kaido"));
    let said = kaido.run(&["--json", "doctor"]);
    let findings = value_of(&["doctor"], said.stdout.as_bytes());
    let limits = ["ipv4", "ipv6"].map(|family| {
        let value = netlink::sysctl::read(&format!("{family}/neigh/default/gc_thresh3")).unwrap();
        value.trim().parse::<u32>().unwrap()
    });
    let least = limits[0].min(limits[1]);
    let what = format!("{least} neighbors for all namespaces together");
    let finding = findings.as_array().unwrap().iter().find(|finding| finding["what"] == *what);
    let finding = finding.unwrap_or_else(|| panic!("no line for {what}: {said}"));
    assert_eq!((&finding["ok"], &finding["required"]), (&(least >= 8192).into(), &false.into()));
    let fix = finding["fix"].as_str().unwrap();
    assert!(fix.contains("sysctl -w net.ipv4.neigh.default.gc_thresh3="), "{fix}");
}
