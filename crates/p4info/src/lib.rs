//! P4Info: the description of a P4 program for a control plane (P4Runtime specification, section
//! 6). Ids are deterministic.
#![forbid(unsafe_code)]

mod actions;
mod cells;
pub mod ids;
mod tables;
#[cfg(test)]
mod tests;
mod types;

use num_traits::Bounded;
use p4::ir::{NotElaborated, Program};
use p4_syntax::ast::Annotation;
use prost::Message;

use prost_reflect::text_format::FormatOptions;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use prost_types::FileDescriptorSet;
use types::Types;

/// Types of `proto/p4/config/v1/p4info.proto`.
#[expect(missing_docs, clippy::pedantic, reason = "generated; documented in proto/")]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/p4.config.v1.rs"));
}

const DESCRIBED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/p4info.bin"));

/// Reason that a program has no P4Info.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// `main` cannot be instantiated.
    #[error(transparent)]
    Main(#[from] NotElaborated),
    /// Two objects request the same id.
    #[error("`{0}` and `{1}` both have the id {2:#010x}: change one `@id`")]
    SameId(String, String, u32),
    /// An `@id` that is invalid for the kind of object.
    #[error("`{0}`: `@id({1})` must be below 2^24; bits 31 to 24 may be {2:#04x}")]
    BadId(String, String, u8),
    /// A size that P4Info cannot express.
    #[error("`{name}` has {size} elements, and P4Info describes at most {most}: make it smaller")]
    Size {
        /// Name of the object.
        name: String,
        /// Number of elements.
        size: u64,
        /// Maximum number.
        most: i64,
    },
}

/// Returns the size of an object as a field of P4Info, which has 32 or 64 bits.
fn size<T: TryFrom<u64> + Bounded + Into<i64>>(name: &str, size: u64) -> Result<T, Error> {
    let too_large = |_| Error::Size { name: name.to_owned(), size, most: T::max_value().into() };
    T::try_from(size).map_err(too_large)
}

/// Returns the P4Info of a program.
///
/// # Errors
///
/// There is no `main`, or ids contradict each other.
pub fn info(program: &Program) -> Result<v1::P4Info, Error> {
    let elaborated = program.elaborate()?;
    let main = program.main.as_ref().ok_or(NotElaborated::NoMain)?;
    let mut info = v1::P4Info {
        pkg_info: Some(v1::PkgInfo { arch: main.package.to_string(), ..Default::default() }),
        ..v1::P4Info::default()
    };
    let mut types = Types::default();
    let actions = actions::actions(program, &elaborated, &mut info, &mut types)?;
    tables::tables(program, &elaborated, &actions, &mut info, &mut types)?;
    tables::value_sets(program, &elaborated, &mut info, &mut types)?;
    cells::counters_and_meters(program, &elaborated, &mut info)?;
    cells::registers_and_digests(program, &elaborated, &mut info, &mut types)?;
    set_aliases(&mut info);
    if types != Types::default() {
        info.type_info = Some(types);
    }
    Ok(info)
}

/// Returns the descriptor for protobuf's text format.
fn descriptor() -> MessageDescriptor {
    // The build generated the types from the same descriptor.
    let pool = DescriptorPool::decode(DESCRIBED).expect("the description is the build's own");
    pool.get_message_by_name("p4.config.v1.P4Info").expect("it describes P4Info")
}

/// Returns the descriptor with map fields as lists of entries: the wire and text formats are the
/// same, and a list keeps its order.
fn ordered_descriptor() -> MessageDescriptor {
    let mut set = FileDescriptorSet::decode(DESCRIBED).expect("the description is the build's own");
    let messages = set.file.iter_mut().flat_map(|file| &mut file.message_type);
    for entry in messages.flat_map(|message| &mut message.nested_type) {
        if let Some(options) = &mut entry.options {
            options.map_entry = None;
        }
    }
    let pool = DescriptorPool::from_file_descriptor_set(set).expect("a list is valid for a map");
    pool.get_message_by_name("p4.config.v1.P4Info").expect("it describes P4Info")
}

/// Encodes P4Info in protobuf's text format, which `p4runtime-shell` and others read. Named types are
/// in alphabetical order.
pub fn text(info: &v1::P4Info) -> String {
    let message = DynamicMessage::decode(ordered_descriptor(), &*binary(info));
    let options = FormatOptions::new().pretty(true);
    message.expect("it is a P4Info").to_text_format_with_options(&options) + "\n"
}

