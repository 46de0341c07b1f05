//! Tenants files, with the programs that they name.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use model::topology::Topology;
use model::{Isolation, Tenant};
use output::xsk::{CheckedTenant, CheckedTenants, XskPort};
use p4_object::BadObject;
use sandbox::process::{Config, Kernel, Policy, VmFeed};
use xsk_daemon::Port;

use super::opened::{Files, beside};
use crate::cli::P4Program;
use crate::commands::mistakes::mistakes;
use crate::commands::program::{Loaded, load};
use crate::failure::Failure;
use crate::input::Opened;
use crate::output::{Output, counted};

/// Maximum size of a tenants file in bytes.
const LARGEST: u64 = 16 << 20;
/// Interval for reading a VM's publication.
const READ_VM: Duration = Duration::from_millis(10);
/// Time for which a tenant's process polls for packets before it sleeps. The client's thread polls
/// as well, and a wake-up on another CPU takes longer than many packets (decision 54).
const SPIN: Duration = Duration::from_millis(1);

/// A tenant with its program.
pub(in crate::commands) struct Loading {
    pub(in crate::commands) tenant: Tenant,
    pub(in crate::commands) loaded: Loaded,
}

/// Reads a tenants file, and loads the programs. Reports all mistakes.
pub(in crate::commands) fn read(
    file: &Path,
    include: &[PathBuf],
    output: &Output,
) -> Result<Vec<Loading>, Failure> {
    let text = crate::input::read(file, "tenants file", LARGEST)?;
    let name = file.display().to_string();
    let tenants =
        tenants_file::parse(&name, &text).map_err(|problems| mistakes(&problems, output))?;
    let (mut all, mut failures) = (Vec::new(), Vec::new());
    for tenant in tenants {
        match program(&tenant, file, include, output) {
            Ok(loaded) => all.push(Loading { tenant, loaded }),
            Err(failure) => failures.push(failure),
        }
    }
    if failures.is_empty() { Ok(all) } else { Err(Failure::all(failures)) }
}

/// Loads the program of a tenant, whose files are relative to `config`. A tenant may make its files links to
/// files that only this user may read: nothing of those is shown.
pub(in crate::commands) fn program(
    tenant: &Tenant,
    config: &Path,
    include: &[PathBuf],
    output: &Output,
) -> Result<Loaded, Failure> {
    kernel(tenant, config)?;
    let Files { opened, link } = Files::open(tenant, config).map_err(|(name, why)| {
        let cannot = format!("cannot read {}", beside(config, name).display());
        Failure::usage(anyhow::Error::new(why).context(cannot))
    })?;
    match link {
        None => load_files(tenant, config, include, opened, output),
        Some(link) => {
            let link = link.display();
            let why = format!("{link} is a symbolic link of another user: name the file itself");
            load_hidden(tenant, config, include, opened, &why)
        }
    }
}

/// Loads a program, and shows nothing of its files but `why`.
fn load_hidden(
    tenant: &Tenant,
    config: &Path,
    include: &[PathBuf],
    opened: Opened,
    why: &str,
) -> Result<Loaded, Failure> {
    // With JSON, all messages are in the failure, which is replaced.
    let quiet = Output::new(true);
    load_files(tenant, config, include, opened, &quiet).map_err(|_| {
        let program = tenant.program.display();
        Failure::usage(anyhow!("{program}: it has errors, which are not shown, because {why}"))
    })
}

/// Loads a program from open files.
pub(super) fn load_files(
    tenant: &Tenant,
    config: &Path,
    include: &[PathBuf],
    opened: Opened,
    output: &Output,
) -> Result<Loaded, Failure> {
    let program = P4Program {
        file: beside(config, &tenant.program),
        include: include.to_vec(),
        defines: Vec::new(),
        externs: Vec::new(),
        opened: Some(opened),
    };
    let entries = tenant.entries.as_deref().map(|file| beside(config, file));
    let loaded = load(&program, None, entries.as_deref(), output)?;
    let name = program.file.display();
    let bad = |why: BadObject| Failure::usage(anyhow!("{name}: {why}"));
    let object = p4_object::read(&loaded.program).map_err(bad)?;
    p4_object::verify(&object).map_err(bad)?;
    if tenant.vm_info.is_none() && !object.keys.is_empty() {
        let keys = object.keys.join(", ");
        let help = "add `vm_info`, to which the VM publishes (`kaido p4 publish`)";
        let why = anyhow!("{name}: the program reads {keys} of its tenant's VM: {help}");
        return Err(Failure::usage(why));
    }
    Ok(loaded)
}

