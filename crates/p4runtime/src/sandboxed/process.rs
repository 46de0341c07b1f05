//! Programs in sandbox processes.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use p4_object::{Key, Map, Object};
use sandbox::process::{
    Answer, Arena, Config, Counters, Decision, Launcher, Packet, Reason, Sandbox, StartError,
    Status, VmFeed,
};
use sandbox::{ControlError, Digest, Maps, Operation, Piece};

use super::plane::{CAPACITY, Health, Ran, Runner, Running, Verdict};
use crate::device::Refused;

/// Maximum packet length, that of captures (`MAXIMUM_SNAPLEN` of libpcap).
const MAX_FRAME: u32 = 1 << 18;
/// Frame size: the longest packet with headroom and tailroom.
const FRAME: u32 = MAX_FRAME + 2 * CAPACITY as u32;

/// Timeout for a packet's answer. The sandbox's own deadline is shorter.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs each program in a sandbox process.
#[derive(Debug, Clone)]
pub struct Processes {
    /// Launcher of the processes.
    pub launcher: Launcher,
    /// Sandbox configuration.
    pub config: Config,
    /// Values published by the tenant's VM.
    pub vm: Option<VmFeed>,
    /// Frames of the packet queues of other threads or processes, if there are any.
    pub queues: Option<Queues>,
}

/// Frames of the packet queues of other threads or processes ([`Config::queues`]).
#[derive(Debug, Clone)]
pub struct Queues {
    /// Number of frames of a queue.
    pub frames: u32,
    /// Size of a frame in bytes.
    pub frame_size: u32,
    /// Receiver of replaced programs, whose queues may have packets in flight.
    pub retired: Sender<Sandbox>,
}

/// A program in a sandbox process, which processes one packet at a time.
#[derive(Debug)]
pub struct Alone {
    /// `None` only while it is dropped.
    sandbox: Option<Sandbox>,
    arena: Arc<Arena>,
    retired: Option<Sender<Sandbox>>,
}

impl Drop for Alone {
    fn drop(&mut self) {
        if let (Some(sandbox), Some(retired)) = (self.sandbox.take(), &self.retired) {
            // Without a receiver, the process ends here.
            let _ = retired.send(sandbox);
        }
    }
}

impl Runner for Processes {
    type Running = Alone;

    fn load(&mut self, object: &Object) -> Result<Alone, Refused> {
        let bad = |why: p4_object::BadObject| Refused::Invalid(why.to_string());
        let bytes = p4_object::write(object).map_err(bad)?;
        let memory = |why| Refused::Away(format!("cannot allocate memory for packets: {why}"));
        let (frames, frame_size) = match &self.queues {
            Some(queues) => ((self.config.queues + 1) * queues.frames, queues.frame_size),
            None => (1, FRAME),
        };
        let arena = Arc::new(Arena::new(frames, frame_size).map_err(memory)?);
        let (launcher, vm) = (self.launcher.clone(), self.vm.clone());
        let started = Sandbox::start_with(launcher, self.config, Arc::clone(&arena), &bytes, vm);
        let sandbox = started.map_err(|why| match why {
            StartError::Refused(why) => Refused::Invalid(why),
            why => Refused::Away(why.to_string()),
        })?;
        let retired = self.queues.as_ref().map(|queues| queues.retired.clone());
        Ok(Alone { sandbox: Some(sandbox), arena, retired })
    }
}

impl Maps for Alone {
    fn maps(&self) -> &[Map] {
        self.sandbox.as_ref().map_or(&[], |sandbox| sandbox.maps())
    }

    fn apply(&mut self, batch: &[Operation]) -> Result<(), ControlError> {
        self.ask(|sandbox| sandbox.apply(batch))
    }

    fn read(&mut self, map: u32, from: u32, most: u32) -> Result<Piece, ControlError> {
        self.ask(|sandbox| sandbox.read(map, from, most))
    }

    fn get_all(&mut self, map: u32, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, ControlError> {
        self.ask(|sandbox| sandbox.get_all(map, keys))
    }
}

impl Alone {
    /// The sandbox.
    pub fn sandbox(&mut self) -> &mut Sandbox {
        self.sandbox.as_mut().expect("only `drop` takes it")
    }

