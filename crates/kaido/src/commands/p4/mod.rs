//! `kaido p4`: tenants' programs.

mod compile;
mod explain;
mod publish;
mod published;
pub(in crate::commands) mod run;
mod socket;
mod table;
mod test;

pub(crate) use socket::socket;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use output::error::Details;
use output::p4::{CheckedProgram, Location, P4Info, Related};
use p4::diagnostic::{Diagnostic, Diagnostics, Severity};
use p4::source::{MAX_BYTES, Sources};
use p4::{Checked, Includes};
use p4_ebpf::Compiled;
use p4_object::Library;
use sandbox::Limits;

use crate::cli::{P4Command, P4Program};
use crate::failure::{Done, Failure};
use crate::output::{Output, counted};

/// Maximum size of an object, a P4Info and a file of entries, in bytes.
const LARGEST: u64 = 64 << 20;

pub(crate) fn run(command: P4Command, output: &Output) -> Done {
    match command {
        P4Command::Check { program } => check(&program, output),
        P4Command::Test { program, tests } => test::run(&program, &tests, output),
        P4Command::Info { program, binary } => info(&program, binary, output),
        P4Command::Compile { program, output: to } => compile::run(&program, to, output),
        P4Command::Explain { program } => explain::run(&program, output),
        P4Command::Run(options) => run::run(&options, output),
        P4Command::Attach(options) => crate::commands::xsk::attach(&options, output),
        P4Command::Table(command) => table::run(command, output),
        P4Command::Counter(command) => table::counter(command, output),
        P4Command::Meter(command) => table::meter(command, output),
        P4Command::Digest(options) => table::digest(&options, output),
        P4Command::Publish(options) => publish::run(&options, output),
        P4Command::Published { file, live } => published::run(&file, live, output),
    }
}

