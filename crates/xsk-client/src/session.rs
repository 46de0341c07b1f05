//! The link to `kaido xsk`: reports sockets and executes orders, on a thread of its own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use sandbox::process::Hosted;
use sandbox_queue::Reason;
use xsk_link::{Attach, Direction, Link, Order, Report, SocketCounters, VARIABLE, VERSION};

use crate::attachment::Attachment;
use crate::judge::Judge;
use crate::sockets::{self, QueueName, Socket};

/// Interval at which paths are moved whose client makes no system calls, and reports are sent.
const LOOK: Duration = Duration::from_millis(10);
/// Timeout of the attachments of a new socket.
const TIMEOUT: Duration = Duration::from_secs(30);

/// State of the link.
enum State {
    /// No socket has been created.
    Unused,
    /// The client was not started by `kaido xsk`: packets pass without programs.
    Absent,
    Linked(Arc<Link>),
    /// `kaido xsk` has ended.
    Ended,
}

/// Value of [`VARIABLE`] at the start.
static INHERITED: OnceLock<Option<OsString>> = OnceLock::new();
static STATE: Mutex<State> = Mutex::new(State::Unused);
/// Answers to new sockets: the reason for a refusal.
static ANSWERS: Mutex<Vec<(u32, Result<(), String>)>> = Mutex::new(Vec::new());
/// Programs that this process hosts, by number.
static HOSTS: Mutex<BTreeMap<u64, Arc<Hosted>>> = Mutex::new(BTreeMap::new());
static CHANGED: Condvar = Condvar::new();

/// Reads the environment, which the client may clear before its first socket.
pub fn remember_environment() {
    INHERITED.get_or_init(|| std::env::var_os(VARIABLE));
}

/// Prints a message about a failure.
pub fn complain(why: &str) {
    // Not eprintln!, which panics if the pipe is closed: the client goes on.
    let _ = writeln!(std::io::stderr(), "kaido xsk: {why}");
}

/// A socket that cannot be opened.
pub struct Refused {
    /// The reason, for the operator.
    pub why: String,
    /// The socket, which is closed. Its owner may still need its rings.
    pub socket: Arc<Socket>,
}

/// Registers a new socket, reports it, and waits until its programs are attached. Until then, no
/// packet passes.
///
/// # Errors
///
/// Fails if the link fails, or if the daemon refuses the socket. It is not registered then: its
/// packets would pass without the program.
pub fn open(socket: Socket, name: QueueName) -> Result<Arc<Socket>, Refused> {
    let socket = sockets::add(socket);
    match report(&socket, name) {
        Ok(()) => {
            each_judge(&socket, Judge::open);
            Ok(socket)
        }
        Err(why) => {
            delete(&socket);
            Err(Refused { why, socket })
        }
    }
}

fn report(opened: &Socket, name: QueueName) -> Result<(), String> {
    let Some(link) = link()? else { return Ok(()) };
    let QueueName { interface, queue } = name;
    let number = opened.number;
    let failed =
        |why: &dyn std::fmt::Display| format!("{interface}: no program is attached: {why}");
    let [receives, transmits] = opened.directions();
    let report =
        Report::Opened { socket: number, interface: interface.clone(), queue, receives, transmits };
    link.send(&report).map_err(|why| failed(&why))?;
    let begin = Instant::now();
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Some(at) = answers.iter().position(|(socket, _)| *socket == number) {
            let (_, answer) = answers.swap_remove(at);
            return answer.map_err(|why| failed(&why));
        }
        if matches!(*lock(), State::Ended) {
            return Err(failed(&"`kaido xsk` has ended"));
        }
        let Some(left) = TIMEOUT.checked_sub(begin.elapsed()) else {
            return Err(failed(&"`kaido xsk` does not respond"));
        };
        let waited = CHANGED.wait_timeout(answers, left.min(LOOK));
        answers = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// Deletes a socket. Afterwards no thread uses its rings.
pub fn delete(socket: &Socket) {
    sockets::remove(socket.descriptor);
    socket.close();
    close(socket.number);
}

/// Reports that a socket has been deleted.
pub fn close(socket: u32) {
    if let State::Linked(link) = &*lock() {
        // `kaido xsk` may have ended.
        let _ = link.send(&Report::Closed { socket });
    }
}

fn lock() -> std::sync::MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the link, which the first call creates; `None` without `kaido xsk`.
fn link() -> Result<Option<Arc<Link>>, String> {
    let mut state = lock();
    match &*state {
        State::Linked(link) => return Ok(Some(Arc::clone(link))),
        State::Absent => return Ok(None),
        State::Ended => return Err("`kaido xsk` has ended".to_owned()),
        State::Unused => {}
    }
    let Some(inherited) = INHERITED.get_or_init(|| std::env::var_os(VARIABLE)) else {
        *state = State::Absent;
        return Ok(None);
    };
    let inherited = inherited.to_str().and_then(|text| text.parse::<RawFd>().ok());
    let inherited = inherited.filter(|fd| *fd >= 0).ok_or("its descriptor is not a number")?;
    // SAFETY: a descriptor that is not open leads to an error; it is not closed.
    let inherited = unsafe { BorrowedFd::borrow_raw(inherited) };
    let failed = |why: xsk_link::Error| format!("`kaido xsk` cannot be reached: {why}");
    let link = Arc::new(Link::request(inherited).map_err(failed)?);
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let hello = Report::Hello { version: VERSION, process: std::process::id(), program };
    link.send(&hello).map_err(failed)?;
    let its = Arc::clone(&link);
    start(move || serve(&its)).map_err(|why| format!("no thread for the link: {why}"))?;
    *state = State::Linked(Arc::clone(&link));
    Ok(Some(link))
}

/// Starts a thread that gets none of the client's signals.
///
/// # Errors
///
/// Fails if there are too many threads.
pub fn start(function: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
    let mut before = SigSet::empty();
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))?;
    let started = std::thread::Builder::new().name("kaido-xsk".to_owned()).spawn(function);
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
    started.map(drop)
}

