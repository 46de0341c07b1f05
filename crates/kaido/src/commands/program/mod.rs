//! Programs that commands read: P4 sources, which are checked and compiled, and objects.

mod bounds;
mod diagnostics;
mod directories;
mod load;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;
use p4::Checked;
use p4::source::MAX_BYTES;
use p4_ebpf::Compiled;
use p4_object::Library;
use sandbox::Limits;

use crate::cli::P4Program;
use crate::failure::Failure;
use crate::input;
use crate::output::Output;

pub(in crate::commands) use bounds::bounded;
pub(in crate::commands) use diagnostics::all_output;
use diagnostics::tell;
use directories::Directories;
pub(in crate::commands) use load::{Loaded, load};

/// Maximum size of an object, a P4Info and a file of entries, in bytes.
pub(in crate::commands) const LARGEST: u64 = 64 << 20;

/// Parses and checks a program. Prints warnings immediately, unless the output is JSON.
pub(in crate::commands) fn checked(
    program: &P4Program,
    output: &Output,
) -> Result<Checked, Failure> {
    let file = &program.file;
    let opened = program.opened.as_ref();
    let own = opened.map(|opened| &opened.program);
    let text = input::read_opened(own, file, "program", MAX_BYTES as u64)?;
    let includes = Directories {
        program: file.parent().unwrap_or(Path::new("")).to_owned(),
        opened: opened.map(|opened| Arc::clone(&opened.directory)),
        directories: program.include.clone(),
        defines: program.defines.clone(),
    };
    let name = file.display().to_string();
    let checked = bounded(file, move || p4::check(&name, &text, &includes))?;
    tell(file, &checked.diagnostics, &checked.sources, output)?;
    Ok(checked)
}

/// Checks and compiles a program.
pub(in crate::commands) fn compiled(
    program: &P4Program,
    output: &Output,
) -> Result<(Checked, Compiled), Failure> {
    let checked = checked(program, output)?;
    let libraries = libraries(program)?;
    let compile = move || {
        let compiled = p4_ebpf::compile_with(&checked.program, &checked.sources, &libraries);
        (checked, compiled)
    };
    let (checked, compiled) = bounded(&program.file, compile)?;
    match compiled {
        Ok(compiled) => {
            // A library may contain any code.
            let cannot = |why| anyhow!("{}: {why}", program.file.display());
            p4_object::verify(&compiled.object).map_err(cannot).map_err(Failure::usage)?;
            let (count, most) = (compiled.object.code.len(), Limits::default().code);
            if count > most && !output.is_json() {
                let file = program.file.display();
                let said = format!("{count} instructions: `kaido p4 run` takes {most}");
                crate::output::tell(&format!("kaido: {file}: {said}"));
            }
            Ok((checked, compiled))
        }
        Err(why) => {
            tell(&program.file, &why, &checked.sources, output)?;
            Err(Failure::usage(anyhow!("{}: compilation failed", program.file.display())))
        }
    }
}

/// Reads the libraries of a program.
fn libraries(program: &P4Program) -> Result<Vec<Library>, Failure> {
    let read = |file: &PathBuf| {
        let name = file.display().to_string();
        let bytes = crate::input::read_bytes(file, "library", LARGEST)?;
        let shown = name.clone();
        let library = bounded(file, move || Library::read(&name, &bytes))?;
        library.map_err(|why| Failure::usage(anyhow!("{shown}: {why}")))
    };
    program.externs.iter().map(read).collect()
}

/// Returns the P4Info of a program.
pub(in crate::commands) fn control_plane(
    checked: Checked,
    program: &P4Program,
) -> Result<(Checked, p4info::v1::P4Info), Failure> {
    let describe = move || {
        let info = p4info::info(&checked.program).map_err(|why| why.to_string())?;
        // Report immediately the errors for which P4Runtime would reject it later.
        p4runtime::Pipeline::new(&info).map_err(|why| why.to_string())?;
        Ok((checked, info))
    };
    bounded(&program.file, describe)?
        .map_err(|why: String| Failure::usage(anyhow!("{}: {why}", program.file.display())))
}