fn check(program: &P4Program, output: &Output) -> Done {
    // Also report features of the language that eBPF lacks, and conflicting ids.
    let (checked, _) = compiled(program, output)?;
    control_plane(&checked, program)?;
    let elaborated = checked.program.elaborate().map_err(Failure::usage)?;
    let said = CheckedProgram {
        program: program.file.display().to_string(),
        tables: elaborated.tables.iter().map(|(_, name)| name.to_string()).collect(),
        warnings: all_output(&checked.diagnostics, &checked.sources),
    };
    output.print(&said, |said| {
        format!("{}: no errors, {}", said.program, counted(said.tables.len(), "table"))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Parses and checks a program. Prints warnings at once, unless the output is JSON.
fn checked(program: &P4Program, output: &Output) -> Result<Checked, Failure> {
    let file = &program.file;
    let text = crate::input::read(file, "program", MAX_BYTES as u64)?;
    let includes = Folders {
        program: file.parent().unwrap_or(Path::new("")),
        folders: &program.include,
        defines: &program.defines,
    };
    let checked = p4::check(&file.display().to_string(), &text, &includes);
    tell(file, &checked.diagnostics, &checked.sources, output)?;
    Ok(checked)
}

/// Prints the diagnostics of a program; fails if there are errors.
fn tell(
    file: &Path,
    diagnostics: &Diagnostics,
    sources: &Sources,
    output: &Output,
) -> Result<(), Failure> {
    if !output.is_json() {
        let said = diagnostics.render(sources, std::io::stderr().is_terminal());
        if !said.is_empty() {
            crate::output::tell(&format!("{said}\n"));
        }
    }
    let is_error = |one: &&Diagnostic| one.severity == Severity::Error;
    let errors = diagnostics.iter().filter(is_error).count();
    if errors == 0 {
        return Ok(());
    }
    let failure = Failure::usage(anyhow!("{}: {}", file.display(), counted(errors, "error")));
    let diagnostics = Some(all_output(diagnostics, sources));
    Err(failure.with_details(Details { diagnostics, ..Details::default() }))
}

/// Checks and compiles a program.
fn compiled(program: &P4Program, output: &Output) -> Result<(Checked, Compiled), Failure> {
    let checked = checked(program, output)?;
    let libraries = libraries(program)?;
    match p4_ebpf::compile_with(&checked.program, &checked.sources, &libraries) {
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
        Library::read(&name, &bytes).map_err(|why| Failure::usage(anyhow!("{name}: {why}")))
    };
    program.externs.iter().map(read).collect()
}

fn all_output(diagnostics: &Diagnostics, sources: &Sources) -> Vec<output::p4::Diagnostic> {
    diagnostics.iter().map(|one| diagnostic_output(one, sources)).collect()
}

fn diagnostic_output(diagnostic: &Diagnostic, sources: &Sources) -> output::p4::Diagnostic {
    let place = |span| {
        let at = sources.locate(span)?;
        Some(Location { file: at.file.to_owned(), line: at.line, column: at.column })
    };
    let related = diagnostic.related.iter();
    output::p4::Diagnostic {
        severity: match diagnostic.severity {
            Severity::Error => output::p4::Severity::Error,
            Severity::Warning => output::p4::Severity::Warning,
        },
        message: diagnostic.message.clone(),
        at: place(diagnostic.span),
        label: Some(diagnostic.label.clone()).filter(|label| !label.is_empty()),
        related: related
            .map(|(span, why)| Related { at: place(*span), why: why.clone() })
            .collect(),
        help: diagnostic.help.clone(),
    }
}

/// Included files: searched next to the including file, then in the folders of `--include`. No name
/// and no link leads out of the folder of the program or of `--include`: root compiles programs of
/// tenants.
struct Folders<'f> {
    /// Folder of the program.
    program: &'f Path,
    folders: &'f [PathBuf],
    defines: &'f [(String, String)],
}

impl<'f> Folders<'f> {
    /// The innermost of the folders that has the including file, with the name relative to it.
    fn beside(
        &self,
        from: &Path,
        folders: impl Iterator<Item = &'f Path>,
        name: &str,
    ) -> Option<(&'f Path, PathBuf)> {
        let within = |folder: &'f Path| {
            let rest = from.strip_prefix(folder).ok()?;
            Some((folder, rest.parent().unwrap_or(Path::new("")).join(name)))
        };
        let all = folders.chain([self.program]).filter_map(within);
        all.max_by_key(|(folder, _)| folder.components().count())
    }
}

impl Includes for Folders<'_> {
    fn read(&self, name: &str, from: &str, system: bool) -> Result<(String, String), String> {
        let folders = self.folders.iter().map(PathBuf::as_path);
        let all = folders.clone().map(|folder| (folder, PathBuf::from(name)));
        let beside = self.beside(Path::new(from), folders, name).filter(|_| !system);
        for (folder, name) in beside.into_iter().chain(all) {
            let path = folder.join(&name);
            // A link counts, wherever it leads.
            if path.symlink_metadata().is_ok() {
                let of = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
                let text = crate::input::read_in(of, name.as_ref(), "program", MAX_BYTES as u64);
                return text
                    .map(|text| (path.display().to_string(), text))
                    .map_err(|why| why.text());
            }
        }
        Err("no such file beside it, and in no folder of `--include`".to_owned())
    }

    fn defines(&self) -> &[(String, String)] {
        self.defines
    }
}

fn info(program: &P4Program, binary: bool, output: &Output) -> Done {
    let checked = checked(program, output)?;
    let info = control_plane(&checked, program)?;
    if binary {
        crate::output::write(&p4info::binary(&info))?;
    } else {
        output.print(&P4Info { p4info: p4info::text(&info) }, |said| said.p4info.clone())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the P4Info of a program.
fn control_plane(checked: &Checked, program: &P4Program) -> Result<p4info::v1::P4Info, Failure> {
    let wrong = |why: String| Failure::usage(anyhow!("{}: {why}", program.file.display()));
    let info = p4info::info(&checked.program).map_err(|why| wrong(why.to_string()))?;
    // Report at once the errors for which P4Runtime would reject it later.
    p4runtime::Pipeline::new(&info).map_err(|why| wrong(why.to_string()))?;
    Ok(info)
}