/// Executes orders until `kaido xsk` ends; then the policies decide about all packets.
fn serve(link: &Link) {
    while let Ok(()) = step(link) {}
    *lock() = State::Ended;
    link.close();
    for socket in sockets::all() {
        each_judge(&socket, |judge| judge.end_all(Reason::Evicted, Reason::Evicted));
    }
    complain("`kaido xsk` has ended; each tenant's policy decides about its packets");
    loop {
        for socket in sockets::all() {
            socket.advance();
        }
        wait(None);
    }
}

fn each_judge(socket: &Socket, mut function: impl FnMut(&mut Judge)) {
    for direction in Direction::BOTH {
        socket.with_judge(direction, &mut function);
    }
}

/// Waits for an order, at most for [`LOOK`].
fn wait(link: Option<&Link>) {
    let fds = link.map(|link| PollFd::new(link.as_fd(), PollFlags::POLLIN));
    let mut fds: Vec<PollFd<'_>> = fds.into_iter().collect();
    // Not poll(2), which the preload library replaces. A signal ends it early, and is harmless.
    let _ = ppoll(&mut fds, Some(TimeSpec::from_duration(LOOK)), None);
}

fn step(link: &Link) -> Result<(), xsk_link::Error> {
    wait(Some(link));
    while let Some((order, files)) = link.receive()? {
        execute(link, order, files)?;
    }
    for socket in sockets::all() {
        socket.advance();
        for direction in Direction::BOTH {
            let taken =
                socket.with_judge(direction, |judge| (judge.take_reports(), judge.take_traced()));
            let (mut reports, packets) = taken.unwrap_or_default();
            if !packets.is_empty() {
                reports.push(Report::Traced { socket: socket.number, direction, packets });
            }
            reports.iter().try_for_each(|report| link.send(report))?;
        }
    }
    Ok(())
}

fn execute(link: &Link, order: Order, files: Vec<OwnedFd>) -> Result<(), xsk_link::Error> {
    let find = |number: u32| sockets::all().into_iter().find(|socket| socket.number == number);
    match order {
        Order::Host { program } => host(program, files)?,
        Order::Unhost { program } => {
            let hosted = hosts().get(&program).cloned();
            hosted.iter().for_each(|hosted| hosted.end());
        }
        Order::Attach(order) => {
            if let Some(socket) = find(order.socket) {
                attach(&socket, &order, files)?;
            }
        }
        Order::Detach { socket, direction } => {
            if let Some(socket) = find(socket) {
                socket.with_judge(direction, |judge| judge.attach(None));
            }
        }
        Order::Ended { attachment, flying, later } => {
            for socket in sockets::all() {
                each_judge(&socket, |judge| judge.end(attachment, flying, later));
            }
        }
        Order::Trace { socket, packets } => {
            let all = sockets::all().into_iter();
            let traced = all.filter(|one| socket.is_none_or(|number| number == one.number));
            traced.for_each(|socket| each_judge(&socket, |judge| judge.trace(packets)));
        }
        Order::Ready { socket } => answer(socket, Ok(())),
        Order::Refused { socket, why } => answer(socket, Err(why)),
        Order::Count => {
            let counters = sockets::all().iter().map(|socket| counters(socket)).collect();
            link.send(&Report::Counters(counters))?;
        }
    }
    Ok(())
}

/// Answers the thread that opens a socket.
fn answer(socket: u32, answer: Result<(), String>) {
    ANSWERS.lock().unwrap_or_else(PoisonError::into_inner).push((socket, answer));
    CHANGED.notify_all();
}

/// Hosts a program on a thread of its own, until `kaido xsk` ends it.
fn host(program: u64, files: Vec<OwnedFd>) -> Result<(), xsk_link::Error> {
    let invalid = |_| xsk_link::Error::Invalid;
    let [control, bell] = <[OwnedFd; 2]>::try_from(files).map_err(invalid)?;
    let hosted = Arc::new(Hosted::default());
    hosts().insert(program, Arc::clone(&hosted));
    let run = move || {
        hosted.run(control, bell);
        hosts().remove(&program);
    };
    if start(run).is_err() {
        // The descriptors are closed: the program stays where it is.
        hosts().remove(&program);
    }
    Ok(())
}

fn hosts() -> std::sync::MutexGuard<'static, BTreeMap<u64, Arc<Hosted>>> {
    HOSTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn attach(socket: &Socket, order: &Attach, files: Vec<OwnedFd>) -> Result<(), xsk_link::Error> {
    let invalid = |_| xsk_link::Error::Invalid;
    let [rings, frames] = <[OwnedFd; 2]>::try_from(files).map_err(invalid)?;
    let host = order.host.and_then(|program| hosts().get(&program).cloned());
    let attachment = Attachment::new(order, &rings, frames, host)?;
    socket.with_judge(order.direction, |judge| judge.attach(Some(attachment)));
    Ok(())
}

fn counters(socket: &Socket) -> SocketCounters {
    let tally = |direction| socket.with_judge(direction, |judge| judge.tally());
    SocketCounters {
        socket: socket.number,
        receive: tally(Direction::Receive).unwrap_or_default(),
        transmit: tally(Direction::Transmit).unwrap_or_default(),
    }
}
