//! Messages about a running program.

use std::process::ExitCode;

use output::p4::{EndedProgram, Packets, RunningProgram};
use p4runtime::{Counts, Health, Pipeline, Plane, Running};

use crate::cli::P4Run;
use crate::failure::{Done, Failure};
use crate::output::{Output, counted};

/// Reports that the program runs, its tables, and the address for its control plane.
pub(super) fn begun(
    pipeline: &Pipeline,
    plane: &Plane<impl Running>,
    address: Option<&str>,
    options: &P4Run,
    output: &Output,
) -> Result<(), Failure> {
    let Health { isolation, lacks, .. } = plane.health().unwrap_or_default();
    let said = RunningProgram {
        program: options.program.file.display().to_string(),
        tables: pipeline.tables.len(),
        registers: pipeline.registers.len(),
        p4runtime: address.map(str::to_owned),
        device_id: options.device_id,
        cpu_port: options.cpu_port,
        vm_info: options.vm_info.as_ref().map(|file| file.display().to_string()),
        vm_keys: plane.program().vm_keys.clone(),
        isolation: isolation.names(),
        isolation_lacks: lacks.names(),
    };
    output.print(&said, |said| {
        let RunningProgram { program, device_id, vm_keys: keys, .. } = said;
        let has =
            format!("{}, {}", counted(said.tables, "table"), counted(said.registers, "register"));
        let served = match address {
            None => "without P4Runtime".to_owned(),
            Some(address) => format!("P4Runtime at {address}, device {device_id}"),
        };
        let reads = match &said.vm_info {
            Some(file) if !keys.is_empty() => format!(", reads {} from {file}", keys.join(", ")),
            _ => String::new(),
        };
        format!("{program} runs ({has}), {served}{reads}; Ctrl-C ends it")
    })
}

/// Warns if the process has less than the usual isolation, which `--isolation reduced` allows, or no
/// CPU limit although one was asked for.
pub(super) fn lacks(plane: &Plane<impl Running>, output: &Output) {
    let lacks = plane.health().unwrap_or_default().lacks;
    if !lacks.is_empty() && !output.is_json() {
        crate::output::tell(&format!(
            "kaido: warning: the program's process has no {}",
            lacks.names().join(", no ")
        ));
    }
}

/// Reports the outcome of the packets.
pub(super) fn ended(plane: &Plane<impl Running>, output: &Output) -> Done {
    let counts = plane.counts();
    let Counts { passed, redirected, dropped, aborted, faults, cloned, to_cpu, lost, .. } = counts;
    let (digests, lost_digests) = (counts.digests, counts.lost_digests);
    let packets = passed + redirected + dropped + aborted + faults;
    let lacks = plane.health().unwrap_or_default().lacks.names();
    let said = EndedProgram {
        isolation_lacks: lacks,
        packets: Packets {
            all: packets,
            passed,
            redirected,
            dropped,
            aborted,
            faults,
            last_fault: plane.last_fault(),
            cloned,
            to_control_plane: to_cpu,
            lost_to_control_plane: lost,
            digests,
            lost_digests,
        },
    };
    output.print(&said, |said| {
        let mut text = format!(
            "{}: {passed} passed, {redirected} redirected, {dropped} dropped",
            counted(packets as usize, "packet")
        );
        let others = [
            (aborted, "given up by the program"),
            (faults, "dropped without a verdict"),
            (cloned, "cloned"),
            (to_cpu, "for the control plane"),
            (lost, "of these lost"),
            (digests, if digests == 1 { "digest" } else { "digests" }),
            (lost_digests, "of these lost"),
        ];
        for (count, what) in others.into_iter().filter(|(count, _)| *count > 0) {
            text.push_str(&format!(", {count} {what}"));
        }
        if let Some(fault) = &said.packets.last_fault {
            text.push_str(&format!("\nthe last time: {fault}"));
        }
        text
    })?;
    Ok(ExitCode::SUCCESS)
}
