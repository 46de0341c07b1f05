//! Writes object files.

use ::object::elf::R_BPF_64_64;
use ::object::write::{
    Object as File, Relocation, SectionId, StandardSection, Symbol, SymbolId, SymbolSection,
};
use ::object::{
    Architecture, BinaryFormat, Endianness, RelocationFlags, SectionKind, SymbolFlags, SymbolKind,
    SymbolScope,
};

use super::{
    BadObject, DIGESTS, ENTRIES, INFO, Instruction, KEYS, Map, Object, digests, entries, keys,
    lines, wide,
};

/// Returns the object as an ELF file.
///
/// # Errors
///
/// If the object exceeds a limit of the file format, or refers to a missing map.
pub fn write(program: &Object) -> Result<Vec<u8>, BadObject> {
    let mut file = File::new(BinaryFormat::Elf, Architecture::Bpf, Endianness::Little);
    let maps = add_maps(&mut file, &program.maps)?;
    let text = file.section_id(StandardSection::Text);
    add_code(&mut file, text, program);
    add_functions(&mut file, text, program);
    relocate(&mut file, text, &program.code, &maps)?;
    let own = [
        (ENTRIES, entries::encode(&program.entries)?),
        (DIGESTS, digests::encode(&program.digests)),
        (INFO, program.info.clone()),
        (KEYS, keys::encode(&program.keys)),
    ];
    for (name, bytes) in own {
        if !bytes.is_empty() {
            let section = file.add_section(Vec::new(), name.into(), SectionKind::Metadata);
            file.append_section_data(section, &bytes, 4);
        }
    }
    for (name, bytes) in lines::write(&program.lines, program.code.len())? {
        let section = file.add_section(Vec::new(), name.into(), SectionKind::Debug);
        file.append_section_data(section, &bytes, 1);
    }
    file.write().map_err(|why| BadObject::Elf(why.to_string()))
}

/// Writes the map definitions and returns their symbols.
fn add_maps(file: &mut File<'_>, maps: &[Map]) -> Result<Vec<SymbolId>, BadObject> {
    if maps.is_empty() {
        return Ok(Vec::new());
    }
    let section = file.add_section(Vec::new(), b"maps".to_vec(), SectionKind::Data);
    let mut symbols = Vec::with_capacity(maps.len());
    for map in maps {
        map.check()?;
        let numbers = [map.kind.number(), map.key_size, map.value_size, map.max_entries, 0];
        let definition: Vec<u8> = numbers.iter().flat_map(|one| one.to_le_bytes()).collect();
        let at = file.append_section_data(section, &definition, 4);
        let (size, section) = (definition.len() as u64, SymbolSection::Section(section));
        symbols.push(file.add_symbol(symbol(&map.name, at, size, SymbolKind::Data, section)));
    }
    Ok(symbols)
}

/// Writes the instructions. Relocations identify the maps.
fn add_code(file: &mut File<'_>, text: SectionId, program: &Object) {
    let mut bytes = Vec::with_capacity(program.code.len() * Instruction::SIZE);
    for instruction in &program.code {
        let mut plain = *instruction;
        if plain.is_wide() && plain.source == wide::MAP {
            (plain.source, plain.immediate) = (0, 0);
        }
        bytes.extend(plain.encode());
    }
    file.append_section_data(text, &bytes, 8);
}

/// Adds the function symbols.
fn add_functions(file: &mut File<'_>, text: SectionId, program: &Object) {
    let ends = program.functions.keys().skip(1).copied().chain([program.code.len()]);
    for ((at, name), end) in program.functions.iter().zip(ends) {
        let (start, size) = (at * Instruction::SIZE, end.saturating_sub(*at) * Instruction::SIZE);
        let section = SymbolSection::Section(text);
        file.add_symbol(symbol(name, start as u64, size as u64, SymbolKind::Text, section));
    }
}

/// Adds the relocations of instructions that refer to maps.
fn relocate(
    file: &mut File<'_>,
    text: SectionId,
    code: &[Instruction],
    maps: &[SymbolId],
) -> Result<(), BadObject> {
    for (at, instruction) in code.iter().enumerate() {
        if !(instruction.is_wide() && instruction.source == wide::MAP) {
            continue;
        }
        let place = usize::try_from(instruction.immediate).unwrap_or(usize::MAX);
        let Some(map) = maps.get(place) else {
            return Err(BadObject::Reference {
                at,
                to: format!("map {place}, which is not there"),
            });
        };
        let relocation = Relocation {
            offset: (at * Instruction::SIZE) as u64,
            symbol: *map,
            addend: 0,
            flags: RelocationFlags::Elf { r_type: R_BPF_64_64 },
        };
        file.add_relocation(text, relocation).map_err(|why| BadObject::Elf(why.to_string()))?;
    }
    Ok(())
}

fn symbol(name: &str, at: u64, size: u64, kind: SymbolKind, section: SymbolSection) -> Symbol {
    Symbol {
        name: name.as_bytes().to_vec(),
        value: at,
        size,
        kind,
        scope: SymbolScope::Linkage,
        weak: false,
        section,
        flags: SymbolFlags::None,
    }
}