    /// Sends a request to the process; if it is gone, retries with its replacement.
    fn ask<T>(
        &mut self,
        question: impl Fn(&mut Sandbox) -> Result<T, ControlError>,
    ) -> Result<T, ControlError> {
        match question(self.sandbox()) {
            Err(ControlError::Gone) if self.comes_again() => question(self.sandbox()),
            answer => answer,
        }
    }

    /// Waits for a replacement process. Drives the sandbox, because no packets do.
    fn comes_again(&mut self) -> bool {
        let until = Instant::now() + TIMEOUT;
        loop {
            let status = self.sandbox().status();
            if status.process.is_some() || status.is_evicted || Instant::now() > until {
                return status.process.is_some();
            }
            #[allow(clippy::disallowed_methods, reason = "a process comes when its time has come")]
            std::thread::sleep(Duration::from_millis(1));
            self.sandbox().look_after();
        }
    }
}

impl Running for Alone {
    fn end(mut self) {
        self.sandbox().await_start();
    }

    fn run(&mut self, port: u32, packet: &[u8], at: Option<Duration>) -> Result<Ran, Refused> {
        let length = u32::try_from(packet.len()).unwrap_or(u32::MAX);
        if length > MAX_FRAME.min(self.arena.frame_size().saturating_sub(2 * CAPACITY as u32)) {
            return Err(Refused::Invalid(format!("a packet of {length} bytes")));
        }
        // Packets of a capture can wait, so that none is lost during a restart.
        if at.is_some() && self.sandbox().status().process.is_none() {
            self.comes_again();
        }
        self.arena.write(0, CAPACITY as u32, packet);
        let there = Packet { slot: 0, start: CAPACITY as u32, length, port, at };
        self.sandbox().submit(there).map_err(|why| Refused::Away(why.to_string()))?;
        self.sandbox().flush();
        let mut answers = Vec::new();
        let until = Instant::now() + TIMEOUT;
        while answers.is_empty() && Instant::now() < until {
            self.sandbox().wait(&mut answers, TIMEOUT);
        }
        let silent = || Refused::Away("the program's process does not respond".to_owned());
        let Answer { start, length, decision, clone, reason, .. } =
            answers.pop().ok_or_else(silent)?;
        let mut packet = vec![0; length as usize];
        self.arena.read(0, start, &mut packet);
        let verdict = match reason {
            Reason::Program => match decision {
                Decision::Drop => Verdict::Drop,
                Decision::Pass => Verdict::Pass,
                Decision::Redirect(port) => Verdict::Redirect(port),
            },
            Reason::Aborted => Verdict::Abort,
            Reason::Fault(kind) => Verdict::Fault(kind.to_string()),
            Reason::Deadline => Verdict::Fault("no verdict in time".to_owned()),
            Reason::Crashed => Verdict::Fault("its process ended".to_owned()),
            Reason::ProtocolViolation => {
                Verdict::Fault("its process violated the protocol".to_owned())
            }
            Reason::Restarting => Verdict::Fault("its process is being started".to_owned()),
            Reason::Evicted => Verdict::Fault("it failed too often, and has no process".to_owned()),
        };
        Ok(Ran { verdict, clone, packet })
    }

    fn digests(&mut self) -> Vec<Digest> {
        let mut all = Vec::new();
        loop {
            // One poll may not take all digests. No packet is in flight, so there are no answers.
            self.sandbox().poll(&mut Vec::new());
            let some = self.sandbox().digests();
            if some.is_empty() {
                return all;
            }
            all.extend(some);
        }
    }

    fn health(&mut self) -> Health {
        let sandbox = self.sandbox();
        sandbox.look_after();
        let Status { process, is_evicted, last_failure, is_hosted, isolation, lacks, .. } =
            sandbox.status();
        let Counters { slow_processes, crashed_processes, violating_processes, .. } =
            sandbox.counters();
        let failures = slow_processes + crashed_processes + violating_processes;
        Health { process, failures, is_evicted, last_failure, is_hosted, isolation, lacks }
    }
}
