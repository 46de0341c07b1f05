//! The supervisor's main loop.

use std::os::unix::net::UnixListener;
use std::time::Duration;

use api::Presence;
use lab::{Happening, Lab, Occurrence, Step, StepOutcome};

use crate::Error;
use crate::deeds::Deeds;
use crate::devices::Devices;
use crate::watch::{Directory, Emulator, sleep};

/// Retry interval while another command holds the lab.
const BUSY: Duration = Duration::from_millis(10);
/// Retry interval for an emulator that does not respond.
const SILENT: Duration = Duration::from_millis(100);

pub(crate) struct Supervisor {
    lab: Lab,
    /// A connection shows that the supervisor is alive; no data is exchanged.
    callers: UnixListener,
    directory: Directory,
    emulator: Emulator,
    /// `None` in a lab without emulated links, which has no emulator.
    devices: Option<Devices>,
    steps: Vec<Step>,
    /// Index of the next step.
    next: usize,
    ready: Option<Duration>,
    deeds: Deeds,
    /// True if the emulator did not answer when a step was due.
    is_silent: bool,
}

impl Supervisor {
    pub(crate) fn new(lab: Lab) -> Result<Self, Error> {
        let directory = Directory::watch(lab.directory())?;
        let devices = Devices::open(&lab)?;
        let socket = lab.supervisor_socket();
        let stale = |error| Error::refused("remove the old socket")(std::io::Error::other(error));
        serve::remove_stale(&socket).map_err(stale)?;
        let history = lab.history();
        let is_done = |(_, progress): &(Step, StepOutcome)| *progress != StepOutcome::ToCome;
        let next = history.steps.iter().rposition(is_done).map_or(0, |last| last + 1);
        let steps: Vec<Step> = history.steps.into_iter().map(|(step, _)| step).collect();
        let mut supervisor = Self {
            emulator: Emulator::new(lab.directory().join(lab::EMULATOR_SOCKET)),
            ready: lab.ready_since(),
            directory,
            devices,
            steps,
            next,
            deeds: Deeds::new()?,
            is_silent: false,
            callers: serve::listen(&socket).map_err(Error::refused("listen"))?,
            lab,
        };
        let nonblocking = supervisor.callers.set_nonblocking(true);
        nonblocking.map_err(Error::refused("listen"))?;
        supervisor.lab.record(Occurrence::Watching)?;
        if supervisor.devices.is_some() {
            if supervisor.emulator.connect() {
                supervisor.emulator_started()?;
            } else {
                supervisor.emulator_ended()?;
            }
        }
        let (steps, next) = (supervisor.steps.len(), supervisor.next);
        tracing::info!("watching; {steps} steps, {next} of them done");
        Ok(supervisor)
    }

    pub(crate) fn run(mut self) -> Result<(), Error> {
        loop {
            let due = self.do_what_is_due()?;
            let time = [due, self.emulator.again()].into_iter().flatten().min();
            sleep(&self.directory, &self.emulator, &self.callers, self.devices.as_ref(), time)?;
            while self.callers.accept().is_ok() {}
            if self.emulator.has_ended() {
                self.emulator_ended()?;
            }
            if self.directory.has_come(lab::EMULATOR_SOCKET) {
                self.emulator.expect();
            }
            if !self.lab.directory().exists() {
                return Ok(());
            }
            if self.ready.is_none() {
                self.ready = self.lab.ready_since();
                self.begin_traces();
            }
            if self.devices.is_some() && self.emulator.again().is_some() && self.emulator.connect()
            {
                self.emulator_started()?;
            }
            if let Some(devices) = &mut self.devices {
                devices.take_note(&self.lab)?;
            }
        }
    }

    /// Sets the emulator's links down immediately: a link without an emulator must not look
    /// operational.
    fn emulator_ended(&mut self) -> Result<(), Error> {
        if let Some(devices) = &self.devices {
            devices.set(&self.lab, false)?;
        }
        self.is_silent = false;
        tracing::warn!("the emulator exited: its links are down");
        self.lab.mark_ended(true)?;
        Ok(self.lab.record(Occurrence::EmulatorEnded)?)
    }

