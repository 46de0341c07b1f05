//! Line tables (DWARF 5, section 6.2), which map instructions to source lines. `llvm-objdump -S`
//! reads them too.

use std::collections::HashMap;

use gimli::write::{
    Address, AttributeValue, DwarfUnit, EndianVec, LineProgram, LineString, Sections,
};
use gimli::{Encoding, EndianSlice, Format, LineEncoding, LittleEndian};

use super::{BadObject, Instruction, LineRow, Lines, MAX_NAME};

/// Maximum length of the header in bytes, which lists the files. Each of them takes 100 times its
/// encoded length while the table is read; compilers list a few dozen.
const MAX_HEADER: usize = 64 << 10;
/// Maximum length of a table in bytes. Until DWARF 4, files may also follow the header, and take ten
/// times their encoded length each.
const MAX_TABLE: usize = 8 << 20;
/// Maximum number of files.
const MAX_FILES: usize = 4096;

/// Returns the sections of a line table, by name; none if there are no lines.
pub(super) fn write(lines: &Lines, count: usize) -> Result<Vec<(String, Vec<u8>)>, BadObject> {
    let Some(first) = lines.files.first() else { return Ok(Vec::new()) };
    let wrong = |why: gimli::write::Error| BadObject::Elf(why.to_string());
    let encoding = Encoding { format: Format::Dwarf32, version: 5, address_size: 8 };
    let text = |name: &str| LineString::String(name.as_bytes().to_vec());
    let line_encoding = LineEncoding { minimum_instruction_length: 8, ..LineEncoding::default() };
    let mut program = LineProgram::new(encoding, line_encoding, text("."), None, text(first), None);
    let directory = program.default_directory();
    let files: Vec<_> =
        lines.files.iter().map(|name| program.add_file(text(name), directory, None)).collect();
    program.begin_sequence(Some(Address::Constant(0)));
    for row in &lines.rows {
        let Some(file) = files.get(row.file) else { continue };
        let place = program.row();
        place.address_offset = (row.at * Instruction::SIZE) as u64;
        (place.file, place.line, place.column) = (*file, row.line.into(), row.column.into());
        program.generate_row();
    }
    program.end_sequence((count * Instruction::SIZE) as u64);
    let mut unit = DwarfUnit::new(encoding);
    unit.unit.line_program = program;
    let root = unit.unit.get_mut(unit.unit.root());
    let bytes = (count * Instruction::SIZE) as u64;
    root.set(gimli::DW_AT_name, AttributeValue::String(first.as_bytes().to_vec()));
    root.set(gimli::DW_AT_producer, AttributeValue::String(b"kaido p4 compile".to_vec()));
    root.set(gimli::DW_AT_low_pc, AttributeValue::Address(Address::Constant(0)));
    root.set(gimli::DW_AT_high_pc, AttributeValue::Udata(bytes));
    let mut sections = Sections::new(EndianVec::new(LittleEndian));
    unit.write(&mut sections).map_err(wrong)?;
    let mut all = Vec::new();
    let keep = |id: gimli::SectionId, bytes: &EndianVec<LittleEndian>| {
        if !bytes.slice().is_empty() {
            all.push((id.name().to_owned(), bytes.slice().to_vec()));
        }
        Ok::<(), gimli::write::Error>(())
    };
    sections.for_each(keep).map_err(wrong)?;
    Ok(all)
}

/// Reads a line table for this number of instructions. A missing, malformed or
/// very large table gives no lines.
pub(super) fn read(count: usize, table: &[u8], line_strings: &[u8], strings: &[u8]) -> Lines {
    read_all(count, table, line_strings, strings).unwrap_or_default()
}

fn read_all(
    count: usize,
    table: &[u8],
    line_strings: &[u8],
    strings: &[u8],
) -> gimli::Result<Lines> {
    let mut lines = Lines::default();
    if table.is_empty() || table.len() > MAX_TABLE {
        return Ok(lines);
    }
    if header_length(table).is_none_or(|length| length > MAX_HEADER) {
        return Ok(lines);
    }
    let section = gimli::DebugLine::new(table, LittleEndian);
    let program = section.program(gimli::DebugLineOffset(0), 8, None, None)?;
    let name = |value: gimli::AttributeValue<EndianSlice<'_, LittleEndian>>| {
        let bytes = match value {
            gimli::AttributeValue::String(text) => text.slice(),
            gimli::AttributeValue::DebugLineStrRef(at) => line_strings.get(at.0..)?,
            gimli::AttributeValue::DebugStrRef(at) => strings.get(at.0..)?,
            _ => return None,
        };
        let some = &bytes[..bytes.len().min(MAX_NAME)];
        let end = some.iter().position(|byte| *byte == 0).unwrap_or(some.len());
        Some(String::from_utf8_lossy(&some[..end]).into_owned())
    };
    // Store a file name once, regardless of the number of its rows.
    let mut places = HashMap::new();
    let mut rows = program.rows();
    while let Some((header, row)) = rows.next_row()? {
        if row.end_sequence() {
            break;
        }
        let Some(file) = row.file(header) else { continue };
        let place = match places.get(&row.file_index()) {
            Some(place) => *place,
            None if lines.files.len() == MAX_FILES => continue,
            None => {
                lines.files.push(name(file.path_name()).unwrap_or_default());
                places.insert(row.file_index(), lines.files.len() - 1);
                lines.files.len() - 1
            }
        };
        let at = row.address() as usize / Instruction::SIZE;
        // Addresses must not decrease within a sequence (DWARF 5, section 6.2.5).
        if at >= count || lines.rows.last().is_some_and(|before| at < before.at) {
            continue;
        }
        let number = |number: Option<u64>| u32::try_from(number.unwrap_or(0)).unwrap_or(0);
        let column = match row.column() {
            gimli::ColumnType::Column(column) => number(Some(column.get())),
            gimli::ColumnType::LeftEdge => 0,
        };
        let line = number(row.line().map(std::num::NonZero::get));
        let row = LineRow { at, file: place, line, column };
        // Of several rows of an instruction, the last is valid.
        match lines.rows.last_mut().filter(|before| before.at == at) {
            Some(before) => *before = row,
            None => lines.rows.push(row),
        }
    }
    Ok(lines)
}

/// Length of the header after its own field (DWARF 5, section 6.2.4), with 32-bit or 64-bit
/// lengths.
fn header_length(table: &[u8]) -> Option<usize> {
    let number = |at: usize, size: usize| {
        let bytes = table.get(at..at + size)?.iter().rev();
        Some(bytes.fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    let (version_at, size) = if number(0, 4)? == 0xffff_ffff { (12, 8) } else { (4, 4) };
    // Version 5 has the sizes of an address and of a segment selector.
    let sizes = if number(version_at, 2)? >= 5 { 2 } else { 0 };
    number(version_at + 2 + sizes, size)
}

impl Lines {
    /// Returns the source location of an instruction.
    pub fn of(&self, at: usize) -> Option<&LineRow> {
        let behind = self.rows.partition_point(|row| row.at <= at);
        self.rows[..behind].last()
    }
}
