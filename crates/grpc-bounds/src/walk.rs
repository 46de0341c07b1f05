//! A walk over a message's bytes as they arrive, which counts the memory that decoding will take.

use crate::shapes::{Content, Field, OVERHEAD, Place, Shapes};

/// Messages within messages: as many as prost decodes.
const DEPTH: usize = 100;

/// An error in the bytes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("a number has more than 64 bits")]
    Varint,
    #[error("a field of wire type {0}, which is not in use")]
    WireType(u8),
    #[error("a field is longer than its message")]
    Length,
    /// Decoders merge both, and vectors in there grow on: no encoder writes that.
    #[error("a field that has one message has two")]
    Twice,
    #[error("messages are nested more than {DEPTH} deep")]
    Depth,
}

/// A message whose end has not come.
#[derive(Debug)]
struct Level {
    message: usize,
    /// The place of its end.
    end: u64,
    /// The place of its counted fields' counts.
    counts: usize,
}

/// The next byte's part.
#[derive(Debug, Clone, Copy)]
enum Step {
    Key(Varint),
    /// A number that is a field's value.
    Number(Option<Field>),
    Length(Option<Field>, Varint),
    /// Bytes that say nothing more; of a packed field, each element has its last byte.
    Pass(u64, Option<Field>),
}

#[derive(Debug, Clone, Copy, Default)]
struct Varint {
    value: u64,
    shift: u32,
}

impl Varint {
    /// Takes a byte; the number, if it was its last.
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
    /// The largest allocation that is copied while its `Vec` grows.
    copied: u64,
}

impl Walk {
    /// The walk over a message of `length` bytes.
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

    /// The memory that decoding the walked bytes takes.
    pub(crate) fn memory(&self) -> u64 {
        self.memory.saturating_add(self.copied)
    }

    /// Walks over the next bytes, which do not go beyond the message.
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
            // Taken in `take`, many at once.
            Step::Pass(..) => {}
        }
        Ok(())
    }

    /// Ends the messages, and the bytes that say nothing, that end here.
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

    /// A field begins (protobuf.dev/programming-guides/encoding).
    fn key(&mut self, shapes: &Shapes, key: u64) -> Result<(), Malformed> {
        let number = u32::try_from(key >> 3).ok();
        let level = self.levels.last();
        let shape = level.map(|level| &shapes.messages[level.message]);
        let field = number.and_then(|number| shape?.fields.get(&number)).copied();
        // A value of another wire type than the field's is an error of the decoder's.
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

    /// The end of the next `length` bytes, which is within their message.
    fn end(&self, length: u64) -> Result<u64, Malformed> {
        let end = self.at.checked_add(length).ok_or(Malformed::Length)?;
        let fits = self.levels.last().is_some_and(|level| end <= level.end);
        if fits { Ok(end) } else { Err(Malformed::Length) }
    }

    /// A field with a length in front.
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
            // Packed.
            Content::Varint => self.step = Step::Pass(length, Some(field)),
            Content::Fixed32 => self.grow(field, length / 4),
            Content::Fixed64 => self.grow(field, length / 8),
        }
        Ok(())
    }

    /// One value of a field.
    fn one(&mut self, field: Option<Field>) {
        match field {
            Some(Field { place: Place::Boxed(size), .. }) => self.add(size + OVERHEAD),
            Some(field) => self.grow(field, 1),
            None => {}
        }
    }

    /// A message of a field that has one.
    fn once(&mut self, field: Field) -> Result<(), Malformed> {
        let Some(level) = self.levels.last() else { return Ok(()) };
        let count = &mut self.counts[level.counts + field.count];
        if *count > 0 {
            return Err(Malformed::Twice);
        }
        *count = 1;
        Ok(())
    }

    /// More elements of a field, if it has elements: a `Vec` has room for four at first, and doubles.
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

/// Elements that a `Vec` of `count` elements has room for.
fn room(count: u64) -> u64 {
    if count == 0 { 0 } else { count.max(4).checked_next_power_of_two().unwrap_or(u64::MAX) }
}
