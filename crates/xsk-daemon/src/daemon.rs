//! The event loop: links of the client, reports, changes of programs, requests.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use p4runtime::{Health, Processes, Sandboxed};
use sandbox::process::{Launcher, Reason};
use xsk_link::{Direction, Error as LinkError, Listener, Order, Report, Traced, VERSION};

use crate::control::Control;
use crate::error::{AttachError, Error, Refusal};
use crate::event::{Event, Request};
use crate::listener;
use crate::pending::Pending;
use crate::program::{Attached, Program};
use crate::reattach::reattach;
use crate::session::{Session, Socket};
use crate::status::Status;
use crate::tenant::{TRANSMITTED, Tenant};
use crate::trace::{Trace, TracedPacket};
use crate::unjudged::Unjudged;

/// Interval at which processes are looked after.
const LOOK: Duration = Duration::from_millis(5);
/// Interval at which counters are read.
const COUNT: Duration = Duration::from_millis(500);
/// Maximum length of an executable's name in bytes (NAME_MAX).
const MAX_PROGRAM_NAME: usize = 255;
/// Maximum number of sockets of all processes of a client: a message about them stays below 1 MiB.
const SOCKETS: usize = 2048;
/// Number of events that may wait.
const EVENTS: usize = 1024;

/// The P4Runtime device of a tenant, with its id.
pub type Device = (u64, Sandboxed<Processes>);

/// Runs tenants' programs for an AF_XDP client.
pub struct Daemon {
    pub(crate) programs: Vec<Program>,
    pub(crate) sessions: BTreeMap<u64, Session>,
    trace: Option<Trace>,
    unjudged: Unjudged,
    pub(crate) pending: Vec<Pending>,
    events: Receiver<Event>,
    sender: SyncSender<Event>,
    /// Receives messages for the operator.
    tell: Box<dyn Fn(&str) + Send>,
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
    fn each_session(&mut self, mut function: impl FnMut(&mut Session) -> Result<(), LinkError>) {
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

    fn report(&mut self, number: u64, report: Report) -> Result<(), LinkError> {
        let sockets: usize = self.sessions.values().map(|session| session.sockets.len()).sum();
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        match report {
            Report::Hello { version, process, program } => {
                // It is printed, and a control character could forge a line.
                let is_name =
                    program.len() <= MAX_PROGRAM_NAME && !program.contains(char::is_control);
                if !is_name || process == 0 || session.process != 0 {
                    return Err(LinkError::Invalid);
                }
                if version != VERSION {
                    (self.tell)(&format!(
                        "{program} is refused: its library speaks version {version}, `kaido` \
                         version {VERSION}"
                    ));
                    return Err(LinkError::Invalid);
                }
                (session.process, session.name) = (process, program);
            }
            Report::Opened { socket, interface, queue, receives, transmits } => {
                let is_name = tenants_file::is_interface_name(&interface)
                    && !interface.contains(char::is_control);
                let is_valid = is_name && !session.sockets.contains_key(&socket);
                let is_full = session.sockets.len() >= xsk_link::MAX_SOCKETS || sockets >= SOCKETS;
                if !is_valid || is_full {
                    return Err(LinkError::Invalid);
                }
                let opened = Socket { interface, queue, receives, transmits };
                session.sockets.insert(socket, opened.clone());
                let program =
                    self.programs.iter().position(|one| one.port(&opened.interface).is_some());
                let attached = match program.map(|program| self.attach(number, socket, program)) {
                    Some(Err(AttachError::Link(why))) => return Err(why),
                    Some(Err(AttachError::Refused(why))) => Err(why.to_string()),
                    Some(Ok(())) => Ok(()),
                    None => self.unjudged.open(&opened.interface, &self.tell),
                };
                if let Err(why) = attached {
                    let name = &opened.interface;
                    (self.tell)(&format!("{name}: its socket is refused: {why}"));
                    self.close(number, socket);
                    return self.send(number, &Order::Refused { socket, why });
                }
                self.send(number, &Order::Ready { socket })?;
            }
            Report::Closed { socket } => self.close(number, socket),
            Report::Drained { attachment } => self.drained(number, attachment),
            Report::Accused { attachment, accusation } => {
                let mut all = session.attached.iter().chain(&session.draining);
                let Some(of) = all.find(|one| one.attachment == attachment) else { return Ok(()) };
                let its = &mut self.programs[of.program];
                if !of.is_detached && of.incarnation == Some(its.seen) {
                    its.accuse(of.queue, accusation);
                } else {
                    // Packets at a replaced process go to the next program, those at a detached one to
                    // the policy.
                    let is_detached = of.is_detached;
                    let flying = if is_detached { Reason::Deadline } else { Reason::Crashed };
                    let later = Reason::Evicted;
                    session.link.send(&Order::Ended { attachment, flying, later }, &[])?;
                }
            }
            Report::Counters(counters) => {
                session.counters = counters;
                session.answered += 1;
            }
            Report::Traced { socket, direction, packets } => {
                self.traced(number, socket, direction, packets);
            }
        }
        Ok(())
    }

    pub(crate) fn send(&self, number: u64, order: &Order) -> Result<(), LinkError> {
        self.sessions.get(&number).map_or(Ok(()), |session| session.link.send(order, &[]))
    }

    /// Attaches a program to both directions of a socket. After an error, one may be attached.
    pub(crate) fn attach(
        &mut self,
        number: u64,
        socket: u32,
        program: usize,
    ) -> Result<(), AttachError> {
        self.look(program);
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        let Some(of) = session.sockets.get(&socket).cloned() else { return Ok(()) };
        let its = &mut self.programs[program];
        let Some(port) = its.port(&of.interface) else { return Ok(()) };
        for direction in Direction::BOTH {
            let (exists, port) = match direction {
                Direction::Receive => (of.receives, port),
                Direction::Transmit => (of.transmits, port | TRANSMITTED),
            };
            if !exists {
                continue;
            }
            let tenant = || its.tenant.name.clone();
            if !its.has_run() {
                return Err(Refusal::NotRunning { tenant: tenant() }.into());
            }
            let queues = its.tenant.config.queues;
            let no_queue = Refusal::NoQueue { tenant: tenant(), queues };
            let queue = its.take_queue().ok_or(no_queue)?;
            let attachment = session.number();
            let mut to = Attached {
                socket,
                direction,
                attachment,
                program,
                port,
                queue,
                is_detached: false,
                incarnation: None,
            };
            let attached = its.attach(number, &session.link, &to);
            to.incarnation = attached.inspect_err(|_| its.free_queue(queue))?;
            session.attached.push(to);
        }
        Ok(())
    }

    /// Removes a socket and its attachments.
    fn close(&mut self, number: u64, socket: u32) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        session.sockets.remove(&socket);
        session.counters.retain(|one| one.socket != socket);
        let is_its = |one: &mut Attached| one.socket == socket;
        let detached = session.draining.extract_if(.., is_its).filter(|one| one.is_detached);
        for attached in detached.chain(session.attached.extract_if(.., is_its)) {
            self.programs[attached.program].free_queue(attached.queue);
        }
    }

