//! Tests of programs that a process hosts.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use p4_object::Key;
use sandbox::Maps;
use sandbox::process::{
    Arena, Config, Decision, Host, Hosted, Launcher, Packet, PacketQueue, Reason, Sandbox,
};

use super::common::*;

/// Hosts programs in this process.
#[derive(Debug, Default)]
struct Here {
    last: Mutex<Option<Arc<Hosted>>>,
    /// Copies of the control sockets.
    sockets: Mutex<Vec<OwnedFd>>,
}

impl Host for Here {
    fn start(&self, control: OwnedFd, bell: OwnedFd) -> io::Result<()> {
        let hosted = Arc::new(Hosted::default());
        *self.last.lock().expect("no thread has panicked") = Some(Arc::clone(&hosted));
        self.sockets.lock().expect("no thread has panicked").push(control.try_clone()?);
        std::thread::spawn(move || hosted.run(control, bell));
        Ok(())
    }

    fn process(&self) -> u32 {
        std::process::id()
    }
}

impl Here {
    fn hosted(&self) -> Arc<Hosted> {
        self.last
            .lock()
            .expect("no thread has panicked")
            .clone()
            .expect("a program has been started")
    }

    /// Ends the programs, as the end of a host does.
    fn end(&self) {
        for socket in self.sockets.lock().expect("no thread has panicked").drain(..) {
            use nix::sys::socket::{Shutdown, shutdown};
            use std::os::fd::AsRawFd;
            shutdown(socket.as_raw_fd(), Shutdown::Both).expect("the socket is open");
        }
    }
}

/// A host that does not answer.
#[derive(Debug, Default)]
struct Silent(Mutex<Vec<OwnedFd>>);

impl Host for Silent {
    fn start(&self, control: OwnedFd, bell: OwnedFd) -> io::Result<()> {
        self.0.lock().expect("no thread has panicked").extend([control, bell]);
        Ok(())
    }

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
    sandbox.move_to(&Launcher::hosted(Arc::clone(&host) as Arc<dyn Host>)).unwrap();
    assert!(sandbox.is_hosted() && sandbox.status().is_hosted);
    assert_eq!((sandbox.status().process, sandbox.status().version), (Some(std::process::id()), 1));
    assert_eq!(count(&mut sandbox), counted);
    // This thread judges its packets: their verdicts are there at once.
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
    let counted = count(&mut sandbox);
    // The host ends with packets in flight: the next process judges them.
    submit(&mut queue, 3);
    host.end();
    until("another process", || {
        sandbox.look_after();
        sandbox.shared().is_some() && !sandbox.is_hosted()
    });
    assert_eq!((sandbox.last_end(), sandbox.counters().crashed_processes), (Reason::Crashed, 0));
    queue.disconnect(sandbox.last_end(), Reason::Restarting);
    answers.clear();
    queue.take_all(&mut answers);
    assert!(answers.len() == 3 && answers.iter().all(|one| one.reason == Reason::Crashed));
    // The counter is lost with the host, as it is with a process.
    assert!(count(&mut sandbox) <= counted);
    traffic.step(&mut sandbox);
    traffic.drain(&mut sandbox);
}

/// Packets are not judged after the host has given them up: a process uses their frames.
#[test]
fn a_host_judges_nothing_after_its_end() {
    let mut sandbox = start(&pass());
    let host = Arc::new(Here::default());
    sandbox.move_to(&Launcher::hosted(Arc::clone(&host) as Arc<dyn Host>)).unwrap();
    let mut queue = sandbox.shared().unwrap().open(1).unwrap();
    let hosted = host.hosted();
    host.end();
    until("the end", || {
        sandbox.look_after();
        !sandbox.is_hosted()
    });
    // `run` returns some time after the socket is closed.
    until("no verdict", || {
        submit(&mut queue, 1);
        hosted.serve();
        let judged = queue.collect() != Ok(0);
        if judged {
            queue.take_all(&mut Vec::new());
        }
        !judged
    });
}

#[test]
fn threads_share_a_hosted_program() {
    const ROUNDS: u32 = 200;
    let mut sandbox = start(&counting(1));
    let host = Arc::new(Here::default());
    sandbox.move_to(&Launcher::hosted(Arc::clone(&host) as Arc<dyn Host>)).unwrap();
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
    assert!(sandbox.move_to(&Launcher::hosted(host as Arc<dyn Host>)).is_err());
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert_eq!((sandbox.status().process, sandbox.is_hosted()), (process, false));
    let mut traffic = Traffic::new();
    traffic.step(&mut sandbox);
    traffic.drain(&mut sandbox);
}
