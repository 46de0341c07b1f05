//! Sizes of messages as decoded by prost, computed from their descriptors.

use std::collections::{BTreeMap, BTreeSet};

use prost_reflect::{DescriptorError, DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

use crate::walk::Walk;

/// Size of a `String` or a `Vec` in a struct.
const CONTAINER: u64 = 24;
/// Size of a map in a struct.
const MAP: u64 = 48;
/// Size of a pointer or of a discriminant.
const WORD: u64 = 8;
/// Overhead of an allocation, and of a map entry, in bytes.
pub(crate) const OVERHEAD: u64 = 32;

/// Decoded sizes of a protocol's messages, and the input types of its methods.
#[derive(Debug)]
pub struct Shapes {
    pub(crate) messages: Vec<Message>,
    names: BTreeMap<String, usize>,
    methods: BTreeMap<String, Method>,
}

/// Input of a method.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Method {
    pub(crate) input: usize,
    pub(crate) is_streaming: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Message {
    /// Size of the struct in bytes.
    pub(crate) size: u64,
    /// Fields by number.
    pub(crate) fields: BTreeMap<u32, Field>,
    /// Number of counted fields: repeated fields and messages.
    pub(crate) counted: usize,
}

/// Wire format of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Varint,
    Fixed32,
    Fixed64,
    Bytes,
    Message(usize),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) content: Content,
    pub(crate) place: Place,
    /// Index among the counted fields of the message.
    pub(crate) count: usize,
}

/// Location of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Inline in the struct.
    Inline,
    /// In a separate allocation of this size.
    Boxed(u64),
    /// In a `Vec` with elements of this size.
    Element(u64),
}

impl Shapes {
    /// Computes the shapes of a protocol from its encoded `FileDescriptorSet`, the one from which
    /// prost generated the types.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not a valid descriptor set.
    pub fn new(described: &[u8]) -> Result<Self, DescriptorError> {
        let pool = DescriptorPool::decode(described)?;
        let all: Vec<MessageDescriptor> = pool.all_messages().collect();
        let numbers = all.iter().enumerate().map(|(at, one)| (one.full_name().to_owned(), at));
        let builder = Builder { numbers: numbers.collect() };
        let messages = all.iter().map(|one| builder.message(one)).collect();
        let mut methods = BTreeMap::new();
        for service in pool.services() {
            for method in service.methods() {
                let input = builder.numbers[method.input().full_name()];
                let is_streaming = method.is_client_streaming();
                let path = format!("/{}/{}", service.full_name(), method.name());
                methods.insert(path, Method { input, is_streaming });
            }
        }
        Ok(Self { messages, names: builder.numbers, methods })
    }

    /// Method of a request path; `None` if the protocol has no such method.
    pub(crate) fn method(&self, path: &str) -> Option<Method> {
        self.methods.get(path).copied()
    }

    /// Memory that decoding a message takes, by the full name of the message type. `None` if the
    /// protocol has no such type, or if the bytes are malformed.
    pub fn memory(&self, message: &str, bytes: &[u8]) -> Option<u64> {
        let mut walk = Walk::new(self, *self.names.get(message)?, bytes.len() as u64);
        walk.take(self, bytes).ok()?;
        Some(walk.memory())
    }
}

struct Builder {
    numbers: BTreeMap<String, usize>,
}

impl Builder {
    fn message(&self, message: &MessageDescriptor) -> Message {
        let mut made = Message { size: size(message), ..Message::default() };
        for field in message.fields() {
            let content = self.content(&field);
            let place = if field.is_list() || field.is_map() {
                Place::Element(element(&field))
            } else if is_boxed(&field) {
                Place::Boxed(field.kind().as_message().map_or(0, size))
            } else {
                Place::Inline
            };
            let count = made.counted;
            made.fields.insert(field.number(), Field { content, place, count });
            let is_counted = matches!(content, Content::Message(_)) || place != Place::Inline;
            made.counted += usize::from(is_counted);
        }
        made
    }

    fn content(&self, field: &FieldDescriptor) -> Content {
        match field.kind() {
            Kind::Message(of) => Content::Message(self.numbers[of.full_name()]),
            Kind::String | Kind::Bytes => Content::Bytes,
            Kind::Fixed32 | Kind::Sfixed32 | Kind::Float => Content::Fixed32,
            Kind::Fixed64 | Kind::Sfixed64 | Kind::Double => Content::Fixed64,
            _ => Content::Varint,
        }
    }
}

/// Size of an element of a repeated field, or of a map entry.
fn element(field: &FieldDescriptor) -> u64 {
    match field.kind() {
        // Hash tables have a load factor of at most 7/8, and double.
        Kind::Message(entry) if field.is_map() => 2 * (size(&entry) + OVERHEAD),
        Kind::Message(of) => size(&of),
        Kind::String | Kind::Bytes => CONTAINER,
        _ => WORD,
    }
}

/// Size of a message's struct, an upper bound: Rust orders fields so that there is padding only at
/// the end.
fn size(message: &MessageDescriptor) -> u64 {
    let of_oneofs = message
        .oneofs()
        .filter(|oneof| !oneof.is_synthetic())
        .map(|oneof| WORD + oneof.fields().map(|field| inline(&field)).max().unwrap_or_default());
    let is_plain =
        |field: &FieldDescriptor| field.containing_oneof().is_none_or(|oneof| oneof.is_synthetic());
    let of_fields = message.fields().filter(is_plain).map(|field| inline(&field));
    of_oneofs.chain(of_fields).sum::<u64>().next_multiple_of(WORD)
}

/// Size of a field in its message's struct.
fn inline(field: &FieldDescriptor) -> u64 {
    match field.kind() {
        _ if field.is_map() => MAP,
        _ if field.is_list() => CONTAINER,
        Kind::Message(_) if is_boxed(field) => WORD,
        Kind::Message(of) => WORD + size(&of),
        Kind::String | Kind::Bytes => CONTAINER,
        kind => {
            let number = match kind {
                Kind::Int64 | Kind::Uint64 | Kind::Sint64 => WORD,
                Kind::Fixed64 | Kind::Sfixed64 | Kind::Double => WORD,
                _ => WORD / 2,
            };
            // The discriminant of an `Option`.
            if field.supports_presence() { 2 * number } else { number }
        }
    }
}

/// True for a field that prost boxes because its message type contains the parent type inline.
fn is_boxed(field: &FieldDescriptor) -> bool {
    let Kind::Message(of) = field.kind() else { return false };
    if field.is_list() || field.is_map() {
        return false;
    }
    let wanted = field.parent_message().full_name();
    let (mut seen, mut next) = (BTreeSet::new(), vec![of]);
    while let Some(message) = next.pop() {
        if message.full_name() == wanted {
            return true;
        }
        if seen.insert(message.full_name().to_owned()) {
            let singular = message.fields().filter(|field| !field.is_list() && !field.is_map());
            next.extend(singular.filter_map(|field| field.kind().as_message().cloned()));
        }
    }
    false
}
