//! The process that becomes QEMU.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

use super::super::channel::Channel;
use super::super::child::CONTROL;
use super::super::isolation::{isolate_vm, set_death_signal};
use super::super::message::{Answer, Request};
use super::super::server::other;
use super::{FRAMES, GUEST_MIB, Order, RINGS, RUN, filter, initramfs, kernel};

/// QEMU, from its package.
pub const QEMU: &str = "/usr/bin/qemu-system-x86_64";
/// The kernel, the standard error of this process. QEMU's user may not read the file, so that it gets a
/// copy.
const KERNEL: &str = "/proc/self/fd/2";
/// Directories of QEMU's data files. QEMU searches the current directory before them.
const DATA: [&str; 2] = ["/usr/share/qemu", "/usr/share/seabios"];
/// Device of KVM. Without it, QEMU translates the guest's code.
const KVM: &str = "/dev/kvm";

/// Becomes a virtual machine. Returns after an error, which it has reported on the control socket.
pub(in super::super) fn start() -> ExitCode {
    // Before anything takes time: the parent may end at any moment.
    if set_death_signal().is_err() {
        return ExitCode::FAILURE;
    }
    // SAFETY: the parent has opened the socket as descriptor 0, and it has no other user here.
    let mut channel = Channel::new(unsafe { UnixStream::from_raw_fd(CONTROL) });
    let Err(why) = exec(&mut channel);
    // The switch may have exited.
    let _ = channel.send(&Answer::Failed(why.to_string()).encode());
    ExitCode::FAILURE
}

fn exec(channel: &mut Channel) -> io::Result<std::convert::Infallible> {
    let (message, [rings, frames]) = channel.receive_with()?;
    let Some(Request::Hello(hello)) = Request::decode(&message) else {
        return Err(other("no greeting"));
    };
    hello.check_version().map_err(other)?;
    let image = memory("kernel")?;
    // Opened again, since all machines share the position of the descriptor.
    kernel::copy(&File::open(KERNEL)?, &image)?;
    let archive = memory("initramfs")?;
    let init = initramfs::write(&archive)?;
    let isolation = isolate_vm(kvm_group()).map_err(other)?;
    filter::install().map_err(other)?;
    // The change of user has cleared the death signal: if the parent ended meanwhile, its socket is
    // closed.
    channel.is_readable()?;
    let order = Order { hello, isolation };
    // QEMU inherits nothing but the files below.
    // SAFETY: the call changes flags of descriptors alone.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    for file in [rings.as_raw_fd(), frames.as_raw_fd(), image.as_raw_fd(), archive.as_raw_fd()] {
        inherit(file)?;
    }
    let mut qemu = Command::new(QEMU);
    // The limit of the program's memory is for its maps.
    let guest = GUEST_MIB + (hello.memory >> 20);
    qemu.current_dir("/")
        .arg("-m")
        .arg(format!("{guest}M"))
        .args(DATA.into_iter().flat_map(|directory| ["-L", directory]));
    qemu.args(fixed()).args(memories(&rings, &frames)?);
    qemu.arg("-kernel").arg(path(&image)).arg("-initrd").arg(path(&archive));
    qemu.arg("-append").arg(command_line(&init, &order));
    qemu.stdin(Stdio::inherit()).stdout(Stdio::null()).stderr(Stdio::null()).env_clear();
    let why = qemu.exec();
    let help = "install QEMU (Debian: qemu-system-x86)";
    Err(other(format!("cannot start {QEMU}: {why}: {help}")))
}

/// Arguments that do not depend on the program.
fn fixed() -> Vec<String> {
    let arguments = [
        "-nodefaults -no-user-config -display none -monitor none -no-reboot",
        "-machine pc -accel kvm -accel tcg,tb-size=64 -cpu max,la57=off -smp 1",
        // The control socket.
        "-chardev socket,id=control,fd=0 -device isa-serial,chardev=control",
        // QEMU's own filter of system calls.
        "-sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
    ];
    arguments.iter().flat_map(|part| part.split(' ')).map(str::to_owned).collect()
}

/// Arguments of the devices with the rings and the frames.
fn memories(rings: &OwnedFd, frames: &OwnedFd) -> io::Result<Vec<String>> {
    let mut arguments = Vec::new();
    for (name, file, slot) in [("rings", rings, RINGS), ("frames", frames, FRAMES)] {
        let size = nix::sys::stat::fstat(file)?.st_size;
        let path = path(file);
        arguments.push("-object".to_owned());
        arguments
            .push(format!("memory-backend-file,id={name},share=on,mem-path={path},size={size}"));
        arguments.push("-device".to_owned());
        arguments.push(format!("ivshmem-plain,memdev={name},addr={slot:#x}"));
    }
    Ok(arguments)
}

/// The kernel's command line. Words after `--` are arguments of init.
fn command_line(init: &[String], order: &Order) -> String {
    let (first, words) = init.split_first().expect("init has a path");
    let words: String = words.iter().map(|word| format!("{word} ")).collect();
    let order = order.encode();
    // A panic ends the machine: `-no-reboot`.
    format!("quiet panic=-1 rdinit={first} -- {words}{RUN} {order}")
}

/// Path of an inherited file. QEMU's user may open it, since a memfd has mode 0777.
fn path(file: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn memory(name: &str) -> Result<File, Errno> {
    memfd_create(name, MFdFlags::MFD_CLOEXEC).map(File::from)
}

fn inherit(file: RawFd) -> Result<(), Errno> {
    // SAFETY: the callers hold the file.
    let file = unsafe { std::os::fd::BorrowedFd::borrow_raw(file) };
    fcntl(file, FcntlArg::F_SETFD(FdFlag::empty())).map(drop)
}

/// Group that may use KVM, if there is KVM, and the group is not that of root.
fn kvm_group() -> Option<u32> {
    let device = std::fs::metadata(KVM).ok()?;
    let may_use = device.mode() & 0o060 == 0o060;
    Some(device.gid()).filter(|group| *group != 0 && may_use)
}
