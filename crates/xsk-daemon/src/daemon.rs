//! The event loop, and the care of programs' processes.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use p4runtime::{Health, Processes, Sandboxed};
use sandbox::process::Launcher;
use xsk_link::{Error as LinkError, Listener, Order};

use crate::control::Control;
use crate::event::{Event, Request};
use crate::listener;
use crate::pending::Pending;
use crate::program::Program;
use crate::reattach::reattach;
use crate::session::Session;
use crate::status::Status;
use crate::tenant::Tenant;
use crate::trace::Trace;
use crate::unjudged::Unjudged;

/// Interval at which processes are looked after.
const LOOK: Duration = Duration::from_millis(5);
/// Interval at which counters are read.
const COUNT: Duration = Duration::from_millis(500);
/// Number of events that may wait.
const EVENTS: usize = 1024;

/// The P4Runtime device of a tenant, with its id.
pub type Device = (u64, Sandboxed<Processes>);

/// Runs tenants' programs for an AF_XDP client.
pub struct Daemon {
    pub(crate) programs: Vec<Program>,
    pub(crate) sessions: BTreeMap<u64, Session>,
    pub(crate) trace: Option<Trace>,
    pub(crate) unjudged: Unjudged,
    pub(crate) pending: Vec<Pending>,
    events: Receiver<Event>,
    sender: SyncSender<Event>,
    /// Receives messages for the operator.
    pub(crate) tell: Box<dyn Fn(&str) + Send>,
}

impl Daemon {
    /// Creates a daemon, and the P4Runtime devices of its tenants, which have no program yet.
    /// `tell` gets messages for the operator.
    pub fn new(
        tenants: Vec<Tenant>,
        launcher: &Launcher,
        tell: impl Fn(&str) + Send + 'static,
    ) -> (Self, Vec<Device>) {
        let (mut programs, mut devices) = (Vec::new(), Vec::new());
        for tenant in tenants {
            let id = tenant.device;
            let (program, device) = Program::new(tenant, launcher.clone());
            programs.push(program);
            devices.push((id, device));
        }
        let (sender, events) = sync_channel(EVENTS);
        let (sessions, unjudged) = (BTreeMap::new(), Unjudged::default());
        let (tell, pending) = (Box::new(tell), Vec::new());
        (Self { programs, sessions, trace: None, unjudged, pending, events, sender, tell }, devices)
    }

