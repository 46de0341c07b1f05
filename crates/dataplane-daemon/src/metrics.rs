//! The counters for Prometheus: `GET /metrics`.

use std::convert::Infallible;

use api::v1;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use crate::service::Orders;

/// Serves the counters of the reconciler that receives `orders`.
pub(crate) async fn serve(listener: TcpListener, orders: Orders) -> Infallible {
    let counted = move || {
        let orders = orders.clone();
        async move {
            let found = orders.counted().await;
            found.map(|found| text(&found)).map_err(|status| status.message().to_owned())
        }
    };
    telemetry::prometheus::serve(listener, counted).await
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Entry {
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Hook {
    name: String,
    /// `prerouting`, `forward`, `postrouting`, or `no_hook` if the kernel dropped it.
    hook: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Direction {
    tenant: String,
    /// `encapsulated` or `decapsulated`.
    direction: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    reason: String,
    /// `kernel` or `dropped`.
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Port {
    port: String,
    mode: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Info {
    /// `xdp` or `kernel`.
    dataplane: String,
}

/// Formats the counters as OpenMetrics text.
fn text(found: &v1::GetDataplaneResponse) -> String {
    let mut registry = Registry::with_prefix("kaido_dataplane");
    for (of, entries) in [("sid", &found.sids), ("policy", &found.policies)] {
        let (packets, bytes) = pair::<Entry>(&mut registry, of);
        for entry in entries {
            let labels = Entry { name: entry.name.clone() };
            if let (Some(counted), Some(length)) = (entry.packets, entry.bytes) {
                packets.get_or_create(&labels).inc_by(counted);
                bytes.get_or_create(&labels).inc_by(length);
            }
        }
    }
    let returned = Family::<Entry, Counter>::default();
    let help = "Packets that returned from a service function, by SID";
    registry.register("returned_packets", help, returned.clone());
    for entry in &found.sids {
        if let Some(counted) = entry.returned {
            returned.get_or_create(&Entry { name: entry.name.clone() }).inc_by(counted);
        }
    }
    drops(&mut registry, &found.sids);
    health(&mut registry, &found.sids);
    let (packets, bytes) = pair::<Direction>(&mut registry, "tenant");
    for tenant in &found.tenants {
        for (direction, counted) in [
            ("encapsulated", (tenant.encapsulated_packets, tenant.encapsulated_bytes)),
            ("decapsulated", (tenant.decapsulated_packets, tenant.decapsulated_bytes)),
        ] {
            let labels = Direction { tenant: tenant.name.clone(), direction };
            packets.get_or_create(&labels).inc_by(counted.0);
            bytes.get_or_create(&labels).inc_by(counted.1);
        }
    }
    let reasons = Family::<Outcome, Counter>::default();
    let help = "Packets that the program did not forward, by reason";
    registry.register("reason_packets", help, reasons.clone());
    for reason in &found.reasons {
        for (outcome, count) in [("kernel", reason.passed), ("dropped", reason.dropped)] {
            let labels = Outcome { reason: reason.reason.clone(), outcome };
            reasons.get_or_create(&labels).inc_by(count);
        }
    }
    let ports = Family::<Port, Gauge>::default();
    registry.register("port", "Ports, with their XDP mode", ports.clone());
    for port in &found.ports {
        let labels = Port { port: port.name.clone(), mode: port.mode.clone() };
        ports.get_or_create(&labels).set(1);
    }
    let info = Family::<Info, Gauge>::default();
    let help = "1; the label names the forwarder: xdp, or kernel (which has no counters)";
    registry.register("forwards", help, info.clone());
    info.get_or_create(&Info { dataplane: found.dataplane.clone() }).set(1);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = encode(&mut text, &registry);
    text
}

/// Adds the drops of service functions' packets by netfilter hook.
fn drops(registry: &mut Registry, sids: &[v1::DataplaneEntry]) {
    let family = Family::<Hook, Counter>::default();
    let help = "Packets that a service function's rules dropped, by SID and hook";
    registry.register("function_dropped_packets", help, family.clone());
    for entry in sids {
        let Some(found) = &entry.dropped else { continue };
        for (hook, count) in [
            ("prerouting", found.prerouting),
            ("forward", found.forward),
            ("postrouting", found.postrouting),
            ("no_hook", found.no_hook),
        ] {
            let labels = Hook { name: entry.name.clone(), hook };
            family.get_or_create(&labels).inc_by(count);
        }
    }
}

/// Adds the check results of service functions.
fn health(registry: &mut Registry, sids: &[v1::DataplaneEntry]) {
    let up = Family::<Entry, Gauge>::default();
    let help = "1 if a service function is up and its SID is announced";
    registry.register("function_up", help, up.clone());
    let (runs, failures) =
        (Family::<Entry, Counter>::default(), Family::<Entry, Counter>::default());
    registry.register("function_checks", "Runs of a service function's check", runs.clone());
    let help = "Runs of a service function's check that failed";
    registry.register("function_check_failures", help, failures.clone());
    let lacking = Family::<Entry, Counter>::default();
    let help = "Checks that could not be started; the state is unchanged";
    registry.register("function_checks_not_started", help, lacking.clone());
    for entry in sids {
        let Some(health) = &entry.health else { continue };
        let labels = Entry { name: entry.name.clone() };
        up.get_or_create(&labels).set(i64::from(health.up));
        runs.get_or_create(&labels).inc_by(health.runs);
        failures.get_or_create(&labels).inc_by(health.failures);
        lacking.get_or_create(&labels).inc_by(health.not_started);
    }
}

/// Registers counter families for packets and bytes.
fn pair<L>(registry: &mut Registry, of: &str) -> (Family<L, Counter>, Family<L, Counter>)
where
    L: Clone + std::hash::Hash + Eq + EncodeLabelSet + std::fmt::Debug + Send + Sync + 'static,
{
    let (packets, bytes) = (Family::default(), Family::default());
    registry.register(format!("{of}_packets"), format!("Packets by {of}"), packets.clone());
    let help = format!("Layer 3 bytes by {of}, as received");
    registry.register(format!("{of}_bytes"), help, bytes.clone());
    (packets, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_written_for_prometheus() {
        let entry = |name: &str, packets| v1::DataplaneEntry {
            name: name.into(),
            action: "End".into(),
            packets: Some(packets),
            bytes: Some(100 * packets),
            returned: None,
            health: None,
            dropped: None,
        };
        let health =
            v1::DataplaneHealth { runs: 9, failures: 2, not_started: 3, ..Default::default() };
        let dropped = v1::FunctionDrops { forward: 5, ..Default::default() };
        let function = v1::DataplaneEntry {
            health: Some(health),
            dropped: Some(dropped),
            ..entry("fd00::f:0/112", 0)
        };
        let found = v1::GetDataplaneResponse {
            sids: vec![entry("fd00::1/128", 7), function],
            tenants: vec![v1::DataplaneTenant {
                name: "blue".into(),
                encapsulated_packets: 3,
                ..Default::default()
            }],
            reasons: vec![v1::DataplaneReason {
                reason: "too-big".into(),
                dropped: 2,
                ..Default::default()
            }],
            dataplane: "xdp".into(),
            ..Default::default()
        };
        let text = text(&found);
        for line in [
            "kaido_dataplane_sid_packets_total{name=\"fd00::1/128\"} 7",
            "kaido_dataplane_sid_bytes_total{name=\"fd00::1/128\"} 700",
            "kaido_dataplane_tenant_packets_total{tenant=\"blue\",direction=\"encapsulated\"} 3",
            "kaido_dataplane_forwards{dataplane=\"xdp\"} 1",
            "kaido_dataplane_function_dropped_packets_total{name=\"fd00::f:0/112\",hook=\"forward\"} 5",
            "kaido_dataplane_function_up{name=\"fd00::f:0/112\"} 0",
            "kaido_dataplane_function_checks_total{name=\"fd00::f:0/112\"} 9",
            "kaido_dataplane_function_check_failures_total{name=\"fd00::f:0/112\"} 2",
            "kaido_dataplane_function_checks_not_started_total{name=\"fd00::f:0/112\"} 3",
            "kaido_dataplane_reason_packets_total{reason=\"too-big\",outcome=\"dropped\"} 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_value_without_a_counter_is_not_shown_as_zero() {
        let sid = v1::DataplaneEntry { name: "fd00::1/128".into(), ..Default::default() };
        let port =
            v1::DataplanePort { name: "l".into(), mode: String::new(), ..Default::default() };
        let text = text(&v1::GetDataplaneResponse {
            ports: vec![port],
            sids: vec![sid],
            dataplane: "kernel".into(),
            ..Default::default()
        });
        assert!(text.contains("kaido_dataplane_forwards{dataplane=\"kernel\"} 1"), "{text}");
        assert!(!text.contains("fd00::1"), "{text}");
    }
}
