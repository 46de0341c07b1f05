//! `kaido p4 compile`: compiles programs to objects.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use output::p4::CompiledProgram;

use crate::cli::P4Program;
use crate::commands::program;
use crate::failure::{Done, Failure};
use crate::output::{Output, counted};
use crate::target::{self, Target};

pub(super) fn run(program: &P4Program, to: Option<PathBuf>, output: &Output) -> Done {
    let (checked, mut compiled) = program::compiled(program, output)?;
    let is_named = to.is_some();
    let to = to.unwrap_or_else(|| program.file.with_extension("o"));
    let included = checked.sources.names().map(Path::new);
    target::is_none_of(&to, included.chain([&*program.file]))?;
    let (_, info) = program::control_plane(checked, program)?;
    compiled.object.info = p4info::binary(&info);
    let bytes = p4_object::write(&compiled.object).map_err(Failure::failed)?;
    let cannot = || format!("cannot write {}", to.display());
    // Another user's link beside the program must not lead to a file of this user.
    let target = if is_named { Target::resolve(&to) } else { Target::replacing(&to) };
    let written = target.and_then(|target| target.write(&bytes));
    written.with_context(cannot).map_err(Failure::failed)?;
    let object = &compiled.object;
    let said = CompiledProgram {
        object: to.display().to_string(),
        instructions: object.code.len(),
        maps: object.maps.len(),
        bytes: bytes.len(),
    };
    output.print(&said, |said| {
        let (instructions, maps) =
            (counted(said.instructions, "instruction"), counted(said.maps, "map"));
        format!("{}: {instructions}, {maps}", said.object)
    })?;
    Ok(ExitCode::SUCCESS)
}