    /// Refuses sockets of interfaces that no tenant has.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.unjudged.refuse();
        self
    }

    /// Sends requests to this daemon.
    pub fn control(&self) -> Control {
        Control(self.sender.clone())
    }

    /// Gives links to the processes of the client that request one, in the background.
    ///
    /// # Errors
    ///
    /// Fails if the thread cannot be started.
    pub fn listen(&self, listener: Listener) -> io::Result<()> {
        listener::listen(listener, self.sender.clone())
    }

    /// Runs until [`Control::end`] is called.
    pub fn run(mut self) {
        let (mut looked, mut counted) = (Instant::now(), Instant::now());
        loop {
            let event = self.events.recv_timeout(LOOK.saturating_sub(looked.elapsed()));
            match event {
                Ok(Event::Request(Request::End)) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(event) => self.handle(event),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                (0..self.programs.len()).for_each(|program| self.look(program));
            }
            if counted.elapsed() >= COUNT {
                counted = Instant::now();
                self.end_trace();
                self.each_session(|session| {
                    // A client that is stopped does not collect requests.
                    let is_answered = session.asked <= session.answered;
                    if is_answered { session.count().map(drop) } else { Ok(()) }
                });
            }
            self.answer_pending();
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Linked(number, session) => {
                self.sessions.insert(number, *session);
            }
            Event::Refused(why) => {
                (self.tell)(&format!("a process of the client is refused: {why}"));
            }
            Event::Gone(number) => self.remove(number, &LinkError::Closed),
            Event::Report(number, report) => {
                if let Err(why) = self.report(number, report) {
                    self.remove(number, &why);
                }
            }
            Event::Request(request) => self.request(request),
        }
    }

    /// Calls a function on all sessions, and removes those whose link fails.
    pub(crate) fn each_session(
        &mut self,
        mut function: impl FnMut(&mut Session) -> Result<(), LinkError>,
    ) {
        let failed = self
            .sessions
            .iter_mut()
            .filter_map(|(number, session)| function(session).err().map(|why| (*number, why)));
        for (number, why) in failed.collect::<Vec<_>>() {
            self.remove(number, &why);
        }
    }

    /// Removes a session, and says why.
    pub(crate) fn remove(&mut self, number: u64, why: &LinkError) {
        let Some(session) = self.sessions.remove(&number) else { return };
        // The library then leaves its packets to the policies.
        session.link.close();
        let detached = session.draining.iter().filter(|one| one.is_detached);
        for attached in session.attached.iter().chain(detached) {
            self.programs[attached.program].free_queue(attached.queue);
        }
        if session.process != 0 {
            let said = match why {
                LinkError::Closed => "has ended".to_owned(),
                why => format!("is disconnected: {why}"),
            };
            (self.tell)(&format!("{} (process {}) {said}", session.name, session.process));
        }
    }

    pub(crate) fn send(&self, number: u64, order: &Order) -> Result<(), LinkError> {
        self.sessions.get(&number).map_or(Ok(()), |session| session.link.send(order, &[]))
    }

    /// Looks after a program. If it has another process, its attachments get queues of that one.
    pub(crate) fn look(&mut self, program: usize) {
        let before = self.programs[program].seen;
        self.host(program);
        let Some(new) = self.programs[program].look() else { return };
        let is_same_program = new.0 == before.0;
        if is_same_program {
            self.say(program, &self.programs[program].health);
        }
        let programs = &self.programs;
        let mut failed = Vec::new();
        for (number, session) in &mut self.sessions {
            let moved = reattach(*number, session, &programs[program], program);
            failed.extend(moved.err().map(|why| (*number, why)));
        }
        failed.into_iter().for_each(|(number, why)| self.remove(number, &why));
    }

    /// Moves a program to the first process of the client that uses it, if its tenant wants that.
    fn host(&mut self, program: usize) {
        let its = &mut self.programs[program];
        if its.wants_host() {
            let uses =
                |session: &Session| session.attached.iter().any(|one| one.program == program);
            let mut all = self.sessions.iter_mut();
            let first = all.find(|(number, one)| uses(one) && its.may_move_to(**number));
            if let Some((number, session)) = first {
                its.begin_move(session.host(*number));
            }
        }
        if let Err(why) = its.complete_move(|session| self.sessions.contains_key(&session)) {
            let tenant = &its.tenant.name;
            (self.tell)(&format!("{tenant}: the program stays in a process of its own: {why}"));
        }
    }

    /// Reports the end or the start of a process.
    fn say(&self, program: usize, health: &Health) {
        let tenant = &self.programs[program].tenant.name;
        let why = health.last_failure.as_deref().unwrap_or("its process exited");
        let line = match health.process {
            Some(process) if health.is_hosted => {
                format!("{tenant}: process {process} of the client runs the program now")
            }
            Some(process) => format!("{tenant}: process {process} runs the program now"),
            None if health.is_evicted => format!(
                "{tenant}: {why}; it failed too often and has no process anymore. Its policy decides \
                 about its packets until a control plane sets another program"
            ),
            None => format!("{tenant}: {why}; another process is being started"),
        };
        (self.tell)(&line);
    }

    fn request(&mut self, request: Request) {
        // The requester may have given up.
        match request {
            Request::Status(done) => {
                drop(done.send(Status::new(&self.programs, self.sessions.values())));
            }
            Request::Attach { tenant, interface, number, done } => {
                let attached = self.attach_port(&tenant, &interface, number);
                self.answer_later(&interface, move || drop(done.send(attached)));
            }
            Request::Detach { interface, done } => {
                let detached = self.detach_port(&interface);
                self.answer_later(&interface, move || drop(done.send(detached)));
            }
            Request::Trace { trace, done } => drop(done.send(self.trace(trace))),
            Request::End => {}
        }
    }
}
