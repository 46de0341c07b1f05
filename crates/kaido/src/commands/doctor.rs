//! `kaido doctor`: tests this machine for everything that Kaido needs.

use std::path::Path;
use std::process::{Command, ExitCode};

use api::v1::GetDataplaneResponse;
use output::doctor::Finding;

use crate::failure::Done;
use crate::output::{Output, counted, table};

pub(crate) fn run(output: &Output) -> Done {
    let mut findings = vec![
        finding("root", nix::unistd::geteuid().is_root(), "everything", "run kaido with sudo"),
        finding(
            "IPv6",
            Path::new("/proc/sys/net/ipv6").is_dir() && !is_disabled(),
            "everything",
            "boot without ipv6.disable=1",
        ),
    ];
    findings.extend(doctor::probe().into_iter().map(|probe| Finding {
        what: probe.what.into(),
        ok: probe.ok,
        required: probe.required,
        needed_for: probe.needed_for,
        fix: probe.fix,
    }));
    findings.extend(dataplane_daemon::probe::function_settings().into_iter().map(|setting| {
        Finding {
            ok: setting.ok,
            required: false,
            needed_for: "service functions",
            fix: format!("sysctl -w {}", setting.wanted),
            what: setting.wanted,
        }
    }));
    findings.extend(hmac());
    if let Some(dataplane) = super::dataplane::running() {
        findings.extend(dataplane.warnings.iter().map(|warning| edge(warning)));
        findings.extend(rules(&dataplane));
    }
    findings.extend(neighbors());
    findings.push(isolation());
    findings.push(Finding {
        required: false,
        ..finding(
            "netfilter",
            has_netfilter(),
            "service functions",
            "apt-get install nftables, and a kernel with NF_TABLES",
        )
    });
    findings.push(Finding {
        required: false,
        ..finding(
            "AF_XDP sockets",
            has_af_xdp(),
            "kaido xsk, kaido p4 attach",
            "a kernel with XDP_SOCKETS",
        )
    });
    findings.push(Finding {
        required: false,
        ..finding(
            "Open vSwitch",
            openvswitch::Installation::find().is_ok(),
            "switches of labs",
            "apt-get install openvswitch-switch, or unpacked packages in PATH (docs/xsk.md)",
        )
    });
    findings.push(Finding {
        required: false,
        ..finding(
            "QEMU",
            Path::new(sandbox::process::QEMU).exists() && super::xsk::has_kernel(),
            "programs with `isolation: vm`",
            "apt-get install qemu-system-x86; without a kernel in /boot, name one (`kernel`)",
        )
    });
    for (program, package, needed_for) in [
        ("vtysh", "frr", "routers that run FRR"),
        ("iperf3", "iperf3", "the demo"),
        ("ping", "iputils-ping", "the demo"),
        ("tcpdump", "tcpdump", "kaido lab capture"),
    ] {
        let fix = format!("apt-get install {package}, or make deps");
        findings.push(Finding {
            required: false,
            ..finding(program, is_installed(program), needed_for, &fix)
        });
    }
    output.print(&findings, |findings| {
        let row = |finding: &Finding| {
            let state = match (finding.ok, finding.required) {
                (true, _) => "ok",
                (false, true) => "MISSING",
                (false, false) => "optional",
            };
            let fix = if finding.ok { String::new() } else { finding.fix.clone() };
            vec![finding.what.clone(), state.into(), finding.needed_for.into(), fix]
        };
        let table = table(&["WHAT", "STATE", "NEEDED FOR", "FIX"], findings.iter().map(row));
        format!("{table}\n\n{}", summary(findings))
    })?;
    let sound = findings.iter().all(|finding| finding.ok || !finding.required);
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Counts the findings: `24 ok, 1 missing, 2 warnings`. Something optional that is missing is a
/// warning.
fn summary(findings: &[Finding]) -> String {
    let ok = findings.iter().filter(|finding| finding.ok).count();
    let missing = findings.iter().filter(|finding| !finding.ok && finding.required).count();
    format!("{ok} ok, {missing} missing, {}", counted(findings.len() - ok - missing, "warning"))
}

fn finding(what: &'static str, ok: bool, needed_for: &'static str, fix: &str) -> Finding {
    Finding { what: what.into(), ok, required: true, needed_for, fix: fix.into() }
}

/// Lists the interfaces on which the kernel requires an HMAC: XDP leaves packets with an SRH to it
/// there.
fn hmac() -> Option<Finding> {
    let (interfaces, all_alone) = dataplane_daemon::probe::hmac();
    let line = |what: String, ok, fix: &str| {
        Some(Finding {
            what,
            ok,
            required: false,
            needed_for: "HMAC in segment routing headers",
            fix: fix.into(),
        })
    };
    if all_alone {
        let what = "net.ipv6.conf.all.seg6_require_hmac alone requires nothing".into();
        let fix = "sysctl -w net.ipv6.conf.INTERFACE.seg6_require_hmac=1 for each interface";
        return line(what, false, fix);
    }
    if interfaces.is_empty() {
        return None;
    }
    line(format!("HMAC required on {}", interfaces.join(", ")), true, "")
}

/// A place where the running data plane leaves the SR domain open.
fn edge(warning: &str) -> Finding {
    Finding {
        required: false,
        ..finding(
            "edge of the SR domain",
            false,
            "blocking packets to SIDs from outside the SR domain",
            warning,
        )
    }
}

/// Lists rules of netfilter that do not do for the data plane's functions what they look like.
fn rules(dataplane: &GetDataplaneResponse) -> Vec<Finding> {
    if !dataplane.sids.iter().any(|sid| sid.action.starts_with("End.AN.NF")) {
        return Vec::new();
    }
    let ports = dataplane.ports.iter().map(|port| port.name.as_str()).collect();
    let found = dataplane_daemon::probe::function_rules(&ports);
    let line = |warning: &String| Finding {
        required: false,
        ..finding("rules of netfilter", false, "service functions", warning)
    };
    found.iter().map(line).collect()
}

/// Reads the limit of neighbor entries, which all network namespaces of the machine share.
fn neighbors() -> Option<Finding> {
    const ENOUGH: u32 = 8192;
    let limit = |family| {
        let value = netlink::sysctl::read(&format!("{family}/neigh/default/gc_thresh3"));
        value.ok()?.trim().parse::<u32>().ok()
    };
    let least = [limit("ipv4"), limit("ipv6")].into_iter().flatten().min()?;
    Some(Finding {
        what: format!("{least} neighbors for all namespaces together"),
        ok: least >= ENOUGH,
        required: false,
        needed_for: "namespaces with many neighbor entries",
        fix: ["ipv4", "ipv6"]
            .map(|family| format!("sysctl -w net.{family}.neigh.default.gc_thresh3={}", 8 * ENOUGH))
            .join(", "),
    })
}

/// Tests the isolation of tenants' programs with one process.
fn isolation() -> Finding {
    use sandbox::process::{Isolation, Launcher, probe};
    let got = Launcher::installed().map_err(|why| why.to_string());
    let got = got.and_then(|launcher| probe(&launcher).map_err(|why| why.to_string()));
    let fix = match &got {
        Ok(isolation) => format!(
            "without {}: run as root outside of a container, or `kaido p4 run --isolation reduced`",
            isolation.lacks(Isolation::REQUIRED)
        ),
        Err(why) => why.clone(),
    };
    let ok = got.is_ok_and(|isolation| isolation.has(Isolation::REQUIRED));
    let required = false;
    Finding { required, ..finding("isolation", ok, "tenants' programs (kaido p4 run)", &fix) }
}

/// Returns true if the kernel has registered the protocol of AF_XDP.
fn has_af_xdp() -> bool {
    let protocols = std::fs::read_to_string("/proc/net/protocols").unwrap_or_default();
    protocols.lines().any(|line| line.starts_with("XDP "))
}

fn has_netfilter() -> bool {
    let list = Command::new("nft").args(["list", "tables"]).output();
    list.is_ok_and(|listed| listed.status.success())
}

fn is_disabled() -> bool {
    std::fs::read_to_string("/sys/module/ipv6/parameters/disable")
        .is_ok_and(|value| value.trim() == "1")
}

fn is_installed(program: &str) -> bool {
    Command::new("sh")
        .args(["-c", "command -v \"$0\" >/dev/null", program])
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_counted() {
        let [found, missing] = [true, false].map(|ok| finding("x", ok, "everything", "get it"));
        let optional = Finding { required: false, ..missing.clone() };
        assert_eq!(summary(&[found, missing, optional]), "1 ok, 1 missing, 1 warning");
    }
}
