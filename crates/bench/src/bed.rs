//! The test network of the experiments, which is brought up once for all of them.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use api::v1;
use api::v1::controller_client::ControllerClient;
use lab::{Lab, Options};
use model::topology::Dataplane;
use tokio::runtime::Runtime;
use tonic::transport::Channel;

use crate::Context;

/// The sending hosts (load and application) and the receiver.
pub(crate) const LOAD: &str = "h1";
pub(crate) const APP: &str = "h3";
pub(crate) const SINK: &str = "h2";
/// Name of the application in the topology file.
pub(crate) const APPLICATION: &str = "bulk";

/// Link rates of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// A tenth of the published rates, which two CPUs can sustain.
    Tenth,
    /// The published rates: 5 and 1 Gbit/s.
    Full,
}

impl Scale {
    /// Capacity of the short branch in Mbit/s.
    pub(crate) fn short_branch(self) -> f64 {
        if self == Self::Full { 1000.0 } else { 100.0 }
    }

    /// Capacity of the long branch in Mbit/s.
    pub(crate) fn long_branch(self) -> f64 {
        5.0 * self.short_branch()
    }

    /// Demand of the application in Mbit/s.
    pub(crate) fn demand(self) -> f64 {
        self.short_branch() / 2.0
    }
}

/// Variant of the experiment's network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// Link rates.
    pub scale: Scale,
    /// Data plane of the routers' SRv6.
    pub dataplane: Dataplane,
}

impl Kind {
    fn topology(self) -> String {
        let tenth = include_str!("../../../labs/paper-path.yaml").to_owned();
        let text = match self.scale {
            Scale::Tenth => tenth,
            // In this order, so that replaced text is not replaced again.
            Scale::Full => tenth
                .replace("rate: 500mbit", "rate: 5gbit")
                .replace("rate: 100mbit", "rate: 1gbit")
                .replace("demand: 50mbit", "demand: 500mbit"),
        };
        match self.dataplane {
            Dataplane::Kernel => text,
            Dataplane::Xdp => text.replace("\nnodes:\n", "\ndataplane: xdp\nnodes:\n"),
        }
    }
}

/// The lab, its controller, and the receiver's address.
pub(crate) struct Bed<'c> {
    pub(crate) context: &'c Context<'c>,
    pub(crate) scale: Scale,
    pub(crate) lab: Lab,
    pub(crate) sink: std::net::Ipv4Addr,
    runtime: Runtime,
}

impl<'c> Bed<'c> {
    /// Brings the network up. Dropping the value brings it down.
    pub(crate) fn up(context: &'c Context<'c>, kind: Kind, name: &str) -> Result<Self> {
        let text = kind.topology();
        let topology = topology_file::parse("labs/paper-path.yaml", &text)?;
        let options = Options {
            name: Some(name.into()),
            program: Some(context.program.clone()),
            owned: true,
            ..Options::default()
        };
        let mut stage = None;
        let mut progress = |now: lab::Stage, _: usize, _: usize| {
            if stage.replace(now) != Some(now) {
                (context.say)(&format!("bringing the network up: {}", now.words()));
            }
        };
        let file = Path::new("labs/paper-path.yaml");
        let lab =
            context.labs.up(topology, &text, file, &options, &context.cancel, &mut progress)?;
        let sink = lab.topology().node(SINK).context("the topology has its sink")?;
        let sink = sink.interfaces[0].ipv4.addr();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        Ok(Self { context, scale: kind.scale, lab, sink, runtime })
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(crate) async fn client(&self) -> Result<ControllerClient<Channel>> {
        Ok(api::connect(&self.lab.controller_socket()).await?)
    }

    /// Puts the application under Kaido's control, on the path that it has on an idle network, or
    /// removes it, so that only the IGP decides.
    pub(crate) fn manage(&self, managed: bool) -> Result<()> {
        self.runtime.block_on(async {
            let mut client = self.client().await?;
            let request = v1::RemoveApplicationRequest { name: APPLICATION.into() };
            match client.remove_application(request).await {
                Err(status) if status.code() != tonic::Code::NotFound => bail!("{status}"),
                _ => {}
            }
            if !managed {
                return Ok(());
            }
            self.wait_until_idle(&mut client).await?;
            let apps = &self.lab.topology().applications;
            let app = apps.iter().find(|app| app.name == APPLICATION);
            let application = app.map(Into::into);
            let request = v1::AddApplicationRequest { application, dry_run: false };
            let status = client.add_application(request).await?.into_inner().status;
            let path = status.unwrap_or_default().path;
            if path.iter().any(|node| node == "r2") {
                bail!("the application begins on the long branch: {}", path.join(" "));
            }
            Ok(())
        })
    }

    /// Waits until the controller measures no load. The averages of the previous run would
    /// otherwise be background load in the next one.
    async fn wait_until_idle(&self, client: &mut ControllerClient<Channel>) -> Result<()> {
        for _ in 0..500 {
            self.context.cancel.check()?;
            let network = client.get_network(v1::GetNetworkRequest {}).await?.into_inner();
            let loads = network.nodes.iter().flat_map(|node| &node.interfaces);
            let idle = |interface: &v1::NetworkInterface| {
                interface.load.as_ref().is_none_or(|l| l.rate_bps < 1_000_000 && !l.congested)
            };
            if loads.clone().all(idle) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err(anyhow!("the network does not become idle"))
    }

    /// Returns the status of the application: its number of moves and its present path.
    pub(crate) fn application(&self) -> Result<v1::ApplicationStatus> {
        self.runtime.block_on(async {
            let request = v1::ExplainApplicationRequest { name: APPLICATION.into() };
            let found = self.client().await?.explain_application(request).await?.into_inner();
            found.status.context("the controller knows the application")
        })
    }

    /// Returns the number of packets dropped so far by all queues of the network.
    pub(crate) fn queue_drops(&self) -> Result<u64> {
        let mut drops = 0;
        for node in &self.lab.topology().nodes {
            let namespace = self.lab.namespace(&node.name)?;
            let mut handle = netlink::Handle::within(&namespace)?;
            drops += handle.samples()?.iter().map(|sample| sample.drops).sum::<u64>();
        }
        Ok(drops)
    }
}

impl Drop for Bed<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.context.labs.down(self.lab.name()) {
            (self.context.say)(&format!("the lab {} is still there: {error}", self.lab.name()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_data_planes_and_scales_have_the_same_network() {
        let read = |kind: Kind| topology_file::parse("lab.yaml", &kind.topology()).unwrap();
        for scale in [Scale::Tenth, Scale::Full] {
            let of = |dataplane| read(Kind { scale, dataplane });
            let (kernel, mut xdp) = (of(Dataplane::Kernel), of(Dataplane::Xdp));
            assert!(xdp.nodes.iter().all(|node| node.runs_xdp() == node.is_router()));
            xdp.nodes.iter_mut().for_each(|node| node.dataplane = Dataplane::Kernel);
            assert_eq!(kernel, xdp);
            let narrow = kernel.node("r1").and_then(|node| node.interface("r3")?.rate);
            assert_eq!(narrow.map(|rate| rate.bps() as f64), Some(scale.short_branch() * 1e6));
        }
    }
}
