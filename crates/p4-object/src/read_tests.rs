//! Objects of some hundred KB whose reading took minutes.

use super::{BadObject, MAX_INSTRUCTIONS, read};

const PROGBITS: u32 = 1;
const SYMTAB: u32 = 2;
const STRTAB: u32 = 3;
const RELA: u32 = 4;
/// Indices of the sections that every object here has.
const TEXT: u32 = 1;
const SYMBOLS: u32 = 2;
const STRINGS: u16 = 3;

/// Names of sections and symbols, by their offsets.
const NAMES: &[u8] = b"\0entry\0.text\0";
const ENTRY: u32 = 1;
const TEXT_NAME: u32 = 7;

/// Two instructions: a call of the function that begins here, and the end.
const CODE: [u8; 16] = [0x85, 0x10, 0, 0, 1, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0];

/// An ELF file for BPF.
#[derive(Default)]
struct Elf {
    body: Vec<u8>,
    sections: Vec<u8>,
    count: u16,
}

impl Elf {
    /// Creates a file with a function `entry`, and these strings after [`NAMES`].
    fn new(strings: &[u8]) -> Self {
        let mut elf = Self { body: vec![0; 64], ..Self::default() };
        elf.section([0, 0, 0, 0], 0, 0..0);
        let code = elf.put(&CODE);
        elf.section([TEXT_NAME, PROGBITS, 0, 0], 0, code);
        let mut symbols = vec![0; 24];
        symbols.extend(ENTRY.to_le_bytes());
        symbols.extend([0x12, 0, TEXT as u8, 0]);
        symbols.extend(0_u64.to_le_bytes());
        symbols.extend((CODE.len() as u64).to_le_bytes());
        let symbols = elf.put(&symbols);
        elf.section([0, SYMTAB, STRINGS.into(), 1], 24, symbols);
        let strings = elf.put(&[NAMES, strings].concat());
        elf.section([0, STRTAB, 0, 0], 0, strings);
        elf
    }

    fn put(&mut self, bytes: &[u8]) -> std::ops::Range<u64> {
        let start = self.body.len().next_multiple_of(8);
        self.body.resize(start, 0);
        self.body.extend(bytes);
        start as u64..self.body.len() as u64
    }

    /// Adds a section with a name, a type, a link and an `info`.
    fn section(&mut self, words: [u32; 4], entry: u64, at: std::ops::Range<u64>) {
        let [name, kind, link, info] = words;
        let wide = |values: &[u64]| values.iter().flat_map(|one| one.to_le_bytes()).collect();
        let narrow = |values: [u32; 2]| values.map(u32::to_le_bytes).concat();
        let flags_to_size: Vec<u8> = wide(&[0, 0, at.start, at.end - at.start]);
        let rest: Vec<u8> = wide(&[8, entry]);
        let parts = [narrow([name, kind]), flags_to_size, narrow([link, info]), rest];
        self.sections.extend(parts.concat());
        self.count += 1;
    }

    fn bytes(mut self) -> Vec<u8> {
        self.body.resize(self.body.len().next_multiple_of(8), 0);
        let sections = self.body.len() as u64;
        let mut head = b"\x7fELF\x02\x01\x01".to_vec();
        head.resize(16, 0);
        // A relocatable file for BPF.
        head.extend([1, 0, 247, 0, 1, 0, 0, 0]);
        head.extend([0; 16]);
        head.extend(sections.to_le_bytes());
        head.extend([0; 4]);
        let sizes = [64, 0, 0, 64, self.count, STRINGS];
        head.extend(sizes.iter().flat_map(|size: &u16| size.to_le_bytes()));
        self.body[..64].copy_from_slice(&head);
        [self.body, self.sections].concat()
    }
}

#[test]
fn sections_with_the_same_relocations_are_limited() {
    let mut elf = Elf::new(b"");
    let relocation = [0_u64.to_le_bytes(), (1 << 32 | 10_u64).to_le_bytes(), [0; 8]].concat();
    let relocations = elf.put(&relocation.repeat(10_000));
    elf.section([0, RELA, SYMBOLS, TEXT], 24, relocations.clone());
    assert!(read(&Elf::new(b"").bytes()).is_ok());
    for _ in 0..10_000 {
        elf.section([0, RELA, SYMBOLS, TEXT], 24, relocations.clone());
    }
    let wanted = BadObject::TooMuch {
        what: "relocations",
        count: MAX_INSTRUCTIONS + 1,
        most: MAX_INSTRUCTIONS,
    };
    assert_eq!(read(&elf.bytes()), Err(wanted));
}

/// 40,000 sections share a name of 4 MB.
#[test]
fn a_long_name_of_many_sections_is_not_searched_for_its_end() {
    let mut elf = Elf::new(&vec![b'A'; 4 << 20]);
    for _ in 0..40_000 {
        elf.section([NAMES.len() as u32, PROGBITS, 0, 0], 0, 64..64);
    }
    assert!(read(&elf.bytes()).is_ok());
}

/// A million symbols have the name of 8 MB, which has no end.
#[test]
fn a_name_without_an_end_ends_the_reading() {
    let mut elf = Elf { body: vec![0; 64], ..Elf::default() };
    elf.section([0, 0, 0, 0], 0, 0..0);
    let code = elf.put(&CODE);
    elf.section([TEXT_NAME, PROGBITS, 0, 0], 0, code);
    let mut symbol = (NAMES.len() as u32).to_le_bytes().to_vec();
    symbol.extend([0x12, 0, TEXT as u8, 0]);
    symbol.extend([0_u64.to_le_bytes(), (CODE.len() as u64).to_le_bytes()].concat());
    let symbols = elf.put(&[&[0; 24], &*symbol.repeat(1_000_000)].concat());
    elf.section([0, SYMTAB, STRINGS.into(), 1], 24, symbols);
    let strings = elf.put(&[NAMES, &vec![b'A'; 8 << 20]].concat());
    elf.section([0, STRTAB, 0, 0], 0, strings);
    assert!(matches!(read(&elf.bytes()), Err(BadObject::Elf(_))));
}
