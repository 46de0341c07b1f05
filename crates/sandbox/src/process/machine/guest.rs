//! The process of the guest, its init.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use sandbox_queue::Mapping;

use super::super::clock::since_start;
use super::super::isolation::Isolation;
use super::super::message::Answer;
use super::super::server::{Greeted, Server, other};
use super::serial::Serial;
use super::{FRAMES, Order, RINGS};

/// Number of polls between two reads of the clock.
const LOOKS: u32 = 64;
/// Time for which the guest sleeps if there are no packets.
const PAUSE: Duration = Duration::from_micros(100);

/// Runs the program. Returns after an error; the kernel then panics, which ends the machine.
pub(in super::super) fn run(order: &str) -> ExitCode {
    let Ok(mut serial) = mount_all().and_then(|()| Serial::open()) else {
        return ExitCode::FAILURE;
    };
    std::panic::set_hook(Box::new(|_| {}));
    if let Err(why) = serve(&mut serial, order) {
        // The machine ends in any case.
        let _ = serial.send(&Answer::Failed(why.to_string()).encode());
    }
    ExitCode::FAILURE
}

fn mount_all() -> io::Result<()> {
    for (kind, at) in [("devtmpfs", "/dev"), ("sysfs", "/sys")] {
        mount(Some("none"), at, Some(kind), MsFlags::empty(), None::<&str>)?;
    }
    Ok(())
}

fn serve(serial: &mut Serial, order: &str) -> io::Result<()> {
    let Order { hello, isolation } = Order::decode(order).ok_or_else(|| other("no order"))?;
    let map = |slot: u8| move |size| Mapping::of_device(device(slot)?, size);
    let greeted = Greeted::map(hello, map(RINGS), map(FRAMES))?;
    let isolation = isolation.with(Isolation::MACHINE);
    serial.send(&Answer::Isolated(isolation).encode())?;
    serial.wait(Duration::from_secs(60));
    let arrived = since_start();
    let message = serial.receive()?;
    let (mut server, ready) = greeted.load(&message, Some(arrived))?;
    serial.send(&ready.encode())?;
    let spin = Duration::from_micros(hello.spin_us.into());
    loop {
        if server.rings.has_message() {
            let message = serial.receive()?;
            serial.send(&server.answer(&message).encode())?;
        }
        // The switch polls.
        if !server.serve_queues(|| {}) {
            wait(&server, spin);
        }
    }
}

/// Waits for a packet or a message: spins, then sleeps, since the switch cannot wake the guest.
fn wait(server: &Server, spin: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < spin {
        for _ in 0..LOOKS {
            if server.has_work() {
                return;
            }
            std::hint::spin_loop();
        }
    }
    while !server.has_work() {
        #[expect(clippy::disallowed_methods, reason = "the switch cannot wake the guest")]
        std::thread::sleep(PAUSE);
    }
}

/// Opens the memory of the ivshmem device in a slot.
fn device(slot: u8) -> Result<File, nix::errno::Errno> {
    let path = PathBuf::from(format!("/sys/bus/pci/devices/0000:00:{slot:02x}.0/resource2"));
    let file = OpenOptions::new().read(true).write(true).open(path);
    file.map_err(|why| nix::errno::Errno::from_raw(why.raw_os_error().unwrap_or(libc::EIO)))
}
