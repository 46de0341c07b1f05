//! `kaido p4`: tenants' programs.

mod compile;
mod explain;
mod publish;
mod published;
mod run;
mod socket;
mod table;
mod test;

pub(crate) use socket::socket;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use p4::diagnostic::{Diagnostic, Diagnostics, Severity};
use p4::source::{MAX_BYTES, Sources};
use p4::{Checked, Includes};
use p4_ebpf::Compiled;
use sandbox::Limits;
use serde_json::{Value, json};

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
    let tables: Vec<&str> = elaborated.tables.iter().map(|(_, name)| &**name).collect();
    let said = json!({
        "program": program.file.display().to_string(),
        "tables": tables,
        "warnings": all_as_json(&checked.diagnostics, &checked.sources),
    });
    output.print(&said, |_| {
        format!("{}: no errors, {}", program.file.display(), counted(tables.len(), "table"))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Parses and checks a program. Prints warnings at once, unless the output is JSON.
fn checked(program: &P4Program, output: &Output) -> Result<Checked, Failure> {
    let file = &program.file;
    let text = crate::input::read(file, "program", MAX_BYTES as u64)?;
    let includes = Folders { folders: &program.include, defines: &program.defines };
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
    Err(failure.with_details(json!({ "diagnostics": all_as_json(diagnostics, sources) })))
}

/// Checks and compiles a program.
fn compiled(program: &P4Program, output: &Output) -> Result<(Checked, Compiled), Failure> {
    let checked = checked(program, output)?;
    match p4_ebpf::compile(&checked.program, &checked.sources) {
        Ok(compiled) => {
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
            Err(Failure::usage(anyhow!("{}: it has no code", program.file.display())))
        }
    }
}

fn all_as_json(diagnostics: &Diagnostics, sources: &Sources) -> Vec<Value> {
    diagnostics.iter().map(|one| as_json(one, sources)).collect()
}

fn as_json(diagnostic: &Diagnostic, sources: &Sources) -> Value {
    let place = |span| match sources.locate(span) {
        Some(at) => json!({ "file": at.file, "line": at.line, "column": at.column }),
        None => Value::Null,
    };
    let related = diagnostic.related.iter();
    json!({
        "severity": match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        "message": diagnostic.message,
        "at": place(diagnostic.span),
        "label": Some(&diagnostic.label).filter(|label| !label.is_empty()),
        "related": related.map(|(span, why)| json!({ "at": place(*span), "why": why })).collect::<Vec<_>>(),
        "help": diagnostic.help,
    })
}

/// Included files: searched next to the including file, then in the folders of `--include`.
struct Folders<'f> {
    folders: &'f [PathBuf],
    defines: &'f [(String, String)],
}

impl Includes for Folders<'_> {
    fn read(&self, name: &str, from: &str, system: bool) -> Result<(String, String), String> {
        let beside = Path::new(from).parent().filter(|_| !system);
        let folders = beside.into_iter().chain(self.folders.iter().map(PathBuf::as_path));
        let found = folders.map(|folder| folder.join(name)).find(|path| path.exists());
        let Some(path) = found else {
            return Err("no such file beside it, and in no folder of `--include`".to_owned());
        };
        let text = crate::input::read(&path, "program", MAX_BYTES as u64);
        text.map(|text| (path.display().to_string(), text)).map_err(|why| why.text())
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
        output.print(&json!({ "p4info": p4info::text(&info) }), |_| p4info::text(&info))?;
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
