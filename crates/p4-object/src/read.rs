//! Reads objects from untrusted sources.

use std::collections::{BTreeMap, BTreeSet};

use ::object::{
    Architecture, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget,
    SectionIndex, SymbolKind,
};

use super::{
    BadObject, DIGESTS, ENTRIES, ENTRY, INFO, Instruction, KEYS, MAX_INSTRUCTIONS, MAX_MAPS,
    MAX_NAME, Map, MapKind, Object, callee, digests, entries, keys, lines, opcode, wide,
};

use crate::sections::{File, Sections};

/// Size of a map definition in bytes.
const DEFINITION: usize = 20;

/// Reads an object. All references are resolved; [`super::verify`] checks the code.
///
/// # Errors
///
/// If the object is invalid.
pub fn read(bytes: &[u8]) -> Result<Object, BadObject> {
    let Parts { object, .. } = parts(bytes)?;
    let entry = object.functions.iter().find(|(_, name)| *name == ENTRY).map(|(at, _)| *at);
    let entry = entry.ok_or(BadObject::Missing("function `entry`"))?;
    Ok(Object { entry, ..object })
}

/// Parts of an object that may have no `entry`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parts {
    /// The object; its `entry` is 0.
    pub(super) object: Object,
    /// First instructions of the global functions.
    pub(super) exported: BTreeSet<usize>,
}

pub(super) fn parts(bytes: &[u8]) -> Result<Parts, BadObject> {
    let file = File::parse(bytes).map_err(|why| BadObject::Elf(why.to_string()))?;
    if file.architecture() != Architecture::Bpf {
        return Err(BadObject::Machine(format!("{:?}", file.architecture())));
    }
    let sections = Sections::of(&file)?;
    let maps_section = sections.find("maps");
    let (maps, places) = maps(&file, maps_section, sections.data("maps")?)?;
    let text = sections.find(".text").ok_or(BadObject::Missing("section `.text`"))?;
    let text = file.section_by_index(text).map_err(|why| BadObject::Elf(why.to_string()))?;
    let data = sections.data(".text")?;
    if data.len() > MAX_INSTRUCTIONS * Instruction::SIZE {
        let count = data.len() / Instruction::SIZE;
        return Err(BadObject::TooMuch { what: "instructions", count, most: MAX_INSTRUCTIONS });
    }
    let (parts, rest) = data.as_chunks::<{ Instruction::SIZE }>();
    if !rest.is_empty() {
        return Err(BadObject::Elf("its code is cut off within an instruction".to_owned()));
    }
    let mut code: Vec<Instruction> = parts.iter().map(|part| Instruction::decode(*part)).collect();
    let (mut functions, mut exported) = (BTreeMap::new(), BTreeSet::new());
    for symbol in file.symbols() {
        let is_function = symbol.kind() == SymbolKind::Text && symbol.size() > 0;
        let at = symbol.address() as usize / Instruction::SIZE;
        if symbol.section_index() == Some(text.index()) && is_function && at < code.len() {
            functions.insert(at, name(&symbol)?);
            if symbol.is_global() {
                exported.insert(at);
            }
        }
    }
    relocate(&file, &text, &mut code, maps_section, &places)?;
    let section = |name| sections.data(name);
    let entries = entries::decode(section(ENTRIES)?, &maps)?;
    let digests = digests::decode(section(DIGESTS)?)?;
    let info = section(INFO)?.to_vec();
    let keys = keys::decode(section(KEYS)?)?;
    let [table, line_strings, strings] =
        [".debug_line", ".debug_line_str", ".debug_str"].map(section);
    let lines = lines::read(code.len(), table?, line_strings?, strings?);
    let object = Object { code, entry: 0, functions, maps, entries, info, keys, digests, lines };
    Ok(Parts { object, exported })
}

/// Returns the name of a symbol. The length is bounded, because any number of symbols may share one
/// name, and each would copy it.
fn name<'f>(symbol: &impl ::object::ObjectSymbol<'f>) -> Result<String, BadObject> {
    // A name without an end is searched for one through the whole table.
    let name = symbol.name().map_err(|why| BadObject::Elf(why.to_string()))?;
    if name.len() > MAX_NAME {
        let (what, count) = ("bytes of a symbol's name", name.len());
        return Err(BadObject::TooMuch { what, count, most: MAX_NAME });
    }
    Ok(name.to_owned())
}

