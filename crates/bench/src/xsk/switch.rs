//! Open vSwitch between two hosts, alone or under `kaido xsk run`.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use openvswitch::{Installation, Instance};
use serde_json::Value;
use tempfile::TempDir;

use crate::Context;
use crate::daemon::{Daemon, succeeds};
use crate::hosts::{Hosts, PORTS};

/// Environment of the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Without Kaido.
    Alone,
    /// Under `kaido xsk run`, without programs on its ports.
    Detached,
    /// Under `kaido xsk run`, with a program on both ports, in a process of its own.
    Process,
    /// The same, with the program in the switch's process.
    Inline,
}

/// A running switch with both ports. Dropping it ends the daemons.
pub(super) struct Switch<'c> {
    context: &'c Context<'c>,
    // Ends before the database, from which it disconnects.
    daemon: Daemon,
    _database: Daemon,
    directory: TempDir,
    instance: Instance,
}

impl<'c> Switch<'c> {
    /// Starts the switch. One thread, on the first CPU, polls the ports. `program` is that of
    /// [`Side::Process`] and [`Side::Inline`].
    pub(super) fn start(
        context: &'c Context<'c>,
        installation: &Installation,
        hosts: &Hosts,
        side: Side,
        program: &super::Program,
    ) -> Result<Self> {
        // A Unix socket's path is limited to 107 bytes.
        let directory = tempfile::Builder::new().prefix("kd").tempdir_in("/tmp")?;
        let instance = Instance::new(installation.clone(), directory.path());
        let created = instance.create_database().output()?;
        ensure!(created.status.success(), "ovsdb-tool: {}", text(&created.stderr));
        let start =
            |command, log| Daemon::start(&hosts.switch, command, directory.path().join(log));
        let database = start(instance.database(), "database.log")?;
        let init = || succeeds(&mut instance.init());
        database.until(&context.cancel, "the database", init)?;
        let wrapper = match side {
            Side::Alone => Vec::new(),
            side => wrapper(context, directory.path(), side, program)?,
        };
        let mut command = instance.switch(&wrapper);
        command.env("KAIDO_RUN", directory.path().join("run"));
        let daemon = start(command, "switch.log")?;
        let version = || succeeds(instance.appctl().arg("version"));
        daemon.until(&context.cancel, "the switch", version)?;
        let switch = Self { context, daemon, _database: database, directory, instance };
        switch.configure()?;
        if side == Side::Detached {
            for port in PORTS {
                switch.kaido(&["xsk", "detach", port])?;
            }
        }
        let ping = || {
            let mut ping = Command::new("ping");
            ping.args(["-c", "1", "-W", "1", &Hosts::SERVER.to_string()]);
            hosts.client.run(|| succeeds(&mut ping)).unwrap_or(false)
        };
        switch.daemon.until(&context.cancel, "the path between the hosts", ping)?;
        Ok(switch)
    }

    fn configure(&self) -> Result<()> {
        let set = |words: &[String]| {
            let done = self.instance.vsctl().args(words).output()?;
            // A port that fails is only a warning.
            let is_done = done.status.success() && done.stderr.is_empty();
            ensure!(is_done, "ovs-vsctl {}: {}", words.join(" "), text(&done.stderr));
            Ok(())
        };
        set(&["set", "Open_vSwitch", ".", "other_config:pmd-cpu-mask=0x1"].map(str::to_owned))?;
        set(&Instance::add_bridge("br0"))?;
        for port in PORTS {
            set(&Instance::add_port("br0", port, &[]))?;
            let is_up = || {
                let shown = self.instance.show_port(port).output();
                shown.is_ok_and(|shown| openvswitch::is_up(&text(&shown.stdout)))
            };
            self.daemon.until(&self.context.cancel, port, is_up)?;
        }
        Ok(())
    }

    /// Returns the CPU time so far, in seconds, of the program's process and of
    /// `kaido xsk run`, and the number of packets that the program has judged.
    pub(super) fn cost(&self) -> Result<(f64, u64)> {
        let shown = self.kaido(&["--json", "xsk", "stats"])?;
        let state: Value = serde_json::from_str(&shown)?;
        let process = state["programs"][0]["process"].as_u64().context("the program is down")?;
        let mut seconds = crate::process::seconds(process.try_into()?)?;
        seconds += crate::process::seconds(self.daemon.wrapped()?)?;
        let sockets = state["sockets"].as_array().context("no sockets")?;
        let judged = sockets.iter().filter_map(|socket| socket["passed"].as_u64()).sum();
        Ok((seconds, judged))
    }

    fn kaido(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.context.program);
        command.args(words).env("KAIDO_RUN", self.directory.path().join("run"));
        let done = command.output()?;
        ensure!(done.status.success(), "kaido {}: {}", words.join(" "), text(&done.stderr));
        Ok(text(&done.stdout))
    }
}

/// Writes the tenants file, and returns the words before the switch's own command line.
fn wrapper(
    context: &Context<'_>,
    directory: &Path,
    side: Side,
    program: &super::Program,
) -> Result<Vec<OsString>> {
    std::fs::write(directory.join(program.file), &program.content)?;
    let ports = PORTS.iter().zip(1..).map(|(port, number)| format!("{port}: {number}"));
    let ports = ports.collect::<Vec<_>>().join(", ");
    let isolation = if side == Side::Inline { "inline" } else { "process" };
    let tenants = format!(
        "tenants:\n  bench: {{program: {}, ports: {{{ports}}}, deadline: 1s, \
         isolation: {isolation}}}\n",
        program.file
    );
    let config = directory.join("tenants.yaml");
    std::fs::write(&config, tenants)?;
    let kaido = context.program.clone().into();
    let words: [OsString; 6] =
        [kaido, "xsk".into(), "run".into(), "--config".into(), config.into(), "--".into()];
    Ok(words.into())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}
