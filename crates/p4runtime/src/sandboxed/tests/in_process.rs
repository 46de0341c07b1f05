//! Runs programs in this process, which gives exact faults and no delays.

use std::time::Duration;

use p4_object::Object;
use sandbox::process::VmFeed;
use sandbox::{Digest, Instance, Limits, PacketBuffer, Program};

use crate::device::Refused;
use crate::sandboxed::plane::CAPACITY;
use crate::sandboxed::{Health, Ran, Runner, Running, Verdict};

/// Runs programs in this process; only for tests, because it trusts the programs.
#[derive(Debug, Clone, Default)]
pub(super) struct InProcess {
    /// Resource limits of a program.
    pub(super) limits: Limits,
    /// Values published by the tenant's VM. They are read when a program is loaded and do not
    /// change, because packet times may differ from the host time. Values that are fresh then stay
    /// fresh.
    pub(super) vm: Option<VmFeed>,
}

impl Runner for InProcess {
    type Running = Instance;

    fn load(&mut self, object: &Object) -> Result<Instance, Refused> {
        let program = Program::load(object, &self.limits);
        let instance = program.and_then(|program| Instance::new(&program));
        let mut instance = instance.map_err(|why| Refused::Invalid(why.to_string()))?;
        let keys = instance.program().keys().to_vec();
        match &self.vm {
            _ if keys.is_empty() => {}
            None => return Err(Refused::Invalid(sandbox::process::no_feed(&keys))),
            Some(feed) => {
                feed.check(&keys).map_err(Refused::Invalid)?;
                instance.vm_info().copy_from_slice(&feed.readings_at(&keys, Duration::ZERO));
            }
        }
        Ok(instance)
    }
}

impl Running for Instance {
    fn run(&mut self, port: u32, packet: &[u8], at: Option<Duration>) -> Result<Ran, Refused> {
        let mut memory = vec![0; 2 * CAPACITY + packet.len()];
        memory[CAPACITY..CAPACITY + packet.len()].copy_from_slice(packet);
        self.set_time(at.unwrap_or_default());
        let buffer = PacketBuffer::new(&mut memory, CAPACITY, packet.len());
        let large = || Refused::Invalid(format!("a packet of {} bytes", packet.len()));
        let mut buffer = buffer.ok_or_else(large)?;
        let outcome = Instance::run(self, &mut buffer, port);
        let verdict = match outcome.verdict {
            sandbox::Verdict::Abort => Verdict::Abort,
            sandbox::Verdict::Drop => Verdict::Drop,
            sandbox::Verdict::Pass => Verdict::Pass,
            sandbox::Verdict::Redirect(port) => Verdict::Redirect(port),
            sandbox::Verdict::Fault(fault) => Verdict::Fault(fault.to_string()),
        };
        Ok(Ran { verdict, clone: outcome.clone, packet: buffer.bytes() })
    }

    fn digests(&mut self) -> Vec<Digest> {
        Self::digests(self)
    }

    /// There is no separate process that could fail.
    fn health(&mut self) -> Health {
        Health::default()
    }
}