/// Returns the maps, and their indices by offset in the section.
fn maps(
    file: &File<'_>,
    section: Option<SectionIndex>,
    data: &[u8],
) -> Result<(Vec<Map>, BTreeMap<u64, usize>), BadObject> {
    if section.is_none() {
        return Ok((Vec::new(), BTreeMap::new()));
    }
    let mut found: BTreeMap<u64, String> = BTreeMap::new();
    for symbol in file.symbols() {
        if symbol.section_index() == section && symbol.kind() == SymbolKind::Data {
            found.insert(symbol.address(), name(&symbol)?);
        }
        if found.len() > MAX_MAPS {
            return Err(BadObject::TooMuch { what: "maps", count: found.len(), most: MAX_MAPS });
        }
    }
    let mut maps = Vec::with_capacity(found.len());
    let mut places = BTreeMap::new();
    for (at, name) in found {
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        let definition = start.checked_add(DEFINITION).and_then(|end| data.get(start..end));
        let Some(definition) = definition else {
            let why = "its definition is cut off".to_owned();
            return Err(BadObject::Map { map: name, why });
        };
        places.insert(at, maps.len());
        maps.push(map(name, definition)?);
    }
    Ok((maps, places))
}

fn map(name: String, definition: &[u8]) -> Result<Map, BadObject> {
    let mut numbers = [0; DEFINITION / 4];
    for (number, bytes) in numbers.iter_mut().zip(definition.as_chunks::<4>().0) {
        *number = u32::from_le_bytes(*bytes);
    }
    let [kind, key_size, value_size, max_entries, _] = numbers;
    let Some(kind) = MapKind::from_number(kind) else {
        let why = format!(
            "its kind is {kind}; 1 (array), 4 (hash), 5 (LPM trie) and 100 (ternary) are known"
        );
        return Err(BadObject::Map { map: name, why });
    };
    let map = Map { name, kind, key_size, value_size, max_entries };
    map.check()?;
    Ok(map)
}

/// Resolves the code's references to maps and functions.
fn relocate<'f>(
    file: &File<'f>,
    text: &impl ::object::ObjectSection<'f>,
    code: &mut [Instruction],
    maps_section: Option<SectionIndex>,
    maps: &BTreeMap<u64, usize>,
) -> Result<(), BadObject> {
    // Any number of sections may have the same relocations.
    let most = MAX_INSTRUCTIONS;
    for (count, (offset, relocation)) in (1..).zip(text.relocations()) {
        if count > most {
            return Err(BadObject::TooMuch { what: "relocations", count, most });
        }
        let at = usize::try_from(offset).unwrap_or(usize::MAX) / Instruction::SIZE;
        let wrong = |to: String| BadObject::Reference { at, to };
        let RelocationTarget::Symbol(index) = relocation.target() else {
            return Err(wrong("no symbol".to_owned()));
        };
        let symbol = file.symbol_by_index(index).map_err(|why| BadObject::Elf(why.to_string()))?;
        // Only for errors: many relocations may have one symbol with a long name.
        let name = || name(&symbol).unwrap_or_else(|_| "?".to_owned());
        let Some(&Instruction { opcode: code_at, immediate, .. }) = code.get(at) else {
            return Err(wrong(format!("`{}` from beyond the end of the code", name())));
        };
        let to_text = symbol.section_index() == Some(text.index());
        match code_at {
            opcode::LOAD_WIDE
                if symbol.section_index() == maps_section && maps_section.is_some() =>
            {
                let Some(place) = maps.get(&symbol.address()) else {
                    return Err(wrong(format!("`{}`, which is not a map", name())));
                };
                code[at].source = wide::MAP;
                code[at].immediate = *place as i32;
            }
            opcode::CALL if to_text => {
                // For a section symbol, the immediate holds the offset in the section (the kernel's
                // llvm_reloc.rst: R_BPF_64_32 is (S + A) / 8 - 1).
                let start = symbol.address() as i64 / Instruction::SIZE as i64;
                let to = match symbol.kind() {
                    SymbolKind::Section => start + i64::from(immediate) + 1,
                    _ => start,
                };
                let way = to - at as i64 - 1;
                code[at].source = callee::LOCAL;
                code[at].immediate =
                    i32::try_from(way).map_err(|_| wrong(format!("`{}`", name())))?;
            }
            opcode::CALL => {
                let name = name();
                return Err(wrong(format!("the function `{name}`, which is not in the object")));
            }
            _ => {
                let name = name();
                return Err(wrong(format!("`{name}`, which is neither a map nor a function")));
            }
        }
    }
    Ok(())
}