    fn drained(&mut self, number: u64, attachment: u64) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        let mut all = session.draining.iter();
        let Some(at) = all.position(|one| one.attachment == attachment) else { return };
        let drained = session.draining.swap_remove(at);
        let program = drained.program;
        // A detached attachment has kept its queue until now.
        if drained.is_detached {
            self.programs[program].free_queue(drained.queue);
        }
        let mut all = self.sessions.values().flat_map(|session| &session.draining);
        if !all.any(|other| other.program == program) {
            self.programs[program].all_drained();
        }
    }

    /// Looks after a program. If it has another process, its attachments get queues of that one.
    fn look(&mut self, program: usize) {
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

    fn trace(&mut self, trace: Trace) -> Result<(), Error> {
        self.end_trace();
        if self.trace.is_some() {
            return Err(Error::Tracing);
        }
        if let Some(name) = &trace.interface
            && !self.programs.iter().any(|one| one.port(name).is_some())
        {
            return Err(Error::NotAttached(name.clone()));
        }
        let packets = trace.left;
        self.trace = Some(trace);
        self.order_trace(packets);
        Ok(())
    }

    /// Ends the trace if nothing is wanted any more.
    fn end_trace(&mut self) {
        if self.trace.as_ref().is_some_and(Trace::is_over) {
            self.order_trace(0);
            self.trace = None;
        }
    }

    /// Asks all processes for a number of packets, or for no more.
    fn order_trace(&mut self, packets: u32) {
        let Some(trace) = self.trace.take() else { return };
        self.each_session(|session| {
            let orders = trace.orders(session, packets);
            orders.iter().try_for_each(|order| session.link.send(order, &[]))
        });
        self.trace = Some(trace);
    }

    /// Passes traced packets of a process on.
    fn traced(&mut self, number: u64, socket: u32, direction: Direction, packets: Vec<Traced>) {
        let (Some(trace), Some(session)) = (&mut self.trace, self.sessions.get(&number)) else {
            return;
        };
        let Some(of) = session.sockets.get(&socket) else { return };
        let is_it = |one: &&Attached| one.socket == socket && one.direction == direction;
        let attached = session.attached.iter().find(is_it);
        for packet in packets {
            trace.pass(TracedPacket {
                process: session.process,
                interface: of.interface.clone(),
                queue: of.queue,
                direction,
                tenant: attached.map(|one| self.programs[one.program].tenant.name.clone()),
                port: attached.map(|one| one.port),
                packet,
            });
        }
        self.end_trace();
    }
}
