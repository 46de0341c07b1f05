//! Layering: crates depend downward only (ARCHITECTURE.md). Checked with `cargo metadata`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde::Deserialize;

/// Layers, lowest first. A crate depends only on crates of lower layers.
const FLOORS: [&[&str]; 12] = [
    &["document", "p4-object", "p4-syntax", "srv6", "wire"],
    &["model", "p4"],
    &["dataplane-file", "tenants-file"],
    &["topology-file"],
    &["private"],
    &[
        "bpf",
        "capture",
        "confine",
        "grpc-bounds",
        "netlink",
        "openvswitch",
        "sandbox-queue",
        "serve",
        "vminfo",
        "xsk",
    ],
    &["drawing", "emulator", "import", "p4-ebpf", "pathfinder"],
    &[
        "api",
        "dataplane",
        "doctor",
        "output",
        "p4info",
        "sandbox",
        "store",
        "telemetry",
        "xsk-link",
    ],
    &[
        "node",
        "controller",
        "emulator-daemon",
        "dataplane-daemon",
        "p4runtime",
        "publisher",
        "xsk-client",
    ],
    &["interposer", "lab", "xsk-daemon", "xsk-wire"],
    &["bench", "supervisor", "verify"],
    &["kaido"],
];

/// Layers of pure values and logic, without `unsafe`.
const SAFE_FLOORS: [usize; 5] = [0, 1, 2, 3, 6];

/// Crates outside the layers. Shipped crates never depend on them.
const OUTSIDE: [&str; 2] = ["testkit", "xtask"];

/// The relevant part of `cargo metadata`.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// `dev` or `build`; absent for a normal dependency.
    kind: Option<String>,
    /// Present only for dependencies within the workspace.
    path: Option<PathBuf>,
}

pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()
        .context("cargo metadata does not start")?;
    if !output.status.success() {
        bail!("cargo metadata fails: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: Metadata =
        serde_json::from_slice(&output.stdout).context("cargo metadata answers otherwise")?;
    let mut problems = upward_edges(&metadata);
    for package in &metadata.packages {
        if floor(short(&package.name)).is_some_and(|floor| SAFE_FLOORS.contains(&floor)) {
            let file = package.manifest_path.with_file_name("src").join("lib.rs");
            let text = std::fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            if !forbids_unsafe(&text) {
                problems.push(format!("{} lacks #![forbid(unsafe_code)]", file.display()));
            }
        }
    }
    if !problems.is_empty() {
        bail!("the floors are not kept:\n  {}", problems.join("\n  "));
    }
    println!("{} crates, all depend downward", metadata.packages.len());
    Ok(())
}

/// Returns all dependencies within the workspace that do not point to a lower layer, and all crates
/// without a layer.
fn upward_edges(metadata: &Metadata) -> Vec<String> {
    let mut problems = Vec::new();
    for package in &metadata.packages {
        let name = short(&package.name);
        if OUTSIDE.contains(&name) {
            continue;
        }
        let Some(from) = floor(name) else {
            problems.push(format!("crate {name} is on no floor: add it to FLOORS in {}", file!()));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|d| d.path.is_some()) {
            let other = short(&dependency.name);
            if OUTSIDE.contains(&other) {
                if dependency.kind.as_deref() != Some("dev") {
                    problems.push(format!("{name} -> {other}: only a dev-dependency may be"));
                }
                continue;
            }
            // A crate without a layer is reported as a package.
            if let Some(to) = floor(other).filter(|&to| to >= from) {
                problems.push(format!(
                    "{name} (floor {from}) -> {other} (floor {to}): only lower floors"
                ));
            }
        }
    }
    problems
}

fn floor(name: &str) -> Option<usize> {
    FLOORS.iter().position(|crates| crates.contains(&name))
}

/// Returns the directory name: package names have a prefix.
fn short(package: &str) -> &str {
    package.strip_prefix("kaido-").unwrap_or(package)
}

fn forbids_unsafe(text: &str) -> bool {
    text.lines().any(|line| line.trim() == "#![forbid(unsafe_code)]")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name and kind of a dependency.
    type Edge = (&'static str, Option<&'static str>);

    /// Returns the problems of packages with these names and dependencies.
    fn problems(packages: &[(&str, &[Edge])]) -> Vec<String> {
        let packages = packages.iter().map(|(name, dependencies)| Package {
            name: (*name).into(),
            manifest_path: PathBuf::new(),
            dependencies: dependencies
                .iter()
                .map(|(name, kind)| Dependency {
                    name: (*name).into(),
                    kind: kind.map(Into::into),
                    path: Some(PathBuf::new()),
                })
                .collect(),
        });
        upward_edges(&Metadata { packages: packages.collect() })
    }

    #[test]
    fn downward_is_right() {
        let found = problems(&[
            ("kaido", &[("kaido-node", None), ("kaido-testkit", Some("dev"))]),
            ("kaido-node", &[("kaido-wire", None), ("kaido-api", None)]),
            ("kaido-testkit", &[("kaido", None)]),
            ("xtask", &[("kaido-model", None)]),
        ]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn upward_and_sideways_are_wrong() {
        let found = problems(&[
            ("kaido-model", &[("kaido-dataplane", None)]),
            ("kaido-dataplane", &[("kaido-store", Some("dev"))]),
        ]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("model (floor 1) -> dataplane (floor 7)"), "{found:?}");
        assert!(found[1].contains("dataplane (floor 7) -> store (floor 7)"), "{found:?}");
    }

    #[test]
    fn test_code_does_not_ship() {
        let found = problems(&[("kaido-lab", &[("kaido-testkit", None)])]);
        assert!(found[0].contains("dev-dependency"), "{found:?}");
    }

    #[test]
    fn an_unknown_crate_is_refused_with_the_file_to_edit() {
        let found = problems(&[("kaido-attic", &[])]);
        assert!(found[0].contains("attic") && found[0].contains("layers.rs"), "{found:?}");
    }

    #[test]
    fn others_crates_are_free() {
        let metadata = r#"{"packages": [{"name": "kaido-wire", "manifest_path": "x",
            "dependencies": [{"name": "kaido", "kind": null, "path": null}]}]}"#;
        assert_eq!(upward_edges(&serde_json::from_str(metadata).unwrap()), [""; 0]);
    }

    #[test]
    fn a_comment_does_not_forbid_unsafe() {
        assert!(forbids_unsafe("//! Docs.\n#![forbid(unsafe_code)]\n"));
        assert!(!forbids_unsafe("// #![forbid(unsafe_code)]\n#![warn(unsafe_code)]\n"));
    }
}
