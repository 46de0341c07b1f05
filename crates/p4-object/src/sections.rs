//! Sections of an ELF file by name.

use ::object::elf::{FileHeader64, SectionHeader64};
use ::object::read::elf::{ElfFile64, FileHeader as _, SectionHeader as _};
use ::object::{LittleEndian, SectionIndex};

use super::BadObject;

pub(crate) type File<'f> = ElfFile64<'f, LittleEndian>;

/// Sections of an ELF file by name. Any number of sections may share one long name, so that names are
/// compared in place: the library would search for the end of each.
pub(crate) struct Sections<'f> {
    headers: &'f [SectionHeader64<LittleEndian>],
    /// Section names, each with a terminating zero.
    names: &'f [u8],
    file: &'f [u8],
}

impl<'f> Sections<'f> {
    pub(crate) fn of(file: &File<'f>) -> Result<Self, BadObject> {
        let invalid = |why: ::object::Error| BadObject::Elf(why.to_string());
        let header: &FileHeader64<LittleEndian> = file.elf_header();
        let (endian, data) = (file.endian(), file.data());
        let headers = header.section_headers(endian, data).map_err(invalid)?;
        let names = header.shstrndx(endian, data).map_err(invalid)?;
        let names =
            headers.get(names as usize).map_or(Ok(&[][..]), |names| names.data(endian, data));
        Ok(Self { headers, names: names.map_err(invalid)?, file: data })
    }

    /// Returns the index of the first section with this name.
    pub(crate) fn find(&self, name: &str) -> Option<SectionIndex> {
        let is_named = |header: &SectionHeader64<LittleEndian>| {
            let begin = self.names.get(header.sh_name.get(LittleEndian) as usize..);
            let rest = begin.and_then(|text| text.strip_prefix(name.as_bytes()));
            rest.is_some_and(|rest| rest.first() == Some(&0))
        };
        // The first header is the null section.
        let at = self.headers.iter().skip(1).position(is_named)?;
        Some(SectionIndex(at + 1))
    }

    /// Returns the data of the first section with this name, empty if there is none.
    pub(crate) fn data(&self, name: &str) -> Result<&'f [u8], BadObject> {
        let Some(SectionIndex(at)) = self.find(name) else { return Ok(&[]) };
        let data = self.headers[at].data(LittleEndian, self.file);
        data.map_err(|why| BadObject::Elf(why.to_string()))
    }
}