/// Checks the programs of a lab's nodes, relative to the topology file, a path without symbolic links.
/// Returns the first file that cannot be read, by its name in the topology, with the reason. Nothing of a
/// file outside of the topology file's directory is shown: the author of a lab may not be permitted to read
/// what its user may.
pub(crate) fn check_programs(
    topology: &Topology,
    lab: &Path,
    output: &Output,
) -> Result<Option<(String, String)>, Failure> {
    let mut failures = Vec::new();
    // A program is compiled once, also if many nodes have it.
    let mut checked = HashSet::new();
    for tenant in topology.nodes.iter().flat_map(|node| &node.tenants) {
        let real = |file: &PathBuf| {
            let path = beside(lab, file);
            path.canonicalize().unwrap_or(path)
        };
        let files = (real(&tenant.program), tenant.entries.as_ref().map(real));
        if !checked.insert((files, tenant.isolation.clone(), tenant.vm_info.is_some())) {
            continue;
        }
        let files = match Files::open(tenant, lab) {
            Ok(files) => files,
            Err((name, why)) => return Ok(Some((name.display().to_string(), why.to_string()))),
        };
        let outside = files.outside(tenant, lab.parent().unwrap_or(Path::new("")));
        let loaded = kernel(tenant, lab).and_then(|_| match outside {
            None => load_files(tenant, lab, &[], files.opened, output),
            Some(file) => {
                let file = file.display();
                let why =
                    format!("{file} is outside of the topology file's directory: copy it there");
                load_hidden(tenant, lab, &[], files.opened, &why)
            }
        });
        failures.extend(loaded.err());
    }
    if failures.is_empty() { Ok(None) } else { Err(Failure::all(failures)) }
}

/// Checks a tenants file.
pub(super) fn check(file: &Path, include: &[PathBuf], output: &Output) -> Result<(), Failure> {
    let all = read(file, include, output)?;
    let port = |(interface, number): &(String, u32)| XskPort {
        interface: interface.clone(),
        number: *number,
    };
    let tenant = |one: &Loading| CheckedTenant {
        tenant: one.tenant.name.clone(),
        device_id: one.tenant.device,
        program: one.tenant.program.display().to_string(),
        ports: one.tenant.ports.iter().map(port).collect(),
        entries: one.loaded.updates().len(),
    };
    let checked = CheckedTenants { tenants: all.iter().map(tenant).collect() };
    output.print(&checked, |checked| {
        let tenants = counted(checked.tenants.len(), "tenant");
        format!("{}: no errors, {tenants}", file.display())
    })
}

/// Opens the kernel of a tenant's virtual machine, if it has one.
fn kernel(tenant: &Tenant, config: &Path) -> Result<Option<Kernel>, Failure> {
    let path = match &tenant.isolation {
        Isolation::Process | Isolation::Inline => return Ok(None),
        Isolation::Vm { kernel: Some(named) } => beside(config, named),
        Isolation::Vm { kernel: None } => running_kernel(),
    };
    Kernel::open(&path).map(Some).map_err(|why| {
        let help = "name another one with `kernel`, or `--kernel FILE`";
        let path = path.display();
        Failure::usage(anyhow!("cannot read the virtual machine's kernel {path}: {why}: {help}"))
    })
}

/// Returns the file of the running system's kernel.
fn running_kernel() -> PathBuf {
    let release = nix::sys::utsname::uname();
    let release = release.as_ref().map(|name| name.release().to_string_lossy());
    Path::new("/boot").join(format!("vmlinuz-{}", release.unwrap_or_default()))
}

/// Returns true if virtual machines find a kernel without `kernel`.
pub(crate) fn has_kernel() -> bool {
    Kernel::open(&running_kernel()).is_ok()
}

/// Converts a tenant into the daemon's.
pub(super) fn configure(tenant: &Tenant, file: &Path) -> Result<xsk_daemon::Tenant, Failure> {
    let policy = if tenant.passes_without_verdict { Policy::Open } else { Policy::Closed };
    let process = Config {
        policy,
        deadline: tenant.deadline,
        queues: tenant.queues,
        spin: SPIN,
        cpu: tenant.cpu,
        is_background: true,
        ..Config::default()
    };
    let kernel = kernel(tenant, file)?;
    let config = if kernel.is_some() { process.in_vm() } else { process };
    let port = |(interface, number): &(String, u32)| Port {
        interface: interface.clone(),
        number: *number,
    };
    Ok(xsk_daemon::Tenant {
        name: tenant.name.clone(),
        device: tenant.device,
        ports: tenant.ports.iter().map(port).collect(),
        config,
        hold: tenant.hold,
        is_inline: tenant.isolation == Isolation::Inline,
        kernel,
        vm: tenant.vm_info.as_deref().map(|vm| VmFeed::watch(&beside(file, vm), READ_VM)),
    })
}
