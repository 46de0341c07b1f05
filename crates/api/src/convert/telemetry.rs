//! Measurements of nodes.

use model::{Bandwidth, Color, FunctionState, InterfaceLoad, Telemetry};

use super::bandwidth;
use crate::v1;

impl From<&InterfaceLoad> for v1::InterfaceLoad {
    fn from(load: &InterfaceLoad) -> Self {
        Self {
            name: load.name.clone(),
            up: load.up,
            capacity_bps: load.capacity.map_or(0, Bandwidth::bps),
            rate_bps: load.rate_bps,
            loss: load.loss,
            backlog_bytes: load.backlog_bytes,
            congested: load.congested,
        }
    }
}

impl From<v1::InterfaceLoad> for InterfaceLoad {
    fn from(load: v1::InterfaceLoad) -> Self {
        Self {
            name: load.name,
            up: load.up,
            capacity: bandwidth(load.capacity_bps),
            rate_bps: load.rate_bps,
            loss: load.loss,
            backlog_bytes: load.backlog_bytes,
            congested: load.congested,
        }
    }
}

impl From<&Telemetry> for v1::Telemetry {
    fn from(telemetry: &Telemetry) -> Self {
        let load =
            |&(color, rate_bps): &(Color, u64)| v1::ApplicationLoad { color: color.0, rate_bps };
        Self {
            sampled_at_ns: telemetry.sampled_at_ns,
            interfaces: telemetry.interfaces.iter().map(Into::into).collect(),
            applications: telemetry.applications.iter().map(load).collect(),
            functions: telemetry
                .functions
                .iter()
                .map(|state| v1::FunctionState { name: state.name.clone(), up: state.up })
                .collect(),
        }
    }
}

impl From<v1::Telemetry> for Telemetry {
    fn from(telemetry: v1::Telemetry) -> Self {
        let load = |load: v1::ApplicationLoad| (Color(load.color), load.rate_bps);
        Self {
            sampled_at_ns: telemetry.sampled_at_ns,
            interfaces: telemetry.interfaces.into_iter().map(Into::into).collect(),
            applications: telemetry.applications.into_iter().map(load).collect(),
            functions: telemetry
                .functions
                .into_iter()
                .map(|state| FunctionState { name: state.name, up: state.up })
                .collect(),
        }
    }
}
