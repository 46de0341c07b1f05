//! Tests of programs that a process hosts.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::socket::{Shutdown, shutdown};
use p4_object::{Entry, Key, Map, MapKind};
use sandbox::process::{
    Arena, Config, Decision, Host, Hosted, Launcher, Packet, PacketQueue, Reason, Sandbox,
    SelfTest, StartError,
};
use sandbox::{Maps, Operation};

use super::common::*;

/// Hosts programs in this process.
#[derive(Debug, Default)]
struct Here(Mutex<Vec<Running>>);

#[derive(Debug)]
struct Running {
    hosted: Arc<Hosted>,
    /// Copy of the control socket.
    control: OwnedFd,
    thread: JoinHandle<()>,
}

impl Host for Here {
    fn start(&self, control: OwnedFd, bell: OwnedFd) -> io::Result<()> {
        let hosted = Arc::new(Hosted::default());
        let (its, copy) = (Arc::clone(&hosted), control.try_clone()?);
        let thread = std::thread::spawn(move || its.run(control, bell));
        self.running().push(Running { hosted, control: copy, thread });
        Ok(())
    }

    fn end(&self) {
        self.running().iter().for_each(|one| one.hosted.end());
    }

    fn process(&self) -> u32 {
        std::process::id()
    }
}

impl Here {
    fn running(&self) -> MutexGuard<'_, Vec<Running>> {
        self.0.lock().expect("no thread has panicked")
    }

    /// The last program.
    fn hosted(&self) -> Arc<Hosted> {
        Arc::clone(&self.running().last().expect("a program has been started").hosted)
    }

    /// Ends the threads of the programs, as the end of a process does.
    fn leave(&self) {
        for Running { control, thread, .. } in self.running().drain(..) {
            // The switch may have closed its end.
            let _ = shutdown(control.as_raw_fd(), Shutdown::Both);
            thread.join().expect("it does not panic");
        }
    }
}

/// Moves the program of a sandbox.
fn move_to(sandbox: &mut Sandbox, host: Arc<dyn Host>) -> Result<(), StartError> {
    let prepared = sandbox.prepare_move(&Launcher::hosted(host))()?;
    sandbox.move_to(prepared, &|| false)
}

/// A host that does not respond.
#[derive(Debug, Default)]
struct Silent(Mutex<Vec<OwnedFd>>);

impl Host for Silent {
    fn start(&self, control: OwnedFd, bell: OwnedFd) -> io::Result<()> {
        self.0.lock().expect("no thread has panicked").extend([control, bell]);
        Ok(())
    }

    fn end(&self) {}

    fn process(&self) -> u32 {
        std::process::id()
    }
}

fn start(object: &[u8]) -> Sandbox {
    let arena = Arc::new(Arena::new(FRAMES * 2, FRAME).expect("memory"));
    let config = Config { queues: 1, places: FRAMES, ..patient() };
    Sandbox::start(launcher(), config, arena, object).expect("it starts")
}

fn count(sandbox: &mut Sandbox) -> u64 {
    let value = sandbox.get(0, &Key::index(0)).expect("an answer").expect("an entry");
    u64::from_ne_bytes(value.try_into().expect("eight bytes"))
}

fn submit(queue: &mut PacketQueue, count: u32) {
    for slot in queue.frames().take(count as usize) {
        queue
            .submit(Packet { slot, start: 0, length: 60, port: 1, at: None })
            .expect("a free frame");
    }
    queue.flush();
}

