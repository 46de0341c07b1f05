//! Libraries: functions that P4 programs call, compiled from another language, and the linker.

use std::collections::BTreeMap;

use super::opcode::LOAD_WIDE;
use super::read::{Parts, parts};
use super::{
    BadObject, ENTRY, Instruction, LineRow, MAX_INSTRUCTIONS, MAX_MAPS, Object, verify, wide,
};

/// An object without an `entry`, such as clang makes for the BPF target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// Name in the line table, for instructions without one.
    name: String,
    parts: Parts,
    /// First instructions of its global functions, by name.
    exported: BTreeMap<String, usize>,
}

impl Library {
    /// Reads a library. `name` is the name of its file.
    ///
    /// # Errors
    ///
    /// If the object is invalid, is a program, or exports nothing.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Self, BadObject> {
        let parts = parts(bytes)?;
        let whole = &parts.object;
        if whole.functions.values().any(|name| name == ENTRY) {
            return Err(BadObject::NotLibrary("a function `entry`, which makes it a program"));
        }
        let is_plain = whole.keys.is_empty() && whole.digests.is_empty() && whole.info.is_empty();
        if !is_plain || !whole.entries.is_empty() {
            return Err(BadObject::NotLibrary("sections of a program (`kaido.*`)"));
        }
        let name_of = |at: &usize| Some((whole.functions.get(at)?.clone(), *at));
        let exported: BTreeMap<_, _> = parts.exported.iter().filter_map(name_of).collect();
        if exported.is_empty() {
            return Err(BadObject::Missing("function that is not static"));
        }
        // Alone, so that nothing leads to the maps or the code of the program.
        verify(whole)?;
        Ok(Self { name: name.to_owned(), parts, exported })
    }

    /// Returns the names of the functions that programs can call.
    pub fn exports(&self) -> impl Iterator<Item = &str> {
        self.exported.keys().map(String::as_str)
    }

    /// Appends the library to a program. Returns the index of its first instruction there.
    fn append(&self, object: &mut Object) -> Result<usize, BadObject> {
        let (code, maps) = (object.code.len(), object.maps.len());
        let Object { code: new, functions, maps: new_maps, lines, .. } = &self.parts.object;
        let too_much = |what, count, most| Err(BadObject::TooMuch { what, count, most });
        if code + new.len() > MAX_INSTRUCTIONS {
            return too_much("instructions", code + new.len(), MAX_INSTRUCTIONS);
        }
        if maps + new_maps.len() > MAX_MAPS {
            return too_much("maps", maps + new_maps.len(), MAX_MAPS);
        }
        let moved = |one: &Instruction| match (one.opcode, one.source) {
            (LOAD_WIDE, wide::MAP) => {
                Instruction { immediate: one.immediate + maps as i32, ..*one }
            }
            _ => *one,
        };
        object.code.extend(new.iter().map(moved));
        object.maps.extend(new_maps.iter().cloned());
        object.functions.extend(functions.iter().map(|(at, name)| (code + at, name.clone())));
        let files = object.lines.files.len();
        object.lines.files.extend(lines.files.iter().cloned());
        if lines.rows.first().is_none_or(|row| row.at > 0) {
            // Without it, the last line of the program would continue here.
            object.lines.files.push(self.name.clone());
            let file = object.lines.files.len() - 1;
            object.lines.rows.push(LineRow { at: code, file, line: 1, column: 1 });
        }
        let rows = lines.rows.iter();
        let rows = rows.map(|row| LineRow { at: code + row.at, file: files + row.file, ..*row });
        object.lines.rows.extend(rows);
        Ok(code)
    }
}

/// A call of a library's function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedCall {
    /// Index of the call in the program.
    pub at: usize,
    /// Name of the function.
    pub function: String,
}

/// Appends the libraries that a program uses, and resolves its calls of their functions. If several
/// export a function, the first one is used.
///
/// # Errors
///
/// If a function is missing, or the program exceeds a limit with the libraries.
pub fn link(
    object: &mut Object,
    calls: &[LinkedCall],
    libraries: &[Library],
) -> Result<(), BadObject> {
    let mut starts = vec![None; libraries.len()];
    for call in calls {
        let missing = || BadObject::Reference { at: call.at, to: format!("`{}`", call.function) };
        let exporting = libraries
            .iter()
            .enumerate()
            .find_map(|(number, library)| Some((number, *library.exported.get(&call.function)?)));
        let (number, function) = exporting.ok_or_else(missing)?;
        let start = match starts[number] {
            Some(start) => start,
            None => *starts[number].insert(libraries[number].append(object)?),
        };
        let way = (start + function) as i64 - call.at as i64 - 1;
        object.code[call.at].immediate = i32::try_from(way).map_err(|_| missing())?;
    }
    Ok(())
}
