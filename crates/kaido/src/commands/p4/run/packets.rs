//! Runs captures through programs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use capture::{Captured, Interface, Writer};
use p4runtime::{Plane, Running};

use crate::cli::P4Run;
use crate::failure::Failure;
use crate::target::{self, Target};

/// Maximum size of a capture, and of the packets that leave, in bytes.
const LARGEST: u64 = 1 << 30;

/// Reads the packets of a capture in either format.
pub(super) fn read(file: &Path) -> Result<Vec<Captured>, Failure> {
    let bytes = crate::input::read_bytes(file, "capture", LARGEST)?;
    let wrong = |why| Failure::usage(anyhow!("{}: {why}", file.display()));
    Ok(capture::read(&bytes).map_err(wrong)?.packets)
}

/// Runs the program on packets at their timestamps, and writes the packets that leave.
pub(super) fn run(
    packets: &[Captured],
    plane: &Plane<impl Running>,
    options: &P4Run,
) -> Result<(), Failure> {
    let target = match &options.out {
        None => None,
        Some(file) => {
            let given = [&options.pcap, &options.entries, &options.p4info, &options.vm_info];
            let given = given.into_iter().flatten().chain([&options.program.file]);
            target::is_none_of(file, given.map(PathBuf::as_path))?;
            let cannot = || format!("cannot write {}", file.display());
            Some(Target::resolve(file).with_context(cannot).map_err(Failure::failed)?)
        }
    };
    let began = packets.iter().map(|packet| packet.at_ns).min().unwrap_or_default();
    let (mut left, mut size) = (Vec::new(), 0);
    for packet in packets {
        let now = Duration::from_nanos(packet.at_ns - began);
        let leaving = plane.packet(options.port, &packet.bytes, Some(now));
        let leaving = leaving.map_err(Failure::failed)?;
        if target.is_none() {
            continue;
        }
        // Each takes some memory, also if it is empty.
        size += leaving.iter().map(|(_, bytes)| bytes.len() as u64 + 64).sum::<u64>();
        if size > LARGEST {
            let most = LARGEST >> 20;
            let why = anyhow!("more than {most} MiB of packets leave: use a shorter capture");
            return Err(Failure::usage(why));
        }
        left.extend(leaving.into_iter().map(|(port, bytes)| (packet.at_ns, port, bytes)));
    }
    let Some(target) = target else { return Ok(()) };
    let mut ports: BTreeMap<u32, u32> = left.iter().map(|(_, port, _)| (*port, 0)).collect();
    for (number, interface) in (0..).zip(ports.values_mut()) {
        *interface = number;
    }
    let name = |port: &u32| Interface { name: format!("port {port}"), comment: String::new() };
    let interfaces: Vec<_> = ports.keys().map(name).collect();
    let written = (|| {
        let mut writer = Writer::begin(Vec::new(), &interfaces, 0)?;
        for (at, port, bytes) in &left {
            writer.packet(ports[port], *at, bytes, "")?;
        }
        target.write(&writer.finish()?)
    })();
    written.context("what leaves cannot be written").map_err(Failure::failed)
}
