//! Tenants files, with the programs that they name.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use model::topology::Topology;
use model::{Isolation, Tenant};
use output::xsk::{CheckedTenant, CheckedTenants, XskPort};
use p4_object::BadObject;
use sandbox::process::{Config, Kernel, Policy, VmFeed};
use xsk_daemon::Port;

use crate::cli::P4Program;
use crate::commands::mistakes::mistakes;
use crate::commands::program::{Loaded, load};
use crate::failure::Failure;
use crate::output::{Output, counted};

/// Maximum size of a tenants file in bytes.
const LARGEST: u64 = 16 << 20;
/// Interval for reading a VM's publication.
const READ_VM: Duration = Duration::from_millis(10);
/// Time for which a tenant's process polls for packets before it sleeps. The client's thread polls
/// as well, and a wake-up on another CPU takes longer than many packets (decision 54).
const SPIN: Duration = Duration::from_millis(1);

/// A tenant with its program.
pub(super) struct Loading {
    pub(super) tenant: Tenant,
    pub(super) loaded: Loaded,
}

/// Reads a tenants file, and loads the programs. Reports all mistakes.
pub(super) fn read(
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

/// Loads the program of a tenant, whose files are relative to `config`.
pub(super) fn program(
    tenant: &Tenant,
    config: &Path,
    include: &[PathBuf],
    output: &Output,
) -> Result<Loaded, Failure> {
    let file = beside(config, &tenant.program);
    let program = P4Program {
        file,
        include: include.to_vec(),
        defines: Vec::new(),
        externs: Vec::new(),
        of_tenant: true,
    };
    let entries = tenant.entries.as_deref().map(|file| beside(config, file));
    kernel(tenant, config)?;
    for named in [Some(&program.file), entries.as_ref()].into_iter().flatten() {
        // A pipe that a file names may never have a writer.
        private::open_regular(named)
            .with_context(|| format!("cannot read {}", named.display()))
            .map_err(Failure::usage)?;
    }
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

/// Checks the programs of a lab's nodes, relative to the topology file. Returns the first file that
/// cannot be read, by its name in the topology, with the reason. Nothing of a file outside of the topology
/// file's directory is shown: the author of a lab may not be permitted to read what its user may.
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
        let mut foreign = None;
        for file in [Some(&tenant.program), tenant.entries.as_ref()].into_iter().flatten() {
            match private::open_regular(&beside(lab, file)) {
                Err(why) => return Ok(Some((file.display().to_string(), why.to_string()))),
                Ok(open)
                    if !private::is_below(&open, &beside(lab, Path::new("."))).unwrap_or(false) =>
                {
                    foreign = Some(file);
                }
                Ok(_) => {}
            }
        }
        failures.extend(match foreign {
            Some(file) => foreign_program(tenant, lab, file).err(),
            None => program(tenant, lab, &[], output).err(),
        });
    }
    if failures.is_empty() { Ok(None) } else { Err(Failure::all(failures)) }
}

/// Checks a program that is outside of the lab's directory, or has its entries there, in `file`.
fn foreign_program(tenant: &Tenant, lab: &Path, file: &Path) -> Result<(), Failure> {
    // With JSON, all messages are in the failure, which is replaced.
    let quiet = Output::new(true);
    program(tenant, lab, &[], &quiet).map(drop).map_err(|_| {
        let (program, file) = (tenant.program.display(), file.display());
        let why = format!("{file} is outside of the topology file's directory: copy it there");
        Failure::usage(anyhow!("{program}: it has errors, which are not shown, because {why}"))
    })
}

/// Resolves a path that a tenants file names.
fn beside(config: &Path, file: &Path) -> PathBuf {
    config.parent().unwrap_or(Path::new("")).join(file)
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
        Isolation::Vm { kernel: None } => {
            let release = nix::sys::utsname::uname();
            let release = release.as_ref().map(|name| name.release().to_string_lossy());
            Path::new("/boot").join(format!("vmlinuz-{}", release.unwrap_or_default()))
        }
    };
    let cannot = || format!("cannot read the virtual machine's kernel {}", path.display());
    Kernel::open(&path).map(Some).with_context(cannot).map_err(Failure::usage)
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
