//! Execution of timeline steps.

use std::time::Duration;

use api::v1::emulator_client::EmulatorClient;
use api::{Presence, v1};
use lab::{Change, Deed, Lab, Step};
use model::topology::Traffic;
use tokio::runtime::Runtime;
use tonic::Status;
use tonic::transport::Channel;

use crate::Error;

/// Executes steps on links and on the emulator.
pub(crate) struct Deeds {
    runtime: Runtime,
}

impl Deeds {
    pub(crate) fn new() -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Self { runtime: runtime.map_err(Error::refused("start a runtime"))? })
    }

    /// Returns true if the emulator must be notified of a step.
    pub(crate) fn is_told(lab: &Lab, step: &Step) -> bool {
        match &step.deed {
            // An end without a namespace has no carrier to lose; the emulator handles it instead.
            Deed::Down { silent } | Deed::Up { silent } => {
                *silent || (step.emulated && !lab.has_cable(&step.link).unwrap_or(true))
            }
            Deed::Set(_) | Deed::Traffic(_) => true,
            Deed::Rate(_) => false,
        }
    }

    /// Returns the state of the emulator.
    pub(crate) fn presence(&self, lab: &Lab) -> Result<Presence, Error> {
        let socket = lab.emulator_socket()?;
        Ok(self.runtime.block_on(api::emulator_presence(&socket)))
    }

    /// Executes a step.
    pub(crate) fn run(&self, lab: &Lab, step: &Step) -> Result<(), Error> {
        self.tell(lab, step, Duration::ZERO)?;
        let change = match &step.deed {
            Deed::Down { silent: false } => Change::Down,
            Deed::Up { silent: false } => Change::Up,
            Deed::Rate(rate) => Change::Rate(*rate),
            // The step does not affect the devices at the ends.
            _ => return Ok(()),
        };
        lab.change_link_now(&step.link, change)?;
        Ok(())
    }

    /// Notifies the emulator of a step that was due `ago`. A restarted emulator receives all steps
    /// that had changed settings of its predecessor.
    pub(crate) fn tell(&self, lab: &Lab, step: &Step, ago: Duration) -> Result<(), Error> {
        let change = |change: v1::ChangeEmulatedLinkRequest| {
            let link = step.link.clone();
            let from = step.from.clone().unwrap_or_default();
            self.change(lab, v1::ChangeEmulatedLinkRequest { link, from, ..change })
        };
        let nothing = v1::ChangeEmulatedLinkRequest::default;
        if !Self::is_told(lab, step) {
            return Ok(());
        }
        match &step.deed {
            Deed::Down { .. } => {
                change(v1::ChangeEmulatedLinkRequest { down: Some(true), ..nothing() })
            }
            Deed::Up { .. } => {
                change(v1::ChangeEmulatedLinkRequest { down: Some(false), ..nothing() })
            }
            Deed::Set(changes) => {
                let changes = changes.iter().map(ToString::to_string).collect();
                change(v1::ChangeEmulatedLinkRequest { changes, ..nothing() })
            }
            Deed::Traffic(traffic) => {
                let left = traffic.duration.saturating_sub(ago);
                if left.is_zero() {
                    return Ok(());
                }
                self.add_traffic(lab, step, Traffic { duration: left, ..*traffic })
            }
            // The emulator does not own the devices at the ends.
            Deed::Rate(_) => Ok(()),
        }
    }

    /// Sends the start time of the traces to the emulator.
    pub(crate) fn begin_traces(&self, lab: &Lab, at: Duration) -> Result<(), Error> {
        let at_ns = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        let request = v1::BeginTracesRequest { at_ns };
        self.ask(lab, async |mut emulator| emulator.begin_traces(request).await.map(drop))
    }

    fn change(&self, lab: &Lab, request: v1::ChangeEmulatedLinkRequest) -> Result<(), Error> {
        self.ask(lab, async |mut emulator| emulator.change_emulated_link(request).await.map(drop))
    }

    fn add_traffic(&self, lab: &Lab, step: &Step, traffic: Traffic) -> Result<(), Error> {
        let request = v1::AddCrossTrafficRequest {
            link: step.link.clone(),
            from: step.from.clone().unwrap_or_default(),
            traffic: Some(traffic.into()),
        };
        self.ask(lab, async |mut emulator| emulator.add_cross_traffic(request).await.map(drop))
    }

    fn ask(
        &self,
        lab: &Lab,
        call: impl AsyncFnOnce(EmulatorClient<Channel>) -> Result<(), Status>,
    ) -> Result<(), Error> {
        let socket = lab.emulator_socket()?;
        self.runtime.block_on(async { Ok(call(api::connect_emulator(&socket).await?).await?) })
    }
}
