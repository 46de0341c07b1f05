//! `kaido p4 explain`: shows code next to its source lines.

use std::path::Path;
use std::process::ExitCode;

use anyhow::anyhow;
use output::p4::{CodeLine, ExplainedProgram, Label, ObjectDigest, ObjectMap};
use p4::source::MAX_BYTES;
use p4_object::{BadObject, Digest, HELPERS, LineRow, Map, MapKind, Object, callee, opcode, wide};

use crate::cli::P4Program;
use crate::commands::program;
use crate::failure::{Done, Failure};
use crate::output::{Output, table};

pub(super) fn run(program: &P4Program, output: &Output) -> Done {
    let file = &program.file;
    let bytes = crate::input::read_bytes(file, "program", program::LARGEST)?;
    // Any file without the extension `.p4` is read as an object.
    let is_program = file.extension().is_some_and(|extension| extension == "p4");
    let object =
        if is_program { program::compiled(program, output)?.1.object } else { read(file, bytes)? };
    let (path, is_json) = (file.clone(), output.is_json());
    let (explained, listing, keys) = program::bounded(file, move || {
        let listing = if is_json { String::new() } else { listing(&path, &object) };
        (explained(&path, &object), listing, object.keys)
    })?;
    output.print(&explained, |explained| {
        let row = |map: &ObjectMap| {
            let ObjectMap { name, kind, key_bytes, value_bytes, entries } = map;
            let [key, value, most] = [key_bytes, value_bytes, entries].map(ToString::to_string);
            vec![name.clone(), kind.name().to_owned(), key, value, most]
        };
        let mut text = String::new();
        if !explained.maps.is_empty() {
            let header = ["MAP", "KIND", "KEY BYTES", "VALUE BYTES", "ENTRIES"];
            text = table(&header, explained.maps.iter().map(row)) + "\n\n";
        }
        if !explained.digests.is_empty() {
            let row = |digest: &ObjectDigest| vec![digest.name.clone(), digest.bytes.to_string()];
            text += &table(&["DIGEST", "BYTES"], explained.digests.iter().map(row));
            text += "\n\n";
        }
        if !keys.is_empty() {
            text += &format!("reads of its tenant's VM: {}\n\n", keys.join(", "));
        }
        text + &listing
    })?;
    Ok(ExitCode::SUCCESS)
}

fn explained(file: &Path, object: &Object) -> ExplainedProgram {
    let kind = |kind| match kind {
        MapKind::Array => output::p4::MapKind::Array,
        MapKind::Hash => output::p4::MapKind::Hash,
        MapKind::LpmTrie => output::p4::MapKind::LpmTrie,
        MapKind::Ternary => output::p4::MapKind::Ternary,
    };
    let map = |map: &Map| ObjectMap {
        name: map.name.clone(),
        kind: kind(map.kind),
        key_bytes: map.key_size,
        value_bytes: map.value_size,
        entries: map.max_entries,
    };
    let digest = |digest: &Digest| ObjectDigest { name: digest.name.clone(), bytes: digest.size };
    let function = |(at, name): (&usize, &String)| Label { name: name.clone(), at: *at };
    let line = |row: &LineRow| CodeLine {
        at: row.at,
        file: object.lines.files[row.file].clone(),
        line: row.line,
        column: row.column,
    };
    ExplainedProgram {
        program: file.display().to_string(),
        maps: object.maps.iter().map(map).collect(),
        digests: object.digests.iter().map(digest).collect(),
        vm_keys: object.keys.clone(),
        functions: object.functions.iter().map(function).collect(),
        instructions: object.code.iter().map(ToString::to_string).collect(),
        lines: object.lines.rows.iter().map(line).collect(),
    }
}

fn read(file: &Path, bytes: Vec<u8>) -> Result<Object, Failure> {
    let read = move || {
        let object = p4_object::read(&bytes)?;
        p4_object::verify(&object)?;
        Ok(object)
    };
    program::bounded(file, read)?
        .map_err(|why: BadObject| Failure::usage(anyhow!("{}: {why}", file.display())))
}

/// Maximum number of source files read: an object may name thousands.
const MAX_FILES: usize = 64;

/// The lines of the source files, if they can be read.
struct Source {
    files: Vec<Option<Vec<String>>>,
    /// The last line shown.
    shown: Option<(usize, u32)>,
}

impl Source {
    /// Reads the files that are in the directory of the object, or below: an object may name any
    /// file.
    fn read(file: &Path, object: &Object) -> Self {
        let directory = std::path::absolute(file).unwrap_or_default();
        let directory = directory.parent().unwrap_or(Path::new("/"));
        let lines = |name: &String| {
            let path = std::path::absolute(name).ok()?;
            let name = path.strip_prefix(directory).ok()?.as_os_str();
            let text = crate::input::read_in(directory, None, name, "program", MAX_BYTES as u64);
            Some(text.ok()?.lines().map(str::to_owned).collect())
        };
        let files = object.lines.files.iter().take(MAX_FILES).map(lines).collect();
        Self { files, shown: None }
    }

    /// Returns the source line of an instruction, unless it is the last line shown.
    fn line(&mut self, object: &Object, at: usize) -> Option<String> {
        let row = object.lines.of(at)?;
        if self.shown.replace((row.file, row.line)) == Some((row.file, row.line)) {
            return None;
        }
        let place = format!("{}:{}", object.lines.files[row.file], row.line);
        let text = self.files.get(row.file)?.as_ref()?.get(row.line.checked_sub(1)? as usize)?;
        Some(format!("; {place}: {}\n", cut(text.trim())))
    }
}

/// Returns the first characters of a source line. A program may have many copies of a long one.
fn cut(line: &str) -> &str {
    /// Maximum number of characters.
    const SHOWN: usize = 200;
    line.char_indices().nth(SHOWN).map_or(line, |(end, _)| &line[..end])
}

/// Formats the instructions with source lines, functions and jump targets.
fn listing(file: &Path, object: &Object) -> String {
    let mut text = String::new();
    let mut source = Source::read(file, object);
    let mut is_second_half = false;
    for (at, instruction) in object.code.iter().enumerate() {
        if std::mem::take(&mut is_second_half) {
            continue;
        }
        is_second_half = instruction.is_wide();
        if let Some(name) = object.functions.get(&at) {
            text.push_str(&format!("{name}:\n"));
        }
        if let Some(line) = source.line(object, at) {
            text.push_str(&line);
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
