//! `kaido p4 run`: runs a program and serves P4Runtime.

mod health;
mod packets;
mod said;

use std::time::Duration;

use anyhow::{Context, anyhow};
use capture::Captured;
use p4runtime::{Plane, Processes, Running, Sandboxed, Service};
use sandbox::process::{Config, Launcher, VmFeed};

use super::socket::Serving;
use crate::cli::P4Run;
use crate::commands::program::{Loaded, load};
use crate::failure::{Done, Failure};
use crate::output::Output;
use crate::runtime::{block_on, listen};

pub(super) fn run(options: &P4Run, output: &Output) -> Done {
    let (p4info, entries) = (options.p4info.as_deref(), options.entries.as_deref());
    let loaded = load(&options.program, p4info, entries, output)?;
    let packets = options.pcap.as_deref().map(packets::read).transpose()?;
    let vm = vm_info(&loaded.program, options, output)?;
    let packets = packets.unwrap_or_default();
    serve(processes(options, vm.clone())?, loaded, vm, packets, options, output)
}

/// Interval for reading the VM's publication.
const READ_VM: Duration = Duration::from_millis(10);
/// Time to wait for a VM's heartbeat before packets run: until then no value is fresh.
const HEAR_VM: Duration = Duration::from_secs(1);

/// Opens the publication of the VM that the program reads from.
fn vm_info(program: &[u8], options: &P4Run, output: &Output) -> Result<Option<VmFeed>, Failure> {
    // Errors of the object are reported when it is loaded.
    let keys = p4_object::read(program).map(|object| object.keys).unwrap_or_default();
    let Some(file) = &options.vm_info else {
        if keys.is_empty() {
            return Ok(None);
        }
        let (name, keys) = (options.program.file.display(), keys.join(", "));
        let why = anyhow!(
            "{name}: the program reads {keys} of its tenant's VM: add `--vm-info FILE`, to which the \
             VM publishes (`kaido p4 publish`)"
        );
        return Err(Failure::usage(why));
    };
    let vm = VmFeed::watch(file, READ_VM);
    let is_silent = !keys.is_empty() && !vm.listen(HEAR_VM);
    // Without a capture, `health::watch` reports it as long as the program runs.
    if is_silent && options.pcap.is_some() && !output.is_json() {
        let why = vm.status().why.unwrap_or_else(|| "no heartbeat was received".to_owned());
        let said = format!("{}: {why}; nothing is fresh until there is", file.display());
        crate::output::tell(&format!("kaido: {said}"));
    }
    Ok(Some(vm))
}

/// Creates the launcher of a separate process for each program. The deadline is generous: packets
/// are not urgent here, and a busy machine must not count as a fault of the program.
fn processes(options: &P4Run, vm: Option<VmFeed>) -> Result<Processes, Failure> {
    let launcher = Launcher::installed().context("a sandbox cannot start");
    let launcher = launcher.map_err(Failure::failed)?;
    let deadline = Duration::from_secs(1);
    let requires = options.isolation.requires();
    let config = Config { deadline, cpu: options.cpu, requires, ..Config::default() };
    Ok(Processes { launcher, config, vm, queues: None })
}

/// Ends the program on drop: the device's thread holds it too, and may run past this command's last
/// line for the time that it takes to remove a control group.
struct Ending<R: Running>(Plane<R>);

impl<R: Running> Drop for Ending<R> {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn serve(
    runner: Processes,
    loaded: Loaded,
    vm: Option<VmFeed>,
    packets: Vec<Captured>,
    options: &P4Run,
    output: &Output,
) -> Done {
    let pipeline = loaded.pipeline().clone();
    let (config, updates) = loaded.into_config();
    block_on(async {
        let (device, plane) = Sandboxed::new(runner, options.cpu_port);
        let _ending = Ending(plane.clone());
        let service = Service::new([(options.device_id, device)]).map_err(Failure::failed)?;
        let name = options.program.file.display().to_string();
        let begun = service.begin(options.device_id, config, updates).await;
        begun.map_err(|why| Failure::usage(anyhow!("{name}: {why}")))?;
        // Before packets run, so that a port in use is reported immediately.
        let serving = super::socket::listen(options).await?;
        said::lacks(&plane, output);
        if options.pcap.is_some() {
            packets::run(&packets, &plane, options)?;
        }
        if serving.is_none() && options.pcap.is_some() {
            return said::ended(&plane, output);
        }
        let address = serving.as_ref().map(|serving| &*serving.address);
        // Install signal handlers before reporting that it runs: from then on a signal ends it
        // cleanly.
        let asked_to_end = listen();
        said::begun(&pipeline, &plane, address, options, output)?;
        match serving {
            None => tokio::select! {
                () = asked_to_end => {}
                () = health::watch(plane.clone(), vm, &name) => {}
            },
            // Do not wait for open streams: clients may keep them open indefinitely.
            Some(Serving { listener, _socket, .. }) => tokio::select! {
                done = p4runtime::serve(service, listener, std::future::pending()) => {
                    done.map_err(Failure::failed)?;
                }
                () = asked_to_end => {}
                () = health::watch(plane.clone(), vm, &name) => {}
            },
        }
        plane.cancel();
        said::ended(&plane, output)
    })?
}
