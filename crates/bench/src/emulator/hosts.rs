//! A lab of hosts and routers in namespaces, connected by emulated links.

use std::path::Path;

use anyhow::{Context as _, Result};
use api::v1;
use lab::{Lab, Options};
use model::topology::Traffic;
use netlink::Namespace;

use super::LAB;
use crate::{Context, process};

/// A lab. Dropping the value brings it down.
pub(super) struct Hosts<'c> {
    pub(super) lab: Lab,
    context: &'c Context<'c>,
    /// Namespace of the attached interfaces.
    machine: Option<Namespace>,
}

impl<'c> Hosts<'c> {
    /// Brings a lab up from the namespace of its attached interfaces.
    pub(super) fn up(
        context: &'c Context<'c>,
        text: &str,
        machine: Option<&Namespace>,
    ) -> Result<Self> {
        context.cancel.check()?;
        let topology = topology_file::parse("bench.yaml", text)?;
        let program = Some(context.program.clone());
        let options =
            Options { name: Some(LAB.into()), program, owned: true, ..Options::default() };
        let (labs, cancel) = (&context.labs, &context.cancel);
        let up = || {
            let mut silent = |_: lab::Stage, _: usize, _: usize| {};
            labs.up(topology, text, Path::new("bench.yaml"), &options, cancel, &mut silent)
        };
        let lab = match machine {
            Some(machine) => machine.run(up)??,
            None => up()?,
        };
        Ok(Self { lab, context, machine: machine.cloned() })
    }

    /// Returns a node's namespace.
    pub(super) fn at(&self, node: &str) -> Result<Namespace> {
        Ok(self.lab.namespace(node)?)
    }

    /// Returns the layer-2 bytes that a direction has carried so far. Packets that bypassed the
    /// emulator are not included.
    pub(super) fn carried(&self, link: &str, from: &str) -> Result<u64> {
        let socket = self.lab.emulator_socket()?;
        let answer = block_on(async {
            let mut client = api::connect_emulator(&socket).await?;
            let asked = v1::GetEmulatedLinksRequest {};
            Ok(client.get_emulated_links(asked).await?.into_inner())
        })?;
        let mut directions = answer.directions.into_iter();
        let found = directions.find(|one| one.link == link && one.from == from);
        Ok(found.with_context(|| format!("{link} is not an emulated link"))?.arrived_bytes)
    }

    /// Adds cross traffic to a link, from one of its ends.
    pub(super) fn add_traffic(&self, link: &str, from: &str, traffic: Traffic) -> Result<()> {
        let (socket, link) = self.lab.emulator(link)?;
        let traffic = Some(traffic.into());
        let request = v1::AddCrossTrafficRequest { link, from: from.into(), traffic };
        block_on(async {
            api::connect_emulator(&socket).await?.add_cross_traffic(request).await?;
            Ok(())
        })
    }

    /// Sets a link down. With `is_silent`, both ends keep their carrier.
    pub(super) fn cut(&self, link: &str, is_silent: bool) -> Result<()> {
        if !is_silent {
            self.lab.change_link(link, lab::Change::Down)?;
            return Ok(());
        }
        let (socket, link) = self.lab.emulator(link)?;
        let request =
            v1::ChangeEmulatedLinkRequest { link, down: Some(true), ..Default::default() };
        block_on(async {
            api::connect_emulator(&socket).await?.change_emulated_link(request).await?;
            Ok(())
        })
    }

    /// Returns the CPU time of the emulator so far, in seconds.
    pub(super) fn emulator_seconds(&self) -> Result<f64> {
        use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
        let socket = std::os::unix::net::UnixStream::connect(self.lab.emulator_socket()?)?;
        process::seconds(getsockopt(&socket, PeerCredentials)?.pid().cast_unsigned())
    }
}

fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

impl Drop for Hosts<'_> {
    fn drop(&mut self) {
        let labs = &self.context.labs;
        let down = || labs.down(LAB).is_ok();
        // The next `up` of this name reports leftovers.
        let _ = match &self.machine {
            Some(machine) => machine.run(down).unwrap_or(false),
            None => down(),
        };
    }
}
