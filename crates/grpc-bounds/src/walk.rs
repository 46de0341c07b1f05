//! Incremental walk over an encoded message that counts the memory of decoding it.

use crate::shapes::{Content, Field, OVERHEAD, Place, Shapes};

/// Maximum nesting depth, the same as prost's.
const DEPTH: usize = 100;

/// An error in an encoded message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("a varint exceeds 64 bits")]
    Varint,
    #[error("unknown wire type {0}")]
    WireType(u8),
    #[error("a field is longer than its message")]
    Length,
    /// Decoders merge duplicates, which lets nested vectors grow further. Encoders never write
    /// them.
    #[error("a singular message field occurs twice")]
    Twice,
    #[error("messages are nested more than {DEPTH} deep")]
    Depth,
}

/// A message that has not ended.
#[derive(Debug)]
struct Level {
    message: usize,
    /// Offset of its end.
    end: u64,
    /// Index of its first counter.
    counts: usize,
}

/// State of the parser at the next byte.
#[derive(Debug, Clone, Copy)]
enum Step {
    Key(Varint),
    /// Varint value of a field.
    Number(Option<Field>),
    Length(Option<Field>, Varint),
    /// Payload without further structure; in a packed field, the last byte of each element is
    /// counted.
    Pass(u64, Option<Field>),
}

#[derive(Debug, Clone, Copy, Default)]
struct Varint {
    value: u64,
    shift: u32,
}

impl Varint {
    /// Consumes a byte; returns the number after its last byte.
    fn take(&mut self, byte: u8) -> Result<Option<u64>, Malformed> {
        if self.shift > 63 {
            return Err(Malformed::Varint);
        }
        self.value |= u64::from(byte & 0x7f) << self.shift;
        self.shift += 7;
        Ok((byte < 0x80).then_some(self.value))
    }
}

const KEY: Step = Step::Key(Varint { value: 0, shift: 0 });

/// The walk over one message.
#[derive(Debug)]
pub(crate) struct Walk {
    levels: Vec<Level>,
    counts: Vec<u64>,
    step: Step,
    at: u64,
    memory: u64,
    /// Largest allocation that is copied while its `Vec` grows.
    copied: u64,
}

impl Walk {
    /// Creates a walk over a message of `length` bytes.
    pub(crate) fn new(shapes: &Shapes, message: usize, length: u64) -> Self {
        let shape = &shapes.messages[message];
        Self {
            levels: vec![Level { message, end: length, counts: 0 }],
            counts: vec![0; shape.counted],
            step: KEY,
            at: 0,
            memory: shape.size,
            copied: 0,
        }
    }

    /// Memory for decoding the bytes walked so far.
    pub(crate) fn memory(&self) -> u64 {
        self.memory.saturating_add(self.copied)
    }

    /// Walks over the next bytes, which have to be within the message.
    pub(crate) fn take(&mut self, shapes: &Shapes, bytes: &[u8]) -> Result<(), Malformed> {
        let mut rest = bytes;
        while let Some((byte, others)) = rest.split_first() {
            if let Step::Pass(left, packed) = self.step {
                let count = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                let (passed, others) = rest.split_at(count);
                if let Some(field) = packed {
                    let is_last = |byte: &&u8| **byte < 0x80;
                    let elements = passed.iter().filter(is_last).count() as u64;
                    self.grow(field, elements);
                }
                self.at += count as u64;
                self.step = Step::Pass(left - count as u64, packed);
                rest = others;
            } else {
                self.at += 1;
                self.byte(shapes, *byte)?;
                rest = others;
            }
            self.settle();
        }
        Ok(())
    }

    fn byte(&mut self, shapes: &Shapes, byte: u8) -> Result<(), Malformed> {
        match &mut self.step {
            Step::Key(varint) => {
                if let Some(key) = varint.take(byte)? {
                    self.key(shapes, key)?;
                }
            }
            Step::Number(field) => {
                if byte < 0x80 {
                    let field = *field;
                    self.step = KEY;
                    self.one(field);
                }
            }
            Step::Length(field, varint) => {
                let field = *field;
                if let Some(length) = varint.take(byte)? {
                    self.delimited(shapes, field, length)?;
                }
            }
            // Handled in `take`, several bytes at once.
            Step::Pass(..) => {}
        }
        Ok(())
    }

