//! `kaido p4`: tenants' programs.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use p4::diagnostic::{Diagnostic, Severity};
use p4::interpret::Machine;
use p4::object::{self, BadObject, HELPERS, Map, MapKind, Object, callee, opcode, wide};
use p4::source::{MAX_BYTES, Sources};
use p4::{Checked, Includes};
use serde_json::{Value, json};

use crate::cli::{P4Command, P4Program};
use crate::failure::{Done, Failure};
use crate::output::{Output, table};

/// The largest file of tests.
const LARGEST_TEST: u64 = 64 << 20;

pub(crate) fn run(command: P4Command, output: &Output) -> Done {
    match command {
        P4Command::Check { program } => check(&program, output),
        P4Command::Test { program, tests } => test(&program, &tests, output),
        P4Command::Info { program, binary } => info(&program, binary, output),
        P4Command::Explain { object } => explain(&object, output),
    }
}

fn check(program: &P4Program, output: &Output) -> Done {
    let checked = checked(program, output)?;
    let made = checked.program.elaborate().map_err(Failure::usage)?;
    let tables: Vec<&str> = made.tables.iter().map(|(_, name)| &**name).collect();
    let said = json!({
        "program": program.file,
        "tables": tables,
        "warnings": all_as_json(&checked),
    });
    output.print(&said, |_| {
        let count = match tables.len() {
            0 => "no tables".to_owned(),
            1 => "1 table".to_owned(),
            count => format!("{count} tables"),
        };
        format!("{}: no errors, {count}", program.file.display())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A program without errors. Warnings are told to people at once.
fn checked(program: &P4Program, output: &Output) -> Result<Checked, Failure> {
    let file = &program.file;
    let text = crate::input::read(file, "program", MAX_BYTES as u64)?;
    let includes = Folders { folders: &program.include, defines: &program.defines };
    let checked = p4::check(&file.display().to_string(), &text, &includes);
    if !output.is_json() {
        let said = checked.diagnostics.render(&checked.sources, std::io::stderr().is_terminal());
        if !said.is_empty() {
            eprintln!("{said}\n");
        }
    }
    let is_error = |one: &&Diagnostic| one.severity == Severity::Error;
    let errors = checked.diagnostics.iter().filter(is_error).count();
    if errors == 0 {
        return Ok(checked);
    }
    let count = if errors == 1 { "1 error".to_owned() } else { format!("{errors} errors") };
    let failure = Failure::usage(anyhow!("{}: {count}", file.display()));
    Err(failure.with_details(json!({ "diagnostics": all_as_json(&checked) })))
}

fn all_as_json(checked: &Checked) -> Vec<Value> {
    checked.diagnostics.iter().map(|one| as_json(one, &checked.sources)).collect()
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

/// Included files: beside the file that includes them, then in the folders of `--include`.
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
    let wrong = |why| Failure::usage(anyhow!("{}: {why}", program.file.display()));
    let info = p4info::info(&checked.program).map_err(wrong)?;
    if binary {
        crate::output::write(&p4info::binary(&info))?;
    } else {
        output.print(&json!({ "p4info": p4info::text(&info) }), |_| p4info::text(&info))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The largest object.
const LARGEST_OBJECT: u64 = 16 << 20;

fn explain(file: &Path, output: &Output) -> Done {
    let name = file.display();
    let bad = |why: BadObject| Failure::usage(anyhow!("{name}: {why}"));
    let bytes = crate::input::read_bytes(file, "object", LARGEST_OBJECT)?;
    let object = object::read(&bytes).map_err(bad)?;
    object::verify(&object).map_err(bad)?;
    let instructions = object.code.iter().map(ToString::to_string);
    let kind = |kind| match kind {
        MapKind::Array => "array",
        MapKind::Hash => "hash",
        MapKind::LpmTrie => "LPM trie",
    };
    let said = json!({
        "object": file,
        "maps": object.maps.iter().map(|map| json!({
            "name": map.name,
            "kind": kind(map.kind),
            "key_bytes": map.key_size,
            "value_bytes": map.value_size,
            "entries": map.max_entries,
        })).collect::<Vec<_>>(),
        "functions": object.functions.iter().map(|(at, name)| json!({ "name": name, "at": at })).collect::<Vec<_>>(),
        "instructions": instructions.collect::<Vec<_>>(),
    });
    output.print(&said, |_| {
        let row = |map: &p4::object::Map| {
            let Map { name, key_size, value_size, max_entries, .. } = map;
            let [key, value, most] = [key_size, value_size, max_entries].map(ToString::to_string);
            vec![name.clone(), kind(map.kind).to_owned(), key, value, most]
        };
        let mut text = String::new();
        if !object.maps.is_empty() {
            let header = ["MAP", "KIND", "KEY BYTES", "VALUE BYTES", "ENTRIES"];
            text = table(&header, object.maps.iter().map(row)) + "\n\n";
        }
        text + &listing(&object)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The instructions, with functions and what jumps lead to.
fn listing(object: &Object) -> String {
    let mut text = String::new();
    let mut is_second_half = false;
    for (at, instruction) in object.code.iter().enumerate() {
        if std::mem::take(&mut is_second_half) {
            continue;
        }
        is_second_half = instruction.is_wide();
        if let Some(name) = object.functions.get(&at) {
            text.push_str(&format!("{name}:\n"));
        }
        text.push_str(&format!("{at:>6}  {instruction}"));
        let place = usize::try_from(instruction.immediate).ok();
        let means = match instruction.opcode {
            opcode::LOAD_WIDE if instruction.source == wide::MAP => {
                place.and_then(|place| object.maps.get(place)).map(|map| map.name.clone())
            }
            opcode::CALL if instruction.source == callee::HELPER => {
                let helper = HELPERS.iter().find(|(number, _)| *number == instruction.immediate);
                helper.map(|(_, name)| (*name).to_owned())
            }
            opcode::CALL => {
                let to = at as i64 + 1 + i64::from(instruction.immediate);
                usize::try_from(to).ok().and_then(|to| object.functions.get(&to)).cloned()
            }
            _ => instruction.jump().map(|way| format!("{}", at as i64 + 1 + way)),
        };
        if let Some(means) = means {
            text.push_str(&format!("  ; {means}"));
        }
        text.push('\n');
    }
    text
}

fn test(program: &P4Program, tests: &[PathBuf], output: &Output) -> Done {
    let checked = checked(program, output)?;
    let mut all = Vec::new();
    for file in tests {
        let text = crate::input::read(file, "test", LARGEST_TEST)?;
        let lines = p4::stf::parse(&text)
            .map_err(|why| Failure::usage(anyhow!("{}: {why}", file.display())))?;
        // Each test has a program that has seen nothing yet.
        let mut machine = Machine::new(&checked.program).map_err(Failure::usage)?;
        let failures = p4::stf::run(&checked.program, &mut machine, &lines);
        all.push((file, lines.len(), failures));
    }
    let passed = all.iter().all(|(_, _, failures)| failures.is_empty());
    let said: Vec<Value> = all
        .iter()
        .map(|(file, lines, failures)| {
            let failures = failures.iter();
            json!({
                "test": file,
                "lines": lines,
                "failures": failures.map(|one| json!({ "line": one.line, "why": one.why })).collect::<Vec<_>>(),
            })
        })
        .collect();
    output.print(&said, |_| {
        let mut text = String::new();
        for (file, lines, failures) in &all {
            let name = file.display();
            for failure in failures {
                let why = failure.why.replace('\n', "\n  ");
                match failure.line {
                    0 => text.push_str(&format!("{name}: {why}\n")),
                    line => text.push_str(&format!("{name}:{line}: {why}\n")),
                }
            }
            match failures.len() {
                0 => text.push_str(&format!("{name}: {lines} lines hold\n")),
                1 => text.push_str(&format!("{name}: 1 failure\n")),
                count => text.push_str(&format!("{name}: {count} failures\n")),
            }
        }
        text
    })?;
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