/// Decodes P4Info from protobuf's text or binary format.
///
/// # Errors
///
/// The bytes are valid in neither format.
pub fn read(bytes: &[u8]) -> Result<v1::P4Info, Unreadable> {
    let text = std::str::from_utf8(bytes).ok();
    if text.is_some_and(is_deep) {
        let why = || Unreadable::Text(format!("it is nested more than {MAX_DEPTH} times"));
        return v1::P4Info::decode(bytes).map_err(|_| why());
    }
    let said = match text.map(|text| DynamicMessage::parse_text_format(descriptor(), text)) {
        Some(Ok(message)) => return Ok(v1::P4Info::decode(&*message.encode_to_vec())?),
        Some(Err(why)) => Some(why.to_string()),
        None => None,
    };
    match (v1::P4Info::decode(bytes), said) {
        (Ok(info), _) => Ok(info),
        (Err(_), Some(why)) => Err(Unreadable::Text(why)),
        (Err(why), None) => Err(why.into()),
    }
}

/// Maximum nesting of messages, as in the binary format. The parser of the text has no limit, and ends
/// the process when its stack is full.
const MAX_DEPTH: usize = 100;

/// Returns true if messages in protobuf's text format are nested deeper than [`MAX_DEPTH`]. Brackets in strings and
/// comments do not count.
fn is_deep(text: &str) -> bool {
    let (mut depth, mut end, mut is_escaped) = (0_usize, None, false);
    for byte in text.bytes() {
        match (end, byte) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(b'"' | b'\''), b'\\') => is_escaped = true,
            // A string ends with its line, an unterminated one as well.
            (Some(last), _) if byte == last || byte == b'\n' => end = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => end = Some(byte),
            (None, b'#') => end = Some(b'\n'),
            (None, b'{' | b'<' | b'[') => depth += 1,
            (None, b'}' | b'>' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

/// Reason that a file is not P4Info.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Text that is not P4Info.
    #[error("no p4info in protobuf's text: {0}")]
    Text(String),
    /// Bytes that are not P4Info.
    #[error("no p4info in protobuf's bytes: {0}")]
    Bytes(#[from] prost::DecodeError),
}

/// Encodes P4Info in protobuf's binary format.
pub fn binary(info: &v1::P4Info) -> Vec<u8> {
    info.encode_to_vec()
}

/// Returns annotations such as `@name("…")` in source form.
fn texts(annotations: &[Annotation]) -> Vec<String> {
    let text = |one: &Annotation| match one.body.is_empty() {
        true => format!("@{}", one.name.text),
        false => format!("@{}({})", one.name.text, one.body.concat()),
    };
    annotations.iter().map(text).collect()
}

/// Sets each alias to the shortest suffix of the name that is unique among objects of its kind.
fn set_aliases(info: &mut v1::P4Info) {
    alias(info.tables.iter_mut().filter_map(|one| one.preamble.as_mut()).collect());
    alias(info.actions.iter_mut().filter_map(|one| one.preamble.as_mut()).collect());
    alias(info.value_sets.iter_mut().filter_map(|one| one.preamble.as_mut()).collect());
    alias(info.registers.iter_mut().filter_map(|one| one.preamble.as_mut()).collect());
    alias(info.counters.iter_mut().filter_map(|one| one.preamble.as_mut()).collect());
    alias(info.direct_counters.iter_mut().filter_map(|one| one.preamble.as_mut()).collect());
    alias(info.meters.iter_mut().filter_map(|one| one.preamble.as_mut()).collect());
    alias(info.direct_meters.iter_mut().filter_map(|one| one.preamble.as_mut()).collect());
    alias(info.digests.iter_mut().filter_map(|one| one.preamble.as_mut()).collect());
}

fn alias(all: Vec<&mut v1::Preamble>) {
    let names: Vec<String> = all.iter().map(|one| one.name.clone()).collect();
    for one in all {
        let starts = one.name.match_indices('.').map(|(at, _)| at + 1);
        let mut ends: Vec<&str> = starts.map(|at| &one.name[at..]).collect();
        ends.reverse();
        let is_only = |end: &&str| {
            let has = |name: &&String| {
                name.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            };
            names.iter().filter(has).count() == 1
        };
        one.alias = ends.into_iter().find(is_only).unwrap_or(&one.name).to_owned();
    }
}
