//! A tenant: the publisher in its VM, and its program in a sandbox.

use std::io::Write as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use sandbox::process::{Answer, Arena, Config, Decision, Launcher, Packet, Sandbox, VmFeed};
use tempfile::TempDir;

use super::{OFF_BELOW, ON_ABOVE};
use crate::Context;

pub(super) const PROGRAM: &str = include_str!("../../../p4/tests/programs/vm_filter.p4");
const FRAMES: u32 = 256;
const FRAME: u32 = 512;
const CAPACITY: u32 = 128;
/// Timeout of every operation, for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The tenant's VM: `kaido p4 publish` in a separate process.
struct Vm {
    publisher: Child,
    lines: ChildStdin,
    feed: VmFeed,
    _directory: TempDir,
}

impl Vm {
    fn start(context: &Context<'_>) -> Result<Self> {
        let directory = tempfile::tempdir().context("no directory for shared memory")?;
        let file = directory.path().join("vm");
        let limits = [format!("filter.on={ON_ABOVE}"), format!("filter.off={OFF_BELOW}")];
        let mut publisher = Command::new(&context.program)
            .args([
                "p4", "publish", "--only", "cpu", "--every", "5", "--valid", "600000", "--stdin",
            ])
            .args(limits.iter().flat_map(|limit| ["--set", limit]))
            .arg("--to")
            .arg(&file)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .context("`kaido p4 publish` does not start")?;
        let lines = publisher.stdin.take().context("its input is a pipe")?;
        let feed = VmFeed::watch(&file, Duration::from_millis(1));
        Ok(Self { publisher, lines, feed, _directory: directory })
    }

    /// Publishes the network's utilization, and waits until programs can see it.
    fn publish(&mut self, step: u32, used: u32) -> Result<()> {
        writeln!(self.lines, "net.utilisation {used}\nstep {step}").context("it has ended")?;
        let key = ["step".to_owned()];
        let is_seen = || {
            let seen = self.feed.readings(&key)[0];
            seen.is_some_and(|seen| seen.value == u64::from(step) && seen.is_fresh(0))
        };
        let until = Instant::now() + TIMEOUT;
        while !is_seen() {
            ensure!(
                Instant::now() < until,
                "what is published is not seen: {:?}",
                self.feed.status()
            );
            std::thread::yield_now();
        }
        Ok(())
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        // Interrupt it like Ctrl-C. It may have ended already.
        let process = nix::unistd::Pid::from_raw(self.publisher.id() as i32);
        let _ = nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGINT);
        let _ = self.publisher.wait();
    }
}

pub(super) struct Tenant {
    sandbox: Sandbox,
    vm: Vm,
}

impl Tenant {
    pub(super) fn start(context: &Context<'_>) -> Result<Self> {
        let mut vm = Vm::start(context)?;
        // The program's keys must exist when it is loaded.
        vm.publish(u32::MAX, 0)?;
        let checked = p4::check("vm_filter.p4", PROGRAM, &p4::NoIncludes);
        let compiled = p4_ebpf::compile(&checked.program, &checked.sources)
            .map_err(|why| anyhow!("{}", why.render(&checked.sources, false)))?;
        let object = p4_object::write(&compiled.object)?;
        let launcher = Launcher::installed().context("a sandbox cannot start")?;
        let config = Config { deadline: TIMEOUT, ..Config::default() };
        let arena = Arc::new(Arena::new(FRAMES, FRAME).context("memory for packets")?);
        let feed = Some(vm.feed.clone());
        let sandbox = Sandbox::start_with(launcher, config, arena, &object, feed)?;
        Ok(Self { sandbox, vm })
    }

    /// Publishes the utilization of the VM's network, and waits until programs can see it.
    pub(super) fn publish(&mut self, step: u32, used: u32) -> Result<()> {
        self.vm.publish(step, used)
    }

    /// Sends packets to both ports. Returns the number of those that passed.
    pub(super) fn packets(&mut self, protected: u32, load: u32) -> Result<Passed> {
        let (protected, load) = (protected as usize, load as usize);
        let ports: Vec<u16> =
            std::iter::repeat_n(8000, protected).chain(std::iter::repeat_n(9000, load)).collect();
        let mut passed = [0; 2];
        for batch in ports.chunks(FRAMES as usize) {
            for (slot, port) in (0..).zip(batch) {
                let bytes = udp(*port);
                self.sandbox.arena().write(slot, CAPACITY, &bytes);
                let length = bytes.len() as u32;
                self.sandbox.submit(Packet { slot, start: CAPACITY, length, port: 1, at: None })?;
            }
            self.sandbox.flush();
            let (mut answered, until) = (0, Instant::now() + TIMEOUT);
            while answered < batch.len() {
                ensure!(Instant::now() < until, "packets without an answer");
                let mut answers: Vec<Answer> = Vec::new();
                self.sandbox.wait(&mut answers, TIMEOUT);
                answered += answers.len();
                for answer in answers {
                    if answer.decision == Decision::Pass {
                        passed[usize::from(batch[answer.slot as usize] == 9000)] += 1;
                    }
                }
            }
        }
        let counters = self.sandbox.counters();
        ensure!(counters.packets.policy == 0, "packets without a verdict: {counters:?}");
        Ok(Passed { protected: passed[0], load: passed[1] })
    }
}

/// Forwarded packets of a step, by port.
pub(super) struct Passed {
    pub(super) protected: u32,
    pub(super) load: u32,
}

/// Returns a UDP packet of 42 bytes to a port.
fn udp(port: u16) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 28];
    bytes.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x13, 0x88]);
    bytes.extend(port.to_be_bytes());
    bytes.extend([0, 8, 0, 0]);
    bytes
}