    /// Sends all past changes to a restarted emulator, then sets its links up.
    fn emulator_started(&mut self) -> Result<(), Error> {
        if !self.lab.is_marked_ended() {
            return Ok(());
        }
        self.begin_traces();
        let now = self.now();
        let history = self.lab.history();
        for (number, step) in self.steps[..self.next].iter().enumerate() {
            if history.is_stopped(number) {
                continue;
            }
            let ago = now.saturating_sub(step.at);
            if let Err(error) = self.deeds.tell(&self.lab, step, ago) {
                tracing::warn!("{} again: {}", step.deed.words(), api::in_one_line(&error));
            }
        }
        if let Some(devices) = &mut self.devices {
            // The emulator has opened the interfaces that exist now.
            devices.look(&self.lab)?;
            devices.set(&self.lab, true)?;
        }
        tracing::info!("the emulator was restarted: its links are up");
        self.lab.record(Occurrence::EmulatorStarted)?;
        if let Some(devices) = &self.devices {
            devices.record_absent(&self.lab)?;
        }
        Ok(self.lab.mark_ended(false)?)
    }

    /// Aligns the start of the traces with the lab's events instead of the emulator's start.
    fn begin_traces(&self) {
        let (Some(ready), Some(_)) = (self.ready, &self.devices) else { return };
        if let Err(error) = self.deeds.begin_traces(&self.lab, ready) {
            tracing::warn!("traces begin with the emulator: {}", api::in_one_line(&error));
        }
    }

    /// Returns the time since the lab was ready.
    fn now(&self) -> Duration {
        self.ready.map_or(Duration::ZERO, |ready| lab::now().saturating_sub(ready))
    }

    /// Records that the emulator stopped or resumed answering.
    fn say_silent(&mut self, is_silent: bool) -> Result<(), Error> {
        if std::mem::replace(&mut self.is_silent, is_silent) == is_silent {
            return Ok(());
        }
        let (what, words) = match is_silent {
            true => (Occurrence::EmulatorSilent, "does not respond: what is due waits"),
            false => (Occurrence::EmulatorAnswers, "answers again"),
        };
        tracing::warn!("the emulator {words}");
        Ok(self.lab.record(what)?)
    }

    /// Executes the due steps. Returns the time to the next one.
    fn do_what_is_due(&mut self) -> Result<Option<Duration>, Error> {
        if self.ready.is_none() {
            return Ok(None);
        }
        while let Some(step) = self.steps.get(self.next).cloned() {
            let left = step.at.saturating_sub(self.now());
            if !left.is_zero() {
                return Ok(Some(left));
            }
            // Check here too, because many due steps would delay the check in the main loop.
            if self.emulator.has_ended() {
                self.emulator_ended()?;
            }
            let is_told = Deeds::is_told(&self.lab, &step);
            if is_told && self.emulator.is_connected() {
                let is_silent = self.deeds.presence(&self.lab)? == Presence::Silent;
                self.say_silent(is_silent)?;
                if is_silent {
                    return Ok(Some(SILENT));
                }
            }
            let done = if is_told && !self.emulator.is_connected() {
                // A new emulator, which may just have started, receives past steps once.
                Err(Error::Ended)
            } else {
                self.deeds.run(&self.lab, &step)
            };
            let error = match done {
                Ok(()) => None,
                Err(error) if error.passes() => return Ok(Some(BUSY)),
                Err(error) => Some(api::in_one_line(&error)),
            };
            match &error {
                None => tracing::info!("{}: {}", step.link, step.deed.words()),
                Some(error) => tracing::warn!("{}: {}: {error}", step.link, step.deed.words()),
            }
            self.lab.record(Happening::Step { number: self.next, error })?;
            self.next += 1;
        }
        Ok(None)
    }
}
