//! The memory that messages take once prost has decoded them, from their description.

use std::collections::{BTreeMap, BTreeSet};

use prost_reflect::{DescriptorError, DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

use crate::walk::Walk;

/// Bytes of a `String` or a `Vec` in a message.
const CONTAINER: u64 = 24;
/// Bytes of a map in a message.
const MAP: u64 = 48;
/// Bytes of a pointer, and of a discriminant.
const WORD: u64 = 8;
/// Bytes of an allocation beside its content, and of a map's entry beside key and value.
pub(crate) const OVERHEAD: u64 = 32;

/// The decoded sizes of a protocol's messages, and the inputs of its methods.
#[derive(Debug)]
pub struct Shapes {
    pub(crate) messages: Vec<Message>,
    names: BTreeMap<String, usize>,
    methods: BTreeMap<String, Method>,
}

/// A method's input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Method {
    pub(crate) input: usize,
    pub(crate) is_streaming: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Message {
    /// Bytes of its struct.
    pub(crate) size: u64,
    /// Fields by number.
    pub(crate) fields: BTreeMap<u32, Field>,
    /// The number of its fields that are counted: those that grow, and messages.
    pub(crate) counted: usize,
}

/// The content of a field on the wire.
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
    /// Its number among its message's counted fields.
    pub(crate) count: usize,
}

/// The place of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In its message's struct.
    Inline,
    /// In an allocation of this many bytes.
    Boxed(u64),
    /// In a `Vec` of elements of this many bytes.
    Element(u64),
}

impl Shapes {
    /// The shapes of a protocol: an encoded `FileDescriptorSet`, of which prost made the types.
    ///
    /// # Errors
    ///
    /// The bytes are not such a set.
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

    /// The method of a request's path; none if the protocol has no such method.
    pub(crate) fn method(&self, path: &str) -> Option<Method> {
        self.methods.get(path).copied()
    }

    /// The memory that decoding a message takes, by the message's full name; none if the protocol has no
    /// such message, or these are not its bytes.
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

/// Bytes of an element of a repeated field, or of a map's entry.
fn element(field: &FieldDescriptor) -> u64 {
    match field.kind() {
        // A hash table is at most 7/8 full, and doubles.
        Kind::Message(entry) if field.is_map() => 2 * (size(&entry) + OVERHEAD),
        Kind::Message(of) => size(&of),
        Kind::String | Kind::Bytes => CONTAINER,
        _ => WORD,
    }
}

/// Bytes of a message's struct: no less than Rust makes it, which puts its fields into an order without
/// padding but at the end.
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

/// Bytes of a field in its message's struct.
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
            // An `Option` has a discriminant.
            if field.supports_presence() { 2 * number } else { number }
        }
    }
}

/// True for a field that prost boxes: its message contains the field's own message, in place.
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
