//! p4info: what a control plane knows of a P4 program (P4Runtime specification, section 6). The
//! same program has the same ids in every run.
#![forbid(unsafe_code)]

mod actions;
mod cells;
pub mod ids;
mod tables;
#[cfg(test)]
mod tests;
mod types;

use p4::ir::{NotMade, Program};
use p4::syntax::ast::Annotation;
use prost::Message;
use prost_reflect::text_format::FormatOptions;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};

use types::Types;

/// The types of `proto/p4/config/v1/p4info.proto`.
#[expect(missing_docs, clippy::pedantic, reason = "generated; documented in proto/")]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/p4.config.v1.rs"));
}

const DESCRIBED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/p4info.bin"));

/// Why a program has no p4info.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Its `main` cannot be made.
    #[error(transparent)]
    Main(#[from] NotMade),
    /// Two things ask for one id.
    #[error("`{0}` and `{1}` both have the id {2:#010x}: change one `@id`")]
    SameId(String, String, u32),
    /// An `@id` that is none of its kind.
    #[error("`{0}`: `@id({1})` is no number below 2^24, with or without {2:#04x} in front")]
    BadId(String, String, u8),
}

/// The p4info of a program.
///
/// # Errors
///
/// If it has no `main`, or ids that contradict each other.
pub fn info(program: &Program) -> Result<v1::P4Info, Error> {
    let made = program.elaborate()?;
    let main = program.main.as_ref().ok_or(NotMade::NoMain)?;
    let mut info = v1::P4Info {
        pkg_info: Some(v1::PkgInfo { arch: main.package.to_string(), ..Default::default() }),
        ..v1::P4Info::default()
    };
    let mut types = Types::default();
    let actions = actions::actions(program, &made, &mut info, &mut types)?;
    tables::tables(program, &made, &actions, &mut info, &mut types)?;
    tables::value_sets(program, &made, &mut info, &mut types)?;
    cells::counters_and_meters(program, &made, &mut info)?;
    cells::registers_and_digests(program, &made, &mut info, &mut types)?;
    set_aliases(&mut info);
    if types != Types::default() {
        info.type_info = Some(types);
    }
    Ok(info)
}

/// What protobuf's text of p4info is read and written by.
fn descriptor() -> MessageDescriptor {
    // What the build has written is what it has made the types of.
    let pool = DescriptorPool::decode(DESCRIBED).expect("the description is the build's own");
    pool.get_message_by_name("p4.config.v1.P4Info").expect("it describes P4Info")
}

/// p4info as protobuf's text, which `p4runtime-shell` and others read.
pub fn text(info: &v1::P4Info) -> String {
    let message = DynamicMessage::decode(descriptor(), &*binary(info)).expect("it is a P4Info");
    let options = FormatOptions::new().pretty(true);
    message.to_text_format_with_options(&options) + "\n"
}

/// p4info of a file, in protobuf's text or bytes.
///
/// # Errors
///
/// It is neither.
pub fn read(bytes: &[u8]) -> Result<v1::P4Info, Unreadable> {
    let text = std::str::from_utf8(bytes).ok();
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

/// Why a file is no p4info.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is text, of something else.
    #[error("no p4info in protobuf's text: {0}")]
    Text(String),
    /// They are no bytes of p4info.
    #[error("no p4info in protobuf's bytes: {0}")]
    Bytes(#[from] prost::DecodeError),
}

/// p4info as protobuf's bytes.
pub fn binary(info: &v1::P4Info) -> Vec<u8> {
    info.encode_to_vec()
}

/// `@name("…")` and the others as a program writes them.
fn texts(annotations: &[Annotation]) -> Vec<String> {
    let text = |one: &Annotation| match one.body.is_empty() {
        true => format!("@{}", one.name.text),
        false => format!("@{}({})", one.name.text, one.body.concat()),
    };
    annotations.iter().map(text).collect()
}

/// Gives everything the shortest end of its name that nothing else of its kind has.
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
