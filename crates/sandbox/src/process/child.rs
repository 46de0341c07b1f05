//! Main loop of the sandbox process: runs the program on packets in shared memory.

use std::ffi::OsString;
use std::io;
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::channel::Channel;
use super::filter::{self, Stage};
use super::isolation::isolate;
use super::machine;
use super::message::Answer;
use super::server::{Greeted, Server, other};

/// Interval of the check for the switch when there are no packets.
const LOOK: Duration = Duration::from_secs(1);
/// Ring polls between two reads of the clock.
const LOOKS: u32 = 64;
/// Descriptors of the control socket and of the doorbell that wakes the switch.
pub(super) const CONTROL: i32 = 0;
const BELL: i32 = 1;

/// Entry point of the sandbox process. [`Sandbox`](super::Sandbox) starts it with the control
/// socket as standard input and an `eventfd` as standard output. Returns when the switch closes the
/// socket. The arguments select a virtual machine ([`Launcher::in_vm`](super::Launcher::in_vm)).
///
/// The process isolates itself before it receives a program. Call this first in `main`, while the
/// process is single-threaded.
pub fn run_child() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match arguments.iter().map(OsString::as_os_str).collect::<Vec<_>>()[..] {
        [.., last] if last == machine::START => machine::start(),
        [.., before, order] if before == machine::RUN => machine::run(&order.to_string_lossy()),
        _ => run_process(),
    }
}

fn run_process() -> ExitCode {
    // Errors are reported on the control socket; standard error is not available.
    std::panic::set_hook(Box::new(|_| {}));
    // SAFETY: the parent has opened the socket as descriptor 0, and it has no other user: the
    // process does not read standard input.
    let mut channel = Channel::new(unsafe { UnixStream::from_raw_fd(CONTROL) });
    match serve(&mut channel) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // The switch may have exited.
            let _ = channel.send(&Answer::Failed(why.to_string()).encode());
            ExitCode::FAILURE
        }
    }
}

fn serve(channel: &mut Channel) -> io::Result<()> {
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
    // All descriptors are closed before close(2) is filtered, and would kill the process.
    let greeted = Greeted::receive(channel)?;
    let spin = Duration::from_micros(u64::from(greeted.hello.spin_us));
    let isolation = isolate(greeted.hello.memory).map_err(other)?;
    channel.send(&Answer::Isolated(isolation).encode())?;
    let (mut server, ready) = greeted.load(&channel.receive()?, None)?;
    filter::install(Stage::Run).map_err(other)?;
    channel.send(&ready.encode())?;
    loop {
        if server.rings.has_message() {
            let message = channel.receive()?;
            channel.send(&server.answer(&message).encode())?;
        }
        if !server.serve_queues(ring) {
            wait(&server, channel, spin)?;
        }
    }
}

/// Waits for a packet or a message: spins, then sleeps.
fn wait(server: &Server, channel: &Channel, spin: Duration) -> io::Result<()> {
    let begin = Instant::now();
    loop {
        for _ in 0..LOOKS {
            if server.has_work() {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        if begin.elapsed() >= spin {
            break;
        }
    }
    server.rings.sleep(LOOK);
    if !server.has_work() {
        // Fails if the switch has closed the socket.
        channel.is_readable()?;
    }
    Ok(())
}

/// Rings the doorbell of the switch.
fn ring() {
    let one = 1_u64.to_ne_bytes();
    // The counter overflows only if the switch does not read it; the wake-up is pending then.
    // SAFETY: the buffer is eight bytes, which are readable.
    unsafe { libc::write(BELL, one.as_ptr().cast(), one.len()) };
}
