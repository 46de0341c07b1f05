//! Tenants -> the text of a tenants file.

use std::path::PathBuf;

use model::topology::DurationText;
use model::{Isolation, Tenant};
use serde_json::{Map, Value, json};

/// Returns a tenants file with these tenants. Paths must be UTF-8. It is JSON, a subset of YAML.
pub fn text(tenants: &[Tenant]) -> String {
    let all: Map<String, Value> =
        tenants.iter().map(|tenant| (tenant.name.clone(), body(tenant))).collect();
    format!("{:#}\n", json!({ "tenants": all }))
}

fn body(tenant: &Tenant) -> Value {
    let ports: Map<String, Value> =
        tenant.ports.iter().map(|(port, number)| (port.clone(), json!(number))).collect();
    let mut body = json!({
        "program": tenant.program,
        "ports": ports,
        "device": tenant.device,
        "default": if tenant.passes_without_verdict { "pass" } else { "drop" },
        "deadline": DurationText(tenant.deadline),
        "hold": DurationText(tenant.hold),
        "queues": tenant.queues,
        "isolation": match tenant.isolation {
            Isolation::Process => "process",
            Isolation::Inline => "inline",
            Isolation::Vm { .. } => "vm",
        },
    });
    let mut file = |key: &str, path: &Option<PathBuf>| {
        if let Some(path) = path {
            body[key] = json!(path);
        }
    };
    file("entries", &tenant.entries);
    file("vm_info", &tenant.vm_info);
    if let Isolation::Vm { kernel } = &tenant.isolation {
        file("kernel", kernel);
    }
    if let Some(cpu) = tenant.cpu {
        body["cpu"] = json!(cpu);
    }
    body
}