#[test]
fn a_program_moves_to_a_host_and_back_with_its_maps() {
    let mut sandbox = start(&counting(1));
    let mut traffic = Traffic::new();
    traffic.step(&mut sandbox);
    traffic.drain(&mut sandbox);
    let counted = count(&mut sandbox);
    assert_eq!(counted, u64::from(FRAMES));
    let host = Arc::new(Here::default());
    move_to(&mut sandbox, Arc::clone(&host) as Arc<dyn Host>).unwrap();
    assert!(sandbox.is_hosted() && sandbox.status().is_hosted);
    assert_eq!((sandbox.status().process, sandbox.status().version), (Some(std::process::id()), 1));
    assert_eq!(count(&mut sandbox), counted);
    // This thread judges its packets: their verdicts are there immediately.
    let mut queue = sandbox.shared().unwrap().open(1).unwrap();
    submit(&mut queue, 32);
    host.hosted().serve();
    assert_eq!(queue.collect(), Ok(32));
    let mut answers = Vec::new();
    queue.take_all(&mut answers);
    assert!(
        answers.iter().all(|one| (one.reason, one.decision) == (Reason::Program, Decision::Pass))
    );
    assert_eq!(count(&mut sandbox), counted + 32);
    // The sandbox's own packets are judged by the host's thread.
    traffic.step(&mut sandbox);
    traffic.drain(&mut sandbox);
    // The host ends with packets in flight: the next process judges them.
    host.leave();
    submit(&mut queue, 3);
    until("another process", || {
        sandbox.look_after();
        sandbox.shared().is_some() && !sandbox.is_hosted()
    });
    assert_eq!((sandbox.last_end(), sandbox.counters().crashed_processes), (Reason::Crashed, 0));
    queue.disconnect(sandbox.last_end(), Reason::Restarting);
    answers.clear();
    queue.take_all(&mut answers);
    assert!(answers.len() == 3 && answers.iter().all(|one| one.reason == Reason::Crashed));
    // What the program has counted since the move is lost with the host, as with a process.
    assert_eq!(count(&mut sandbox), u64::from(FRAMES));
    traffic.step(&mut sandbox);
    traffic.drain(&mut sandbox);
}

/// A process uses the frames of packets that a host has given up.
#[test]
fn a_host_judges_nothing_after_its_end() {
    let mut sandbox = start(&pass());
    let host = Arc::new(Here::default());
    move_to(&mut sandbox, Arc::clone(&host) as Arc<dyn Host>).unwrap();
    let mut queue = sandbox.shared().unwrap().open(1).unwrap();
    let hosted = host.hosted();
    submit(&mut queue, 1);
    hosted.serve();
    until("a verdict", || queue.collect() == Ok(1));
    queue.take_all(&mut Vec::new());
    hosted.end();
    submit(&mut queue, 1);
    hosted.serve();
    assert_eq!(queue.collect(), Ok(0));
    // The end of the program in the switch ends it in the host.
    drop(sandbox);
    host.leave();
}

/// A compromised host that reports a program without maps.
#[derive(Debug)]
struct Liar;

impl Host for Liar {
    fn start(&self, control: OwnedFd, _bell: OwnedFd) -> io::Result<()> {
        let mut control = UnixStream::from(control);
        let receive = |control: &mut UnixStream| {
            let mut head = [0; 4];
            control.read_exact(&mut head)?;
            control.read_exact(&mut vec![0; u32::from_le_bytes(head) as usize])
        };
        let send = |control: &mut UnixStream, message: &[u8]| {
            control.write_all(&(message.len() as u32).to_le_bytes())?;
            control.write_all(message)
        };
        std::thread::spawn(move || {
            receive(&mut control)?;
            // Answer::Isolated, with no parts.
            send(&mut control, &[0, 0])?;
            receive(&mut control)?;
            // Answer::Ready, without maps, keys and digests.
            send(&mut control, &[1, 0, 0, 0, 0])?;
            receive(&mut control)
        });
        Ok(())
    }

    fn end(&self) {}

    fn process(&self) -> u32 {
        std::process::id()
    }
}

#[test]
fn a_host_with_other_maps_is_refused() {
    let mut sandbox = start(&counting(1));
    let entry = Entry { map: 1, key: Key::Bytes(vec![1, 2, 3, 4]), value: vec![9; 8] };
    sandbox.apply(&[Operation::Put(entry.clone())]).unwrap();
    let moved = move_to(&mut sandbox, Arc::new(Liar));
    assert!(matches!(moved, Err(StartError::InvalidMessage)), "{moved:?}");
    assert!(!sandbox.is_hosted());
    assert_eq!(sandbox.get(1, &entry.key).unwrap(), Some(entry.value));
}

