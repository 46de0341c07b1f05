//! `kaido p4 attach`.

use std::collections::{BTreeMap, HashSet};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::anyhow;
use model::{Isolation, is_interface_name};

use crate::cli::{P4Attach, PacketFate, ProgramPlace};
use crate::commands::xsk::client::Client;
use crate::commands::xsk::served::Served;
use crate::commands::xsk::tenants::{self, Loading};
use crate::commands::xsk::wire;
use crate::failure::{Done, Failure};
use crate::output::Output;

/// This program, also if its file has been replaced.
const MYSELF: &str = "/proc/self/exe";
/// Begin of the names of new interfaces.
const PREFIX: &str = "p4-";

pub(crate) fn run(options: &P4Attach, output: &Output) -> Done {
    let here = Path::new("");
    let (tenants, config) = match (&options.config, &options.program, &options.interface) {
        (Some(config), ..) => (tenants::read(config, &options.include, output)?, config.as_path()),
        (None, Some(program), Some(interface)) => {
            (vec![one(options, program, interface, output)?], here)
        }
        _ => {
            return Err(Failure::usage(anyhow!(
                "name a program and an interface, or a tenants file"
            )));
        }
    };
    let interfaces = tenants.iter().flat_map(|one| &one.tenant.ports);
    let interfaces: Vec<&str> = interfaces.map(|(interface, _)| interface.as_str()).collect();
    let ports = ports(options, &interfaces)?;
    let first = interfaces.first().filter(|name| model::is_lab_name(name));
    let name = match &options.name {
        Some(name) => name.clone(),
        None if options.config.is_none() => (*first.unwrap_or(&"default")).to_owned(),
        None => "default".to_owned(),
    };
    let served = Served {
        name: &name,
        tenants,
        config,
        metrics: options.metrics,
        executable: "kaido p4 attach".to_owned(),
        is_strict: true,
    };
    served.run(|inherited| {
        let mut command = Command::new(MYSELF);
        command.arg0("kaido").arg("xsk-wire");
        command.args(output.is_json().then_some("--json")).args(&ports);
        // Ctrl-C is for this process, which ends the other one.
        command.process_group(0);
        Client::spawn(command, inherited)
    })
}

/// Returns the tenant of one interface, with its program.
fn one(
    options: &P4Attach,
    program: &Path,
    interface: &str,
    output: &Output,
) -> Result<Loading, Failure> {
    if !is_interface_name(interface) {
        let help = "write a name as `ip link` shows it, up to 15 bytes";
        return Err(Failure::usage(anyhow!("`{interface}` cannot name an interface: {help}")));
    }
    if !model::is_lab_name(&options.tenant) {
        let help = "use up to 31 of a-z, 0-9 and -, beginning with a letter";
        return Err(Failure::usage(anyhow!("`{}` cannot name a tenant: {help}", options.tenant)));
    }
    if options.kernel.is_some() && options.isolation != ProgramPlace::Vm {
        let help = "add it, or remove `--kernel`";
        return Err(Failure::usage(anyhow!("`--kernel` needs `--isolation vm`: {help}")));
    }
    let mut tenant = tenants_file::of_interface(&options.tenant, program, interface);
    tenant.entries.clone_from(&options.entries);
    tenant.isolation = match options.isolation {
        ProgramPlace::Process => Isolation::Process,
        ProgramPlace::Inline => Isolation::Inline,
        ProgramPlace::Vm => Isolation::Vm { kernel: options.kernel.clone() },
    };
    tenant.passes_without_verdict = options.default == PacketFate::Pass;
    let loaded = tenants::program(&tenant, Path::new(""), &options.include, output)?;
    Ok(Loading { tenant, loaded })
}

/// Returns the arguments of the process between the interfaces: each with that of its users.
fn ports(options: &P4Attach, interfaces: &[&str]) -> Result<Vec<String>, Failure> {
    let mut named = BTreeMap::new();
    let peers = options.peer.iter().map(|text| ("--peer", wire::NEW, text));
    let others = options.to.iter().map(|text| ("--to", wire::EXISTING, text));
    for (option, kind, text) in peers.chain(others) {
        let (interface, name) = match (text.split_once('='), interfaces) {
            (Some(pair), _) => pair,
            (None, [only]) => (*only, text.as_str()),
            (None, _) => {
                let why = anyhow!("`{option} {text}` names no interface: write INTERFACE={text}");
                return Err(Failure::usage(why));
            }
        };
        if !interfaces.contains(&interface) {
            let why = anyhow!("`{option} {text}`: `{interface}` is not a port of a tenant");
            return Err(Failure::usage(why));
        }
        if named.insert(interface, (kind, name.to_owned())).is_some() {
            let why = anyhow!("`{interface}` has two peers: write one `--peer` or `--to`");
            return Err(Failure::usage(why));
        }
    }
    let mut taken: HashSet<String> = interfaces.iter().map(|name| (*name).to_owned()).collect();
    let mut all = Vec::with_capacity(interfaces.len());
    for interface in interfaces {
        let default = || (wire::NEW, format!("{PREFIX}{interface}"));
        let (kind, name) = named.remove(interface).unwrap_or_else(default);
        if !is_interface_name(&name) {
            let option = if kind == wire::NEW { "--peer" } else { "--to" };
            let help = format!("`{option} {interface}=NAME` takes one of up to 15 bytes");
            let why = anyhow!("`{name}` cannot name the peer of `{interface}`: {help}");
            return Err(Failure::usage(why));
        }
        if !taken.insert(name.clone()) {
            let why = anyhow!(
                "`{name}` would be the name of two interfaces: write another `--peer` or `--to`"
            );
            return Err(Failure::usage(why));
        }
        all.extend([(*interface).to_owned(), kind.to_owned(), name]);
    }
    Ok(all)
}
