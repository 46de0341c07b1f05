//! `kaido lab metrics`: prints the counters of links for Prometheus.

mod text;

use std::net::SocketAddr;
use std::process::ExitCode;

use lab::{Lab, Labs};
use output::metrics::{Metrics, MetricsServer};

use super::links;
use crate::failure::{Done, Failure};
use crate::output::Output;
use crate::runtime::{asked_to_end, block_on};

pub(super) fn run(
    labs: &Labs,
    name: Option<&str>,
    listen: Option<SocketAddr>,
    output: &Output,
) -> Done {
    let lab = labs.choose(name)?;
    let Some(address) = listen else {
        output.print(&Metrics { metrics: counted(&lab)? }, |found| found.metrics.clone())?;
        return Ok(ExitCode::SUCCESS);
    };
    let name = lab.name().to_owned();
    drop(lab);
    let asked = (labs.clone(), name.clone());
    block_on(async {
        let listener = telemetry::prometheus::listen(address).await.map_err(Failure::failed)?;
        // Port 0 selects a free port, so ask for the real one.
        let address = listener.local_addr().map_err(Failure::failed)?;
        output.print(&MetricsServer { listening: address.to_string() }, |_| {
            format!("http://{address}/metrics answers for the lab {name}")
        })?;
        let scrape = move || {
            let (labs, name) = asked.clone();
            async move {
                let now = move || now(&labs, &name).map_err(|failure| failure.text());
                let done = tokio::task::spawn_blocking(now).await;
                done.unwrap_or_else(|_| Err("counting has panicked".into()))
            }
        };
        tokio::select! {
            never = telemetry::prometheus::serve(listener, scrape) => match never {},
            () = asked_to_end() => Ok(()),
        }
    })?
    .map(|()| ExitCode::SUCCESS)
}

/// Returns the same text for a lab that may be down, or may have been replaced by another lab of
/// that name.
fn now(labs: &Labs, name: &str) -> Result<String, Failure> {
    match labs.open(name) {
        Ok(lab) => counted(&lab),
        Err(lab::Error::NoLab { .. } | lab::Error::NotReady { .. }) => Ok(text::down(name)),
        Err(error) => Err(error.into()),
    }
}

/// Returns the current counters as OpenMetrics text. If the emulator does not respond, a metric says
/// so.
fn counted(lab: &Lab) -> Result<String, Failure> {
    let emulated = match lab.topology().has_emulated() {
        true => Some(links::get(&lab.emulator_socket()?).ok()),
        false => None,
    };
    Ok(text::text(lab.name(), emulated.as_ref().map(Option::as_ref), &lab.counted()?))
}