    /// Closes payloads and messages that end at the current offset.
    fn settle(&mut self) {
        if let Step::Pass(0, _) = self.step {
            self.step = KEY;
        }
        while let Some(level) = self.levels.last() {
            if !matches!(self.step, Step::Key(Varint { shift: 0, .. }))
                || level.end > self.at
                || self.levels.len() == 1
            {
                return;
            }
            self.counts.truncate(level.counts);
            self.levels.pop();
        }
    }

    /// Processes a field key (protobuf.dev/programming-guides/encoding).
    fn key(&mut self, shapes: &Shapes, key: u64) -> Result<(), Malformed> {
        let number = u32::try_from(key >> 3).ok();
        let level = self.levels.last();
        let shape = level.map(|level| &shapes.messages[level.message]);
        let field = number.and_then(|number| shape?.fields.get(&number)).copied();
        // The decoder rejects a value with a wire type other than the field's.
        let of = |content: Content| field.filter(|field| field.content == content);
        match (key & 7) as u8 {
            0 => self.step = Step::Number(of(Content::Varint)),
            1 => {
                self.pass(8)?;
                self.one(of(Content::Fixed64));
            }
            2 => self.step = Step::Length(field, Varint::default()),
            5 => {
                self.pass(4)?;
                self.one(of(Content::Fixed32));
            }
            other => return Err(Malformed::WireType(other)),
        }
        Ok(())
    }

    fn pass(&mut self, length: u64) -> Result<(), Malformed> {
        self.end(length)?;
        self.step = Step::Pass(length, None);
        Ok(())
    }

    /// Offset of the end of the next `length` bytes, which have to be within their message.
    fn end(&self, length: u64) -> Result<u64, Malformed> {
        let end = self.at.checked_add(length).ok_or(Malformed::Length)?;
        let fits = self.levels.last().is_some_and(|level| end <= level.end);
        if fits { Ok(end) } else { Err(Malformed::Length) }
    }

    /// Processes a length-delimited field.
    fn delimited(
        &mut self,
        shapes: &Shapes,
        field: Option<Field>,
        length: u64,
    ) -> Result<(), Malformed> {
        let end = self.end(length)?;
        self.step = Step::Pass(length, None);
        let Some(field) = field else { return Ok(()) };
        match field.content {
            Content::Bytes => {
                self.add(length.saturating_add(OVERHEAD));
                self.one(Some(field));
            }
            Content::Message(message) => {
                if !matches!(field.place, Place::Element(_)) {
                    self.once(field)?;
                }
                self.one(Some(field));
                if self.levels.len() >= DEPTH {
                    return Err(Malformed::Depth);
                }
                let counts = self.counts.len();
                self.counts.resize(counts + shapes.messages[message].counted, 0);
                self.levels.push(Level { message, end, counts });
                self.step = KEY;
            }
            // A packed field.
            Content::Varint => self.step = Step::Pass(length, Some(field)),
            Content::Fixed32 => self.grow(field, length / 4),
            Content::Fixed64 => self.grow(field, length / 8),
        }
        Ok(())
    }

    /// Counts one value of a field.
    fn one(&mut self, field: Option<Field>) {
        match field {
            Some(Field { place: Place::Boxed(size), .. }) => self.add(size + OVERHEAD),
            Some(field) => self.grow(field, 1),
            None => {}
        }
    }

    /// Counts a singular message; a duplicate is an error.
    fn once(&mut self, field: Field) -> Result<(), Malformed> {
        let Some(level) = self.levels.last() else { return Ok(()) };
        let count = &mut self.counts[level.counts + field.count];
        if *count > 0 {
            return Err(Malformed::Twice);
        }
        *count = 1;
        Ok(())
    }

    /// Counts more elements of a repeated field: a `Vec` starts with a capacity of four, and
    /// doubles.
    fn grow(&mut self, field: Field, by: u64) {
        let Place::Element(size) = field.place else { return };
        let Some(level) = self.levels.last() else { return };
        let count = &mut self.counts[level.counts + field.count];
        let (before, after) = (room(*count), room(count.saturating_add(by)));
        *count = count.saturating_add(by);
        if after > before {
            let old = before.saturating_mul(size);
            self.copied = self.copied.max(after.saturating_mul(size) / 2);
            self.add(after.saturating_mul(size).saturating_sub(old).saturating_add(OVERHEAD));
        }
    }

    fn add(&mut self, bytes: u64) {
        self.memory = self.memory.saturating_add(bytes);
    }
}

/// Capacity of a `Vec` with `count` elements.
fn room(count: u64) -> u64 {
    if count == 0 { 0 } else { count.max(4).checked_next_power_of_two().unwrap_or(u64::MAX) }
}
