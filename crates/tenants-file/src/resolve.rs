//! Checks of names, numbers, and references between tenants.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use document::{Entries, Place, Report, Step, Tree, steps};
use model::{Isolation, Tenant, is_interface_name};

use crate::file::{DefaultText, FileText, IsolationText, TenantText};

/// Numbers of ports are below this: larger ones are of transmitted packets.
const PORTS: u32 = 256;
/// Maximum number of tenants of a client.
const MAX_TENANTS: usize = 64;
/// Number of queues of a socket: one for each direction.
const PER_SOCKET: u32 = 2;
/// Maximum number of queues of a tenant.
const MAX_QUEUES: u32 = 31;
const DEFAULT_QUEUES: u32 = 16;
const DEFAULT_DEADLINE: Duration = Duration::from_millis(100);
const DEFAULT_HOLD: Duration = Duration::from_secs(1);
/// Longer times would outlast the packets' connections.
const MAX_INTERVAL: Duration = Duration::from_secs(60);

/// Returns a tenant with a program on one interface, its port 1. Everything else is as in a file that
/// does not mention it; the number of queues is the largest.
pub fn of_interface(name: &str, program: &Path, interface: &str) -> Tenant {
    Tenant {
        name: name.to_owned(),
        program: program.to_owned(),
        ports: vec![(interface.to_owned(), 1)],
        entries: None,
        device: 1,
        passes_without_verdict: false,
        deadline: DEFAULT_DEADLINE,
        hold: DEFAULT_HOLD,
        queues: MAX_QUEUES,
        isolation: Isolation::Process,
        cpu: None,
        vm_info: None,
    }
}

pub(crate) fn resolve<'a>(
    tree: &'a Tree,
    file: FileText,
    report: Report<'a>,
) -> Result<Vec<Tenant>, Report<'a>> {
    let mut place = Place { tree, report };
    let FileText { tenants } = file;
    let all = self::tenants(&mut place, steps!["tenants"], &tenants);
    if place.report.is_empty() { Ok(all) } else { Err(place.report) }
}

/// Resolves the tenants of a client, and reports the invalid ones. `root`: path of the tenants in
/// the file.
pub fn tenants(place: &mut Place<'_>, root: &[Step], tenants: &Entries<TenantText>) -> Vec<Tenant> {
    // Owners of interfaces, and of device ids.
    let (mut interfaces, mut devices) = (HashMap::new(), HashMap::new());
    if tenants.0.len() > MAX_TENANTS {
        let message = format!("there are {} tenants", tenants.0.len());
        place.value(root, message, &format!("write at most {MAX_TENANTS}: each has a process"));
        return Vec::new();
    }
    let mut all = Vec::with_capacity(tenants.0.len());
    for (index, (name, text)) in tenants.0.iter().enumerate() {
        let at = [root, steps![index]].concat();
        if !model::is_lab_name(name) {
            let help = "use up to 31 of a-z, 0-9 and -, beginning with a letter";
            place.key(&at, format!("`{name}` cannot name a tenant"), help);
        }
        ports(place, &at, name, text, &mut interfaces);
        let device = text.device.unwrap_or(index as u64 + 1);
        if device == 0 {
            let at = [&at, steps!["device"].as_slice()].concat();
            place.value(&at, "0 is not a device id", "write a number from 1 on");
        } else if let Some(owner) = devices.insert(device, name.clone()) {
            let message = format!("device {device} is tenant `{owner}`'s");
            place.key(&at, message, "give each tenant a `device` of its own");
        }
        all.push(tenant(place, &at, name, device, text));
    }
    all
}

fn ports(
    place: &mut Place<'_>,
    tenant_at: &[Step],
    tenant: &str,
    text: &TenantText,
    interfaces: &mut HashMap<String, String>,
) {
    if text.ports.0.is_empty() {
        let help = "write at least one, such as `ports: {eth1: 1}`";
        let at = [tenant_at, steps!["ports"]].concat();
        place.key(&at, "the tenant has no ports", help);
    }
    let mut numbers = HashMap::new();
    for (at, (interface, number)) in text.ports.0.iter().enumerate() {
        let at = &[tenant_at, steps!["ports", at]].concat();
        if !is_interface_name(interface) {
            let help = "write a name as `ip link` shows it: up to 15 bytes";
            place.key(at, format!("`{interface}` cannot name an interface"), help);
        }
        if *number >= PORTS {
            let help = "write a number below 256: the program sees 256 more for packets that the \
                        client transmits";
            place.value(at, format!("{number} cannot be a port's number"), help);
        }
        if let Some(other) = numbers.insert(*number, interface) {
            let message = format!("`{other}` has the number {number} already");
            place.value(at, message, "give each port of a tenant a number of its own");
        }
        if let Some(owner) = interfaces.insert(interface.clone(), tenant.to_owned()) {
            let message = format!("`{interface}` is a port of tenant `{owner}`");
            place.key(at, message, "an interface has one tenant: remove it from the other");
        }
    }
}

fn tenant(
    place: &mut Place<'_>,
    tenant_at: &[Step],
    name: &str,
    device: u64,
    text: &TenantText,
) -> Tenant {
    let at = |key: &'static str| [tenant_at, steps![key]].concat();
    let mut time = |key: &'static str, given: Option<document::Time>, default: Duration| {
        let time = given.map_or(default, |time| time.0);
        if time > MAX_INTERVAL || (time.is_zero() && key == "deadline") {
            let help = "write a time of at most a minute, such as 100ms";
            place.value(&at(key), format!("this cannot be a tenant's {key}"), help);
        }
        time
    };
    let deadline = time("deadline", text.deadline, DEFAULT_DEADLINE);
    let hold = time("hold", text.hold, DEFAULT_HOLD);
    let queues = text.queues.unwrap_or(DEFAULT_QUEUES);
    if !(PER_SOCKET..=MAX_QUEUES).contains(&queues) {
        let message = format!("`queues` cannot be {queues}");
        place.value(&at("queues"), message, "write 2 to 31");
    }
    if let Some(cpu) = text.cpu.filter(|cpu| !(1..=10_000).contains(cpu)) {
        let message = format!("a process cannot have {cpu} percent of a CPU");
        place.value(&at("cpu"), message, "write 1 to 10000");
    }
    let kernel = text.kernel.as_ref().map(PathBuf::from);
    let has_kernel = kernel.is_some();
    let isolation = match text.isolation {
        Some(IsolationText::Inline) => Isolation::Inline,
        Some(IsolationText::Vm) => Isolation::Vm { kernel },
        Some(IsolationText::Process) | None => Isolation::Process,
    };
    if has_kernel && !matches!(isolation, Isolation::Vm { .. }) {
        let message = "`kernel` has no effect without a virtual machine";
        place.key(&at("kernel"), message, "remove `kernel`, or write `isolation: vm`");
    }
    if isolation == Isolation::Inline && text.cpu.is_some() {
        let message = "a program in the client's process has no limit of its own";
        let help = "remove `cpu`, or write `isolation: process`";
        place.key(&at("cpu"), message, help);
    }
    if text.program.is_empty() {
        let help = "write the file of a program, such as filter.p4";
        place.value(&at("program"), "the program has no name", help);
    }
    Tenant {
        name: name.to_owned(),
        program: PathBuf::from(&text.program),
        ports: text.ports.0.clone(),
        entries: text.entries.as_ref().map(PathBuf::from),
        device,
        passes_without_verdict: text.default == Some(DefaultText::Pass),
        deadline,
        hold,
        queues,
        isolation,
        cpu: text.cpu,
        vm_info: text.vm_info.as_ref().map(PathBuf::from),
    }
}
