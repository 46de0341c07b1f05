//! `kaido p4 explain`: shows code next to its source lines.

use std::path::Path;
use std::process::ExitCode;

use anyhow::anyhow;
use p4::source::MAX_BYTES;
use p4_object::{BadObject, HELPERS, Map, MapKind, Object, callee, opcode, wide};
use serde_json::json;

use crate::cli::P4Program;
use crate::failure::{Done, Failure};
use crate::output::{Output, table};

pub(super) fn run(program: &P4Program, output: &Output) -> Done {
    let file = &program.file;
    let bytes = crate::input::read_bytes(file, "program", super::LARGEST)?;
    // Any file without the extension `.p4` is read as an object.
    let is_program = file.extension().is_some_and(|extension| extension == "p4");
    let object =
        if is_program { super::compiled(program, output)?.1.object } else { read(file, &bytes)? };
    let instructions = object.code.iter().map(ToString::to_string);
    let kind = |kind| match kind {
        MapKind::Array => "array",
        MapKind::Hash => "hash",
        MapKind::LpmTrie => "LPM trie",
        MapKind::Ternary => "ternary",
    };
    let said = json!({
        "program": file.display().to_string(),
        "maps": object.maps.iter().map(|map| json!({
            "name": map.name,
            "kind": kind(map.kind),
            "key_bytes": map.key_size,
            "value_bytes": map.value_size,
            "entries": map.max_entries,
        })).collect::<Vec<_>>(),
        "digests": object.digests.iter().map(|digest| json!({
            "name": digest.name,
            "bytes": digest.size,
        })).collect::<Vec<_>>(),
        "vm_keys": object.keys,
        "functions": object.functions.iter().map(|(at, name)| json!({ "name": name, "at": at })).collect::<Vec<_>>(),
        "instructions": instructions.collect::<Vec<_>>(),
        "lines": object.lines.rows.iter().map(|row| json!({
            "at": row.at,
            "file": object.lines.files[row.file],
            "line": row.line,
            "column": row.column,
        })).collect::<Vec<_>>(),
    });
    output.print(&said, |_| {
        let row = |map: &p4_object::Map| {
            let Map { name, key_size, value_size, max_entries, .. } = map;
            let [key, value, most] = [key_size, value_size, max_entries].map(ToString::to_string);
            vec![name.clone(), kind(map.kind).to_owned(), key, value, most]
        };
        let mut text = String::new();
        if !object.maps.is_empty() {
            let header = ["MAP", "KIND", "KEY BYTES", "VALUE BYTES", "ENTRIES"];
            text = table(&header, object.maps.iter().map(row)) + "\n\n";
        }
        if !object.digests.is_empty() {
            let row =
                |digest: &p4_object::Digest| vec![digest.name.clone(), digest.size.to_string()];
            text += &table(&["DIGEST", "BYTES"], object.digests.iter().map(row));
            text += "\n\n";
        }
        if !object.keys.is_empty() {
            text += &format!("reads of its tenant's VM: {}\n\n", object.keys.join(", "));
        }
        text + &listing(&object)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn read(file: &Path, bytes: &[u8]) -> Result<Object, Failure> {
    let bad = |why: BadObject| Failure::usage(anyhow!("{}: {why}", file.display()));
    let object = p4_object::read(bytes).map_err(bad)?;
    p4_object::verify(&object).map_err(bad)?;
    Ok(object)
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
    fn of(object: &Object) -> Self {
        // An object may name any path, even a pipe that would block, so read regular files only.
        let lines = |name: &String| {
            let path = Path::new(name);
            let text =
                path.is_file().then(|| crate::input::read(path, "program", MAX_BYTES as u64));
            Some(text?.ok()?.lines().map(str::to_owned).collect())
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
        Some(format!("; {place}: {}\n", text.trim()))
    }
}

/// Formats the instructions with source lines, functions and jump targets.
fn listing(object: &Object) -> String {
    let mut text = String::new();
    let mut source = Source::of(object);
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