/// A control plane that sets the same program again during a move starts another sandbox.
#[test]
fn a_program_that_is_set_again_is_not_moved() {
    let (first, mut second) = (start(&pass()), start(&pass()));
    let host = Arc::new(Here::default());
    let launcher = Launcher::hosted(Arc::clone(&host) as Arc<dyn Host>);
    let prepared = first.prepare_move(&launcher)().unwrap();
    let moved = second.move_to(prepared, &|| false);
    assert!(matches!(moved, Err(StartError::Replaced)), "{moved:?}");
    assert!(!second.is_hosted());
    let prepared = first.preparer().prepare(&pass(), &SelfTest::default()).unwrap();
    let swapped = second.swap(prepared, &[], |_| true);
    assert!(matches!(swapped, Err(StartError::Replaced)), "{swapped:?}");
    let mut traffic = Traffic::new();
    traffic.step(&mut second);
    traffic.drain(&mut second);
    host.leave();
}

/// A request may change arrays for minutes.
#[test]
fn the_end_of_a_program_does_not_wait_for_a_request() {
    let cells = Map {
        name: "cells".to_owned(),
        kind: MapKind::Array,
        key_size: 4,
        value_size: 64,
        max_entries: 1 << 16,
    };
    let mut sandbox = start(&object(vec![one(0xb7, 0, 0, 0, 1), EXIT], vec![cells]));
    let host = Arc::new(Here::default());
    move_to(&mut sandbox, Arc::clone(&host) as Arc<dyn Host>).unwrap();
    let (hosted, is_over) = (host.hosted(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let applied = sandbox.apply(&vec![Operation::Clear { map: 0 }; 1000]);
            is_over.store(true, Ordering::SeqCst);
            applied.expect("the request is answered");
        });
        // Longer than a look at the queues.
        let mut since = Instant::now();
        until("a request", || {
            if hosted.take().is_some() {
                since = Instant::now();
            }
            since.elapsed() > Duration::from_millis(50)
        });
        hosted.end();
        assert!(!is_over.load(Ordering::SeqCst));
        assert!(hosted.take().is_none());
    });
    assert!(hosted.take().is_none(), "it has ended");
    host.leave();
}

#[test]
fn threads_share_a_hosted_program() {
    const ROUNDS: u32 = 200;
    let mut sandbox = start(&counting(1));
    let host = Arc::new(Here::default());
    move_to(&mut sandbox, Arc::clone(&host) as Arc<dyn Host>).unwrap();
    let (hosted, shared) = (host.hosted(), sandbox.shared().unwrap());
    let mut queue = shared.open(1).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                submit(&mut queue, 32);
                let mut answers = Vec::new();
                until("answers", || {
                    hosted.serve();
                    queue.collect().expect("the program is honest");
                    queue.take_all(&mut answers);
                    answers.len() == 32
                });
            }
        });
        // Requests meanwhile.
        let mut last = 0;
        for _ in 0..100 {
            let now = count(&mut sandbox);
            assert!(now >= last);
            last = now;
        }
    });
    assert_eq!(count(&mut sandbox), u64::from(ROUNDS * 32));
}

#[test]
fn a_host_that_does_not_answer_keeps_the_process() {
    let mut sandbox = start(&pass());
    let process = sandbox.status().process;
    let host = Arc::new(Silent::default());
    let begin = std::time::Instant::now();
    assert!(move_to(&mut sandbox, host as Arc<dyn Host>).is_err());
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert_eq!((sandbox.status().process, sandbox.is_hosted()), (process, false));
    let mut traffic = Traffic::new();
    traffic.step(&mut sandbox);
    traffic.drain(&mut sandbox);
}
