//! Programs as a device gets them: the object, its P4Info, and initial table entries.

use std::path::Path;

use anyhow::anyhow;
use p4info::v1::P4Info;
use p4runtime::Pipeline;
use p4runtime::v1::{ForwardingPipelineConfig, Update};

use super::bounds::bounded;
use super::{LARGEST, compiled, control_plane};
use crate::cli::P4Program;
use crate::commands::p4::table;
use crate::failure::Failure;
use crate::input;
use crate::output::Output;

/// A program with its initial table entries.
pub(in crate::commands) struct Loaded {
    /// The object.
    pub(in crate::commands) program: Vec<u8>,
    info: P4Info,
    pipeline: Pipeline,
    updates: Vec<Update>,
}

impl Loaded {
    /// The tables and actions that control planes know.
    pub(in crate::commands) fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// Initial table entries.
    pub(in crate::commands) fn updates(&self) -> &[Update] {
        &self.updates
    }

    /// Returns the configuration of a device, and the updates of its tables.
    pub(in crate::commands) fn into_config(self) -> (ForwardingPipelineConfig, Vec<Update>) {
        let config = ForwardingPipelineConfig {
            p4info: Some(self.info),
            p4_device_config: self.program,
            ..Default::default()
        };
        (config, self.updates)
    }
}

/// Loads a program or an object, and the file of its initial table entries.
pub(in crate::commands) fn load(
    program: &P4Program,
    p4info: Option<&Path>,
    entries: Option<&Path>,
    output: &Output,
) -> Result<Loaded, Failure> {
    let (object, info) = self::program(program, p4info, output)?;
    let describe = move || (Pipeline::new(&info), info);
    let (pipeline, info) = bounded(&program.file, describe)?;
    let pipeline = pipeline.map_err(Failure::usage)?;
    let Some(file) = entries else {
        return Ok(Loaded { program: object, info, pipeline, updates: Vec::new() });
    };
    let opened = program.opened.as_ref().and_then(|opened| opened.entries.as_ref());
    let text = input::read_opened(opened, file, "list of entries", LARGEST)?;
    let parse = move || {
        let updates = table::updates(&pipeline, &text);
        (pipeline, updates)
    };
    let (pipeline, updates) = bounded(file, parse)?;
    let updates = updates.map_err(|why| Failure::usage(anyhow!("{}: {why}", file.display())))?;
    Ok(Loaded { program: object, info, pipeline, updates })
}

/// Returns the object and P4Info of a program or an object.
fn program(
    program: &P4Program,
    p4info: Option<&Path>,
    output: &Output,
) -> Result<(Vec<u8>, P4Info), Failure> {
    let file = &program.file;
    let given = p4info.map(info_of_file).transpose()?;
    if file.extension().is_some_and(|extension| extension == "p4") {
        let (checked, mut compiled) = compiled(program, output)?;
        let (_, own) = control_plane(checked, program)?;
        compiled.object.info = p4info::binary(&own);
        let object = p4_object::write(&compiled.object).map_err(Failure::failed)?;
        return Ok((object, given.unwrap_or(own)));
    }
    let opened = program.opened.as_ref().map(|opened| &opened.program);
    let bytes = input::read_opened_bytes(opened, file, "program", LARGEST)?;
    let wrong = |why: String| Failure::usage(anyhow!("{}: {why}", file.display()));
    let parse = move || (p4_object::read(&bytes), bytes);
    let (object, bytes) = bounded(file, parse)?;
    let object = object.map_err(|why| wrong(why.to_string()))?;
    let info = match given {
        Some(info) => info,
        None if object.info.is_empty() => {
            let help = "add `--p4info FILE`";
            return Err(wrong(format!("the object has no p4info: {help}")));
        }
        None => p4runtime::object_info(&object.info)
            .map_err(|why| wrong(format!("its p4info cannot be read: {why}")))?,
    };
    Ok((bytes, info))
}

fn info_of_file(file: &Path) -> Result<P4Info, Failure> {
    let bytes = input::read_bytes(file, "p4info", LARGEST)?;
    let info = bounded(file, move || p4info::read(&bytes))?;
    info.map_err(|why| Failure::usage(anyhow!("{}: {why}", file.display())))
}
