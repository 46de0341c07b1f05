//! Packet extraction in parsers (P4_16 specification, section 13.8).

use p4::ir::{Expression, ExpressionKind, Type};
use p4_syntax::source::Span;

use super::{Lower, Lowered, NotCompiled};
use crate::flat::shape::limbs;
use crate::flat::{Binary, Compare, ValueId};

/// A position in the packet: a bit offset after a byte, and the number of bytes known to exist
/// after that byte, not counting varbits.
#[derive(Clone, Copy)]
struct Cursor {
    at: ValueId,
    bit: u32,
    bytes: u32,
}

impl Lower<'_> {
    pub(super) fn extract(&mut self, header: &Expression, bits: Option<&Expression>) -> Lowered {
        let span = header.span;
        let place = self.place(header)?;
        let varbits = match bits {
            Some(bits) => self.small(bits)?,
            None => self.build.constant(0),
        };
        let (least, most) = self.program.size_of(&header.of).unwrap_or_default();
        if !least.is_multiple_of(8) {
            return Err(NotCompiled {
                span,
                what: format!("this header has {least} bits, not a whole number of bytes"),
                help: Some("add a field that fills the last byte".to_owned()),
            });
        }
        if bits.is_some() {
            // The size of a header must be a multiple of 8 bits (section 13.8.2).
            let room = self.build.constant(u64::from(most - least));
            let fits = self.build.compare(Compare::LessOrEqual, varbits, room);
            self.require(fits);
            let odd = self.build.by(Binary::Add, varbits, u64::from(least));
            let odd = self.build.by(Binary::And, odd, 7);
            let whole = self.build.not(odd);
            self.require(whole);
        }
        let at = self.build.read(self.at);
        let bits = self.build.by(Binary::Add, varbits, u64::from(least));
        let size = self.build.by(Binary::ShiftRight, bits, 3);
        let behind = self.build.binary(Binary::Add, at, size);
        self.require_bytes(behind);
        let (value, _) =
            self.fields(&header.of, Cursor { at, bit: 0, bytes: least / 8 }, varbits, span)?;
        self.build.write(self.at, behind);
        self.write(&place, &value);
        // Extracting a header of a union also advances a stack of unions.
        let element = match &header.kind {
            ExpressionKind::Field(union, _) => union,
            _ => header,
        };
        if let ExpressionKind::Next(stack) = &element.kind {
            let stack = self.place(stack)?;
            self.advance_next(&stack);
        }
        Ok(())
    }

    /// Rejects the packet if it is shorter than this number of bytes.
    fn require_bytes(&mut self, behind: ValueId) {
        let length = self.length;
        let fits = self.build.compare(Compare::LessOrEqual, behind, length);
        self.require(fits);
    }

    /// Returns a number of bits. A value of 2^32 or more becomes 2^32, even if it is wider than 64
    /// bits.
    fn small(&mut self, of: &Expression) -> Lowered<ValueId> {
        let width = self.width(&of.of);
        let all = self.value(of)?;
        let Some(lowest) = all.first().copied() else { return Ok(self.build.constant(0)) };
        let mut far = self.build.constant(0);
        for upper in &all[1..limbs(width).max(1) as usize] {
            far = self.build.binary(Binary::Or, far, *upper);
        }
        let large = self.build.by(Binary::ShiftRight, lowest, 32);
        far = self.build.binary(Binary::Or, far, large);
        let most = self.build.constant(u64::from(u32::MAX) + 1);
        Ok(self.build.select(far, most, lowest))
    }

    pub(super) fn advance(&mut self, by: &Expression) -> Lowered {
        let bits = self.small(by)?;
        if self.build.graph.trailing_zeros(bits) < 3 {
            return Err(NotCompiled {
                span: by.span,
                what: "this may not be a whole number of bytes".to_owned(),
                help: Some("`(bit<32>)bytes << 3` always is one".to_owned()),
            });
        }
        let at = self.build.read(self.at);
        let bytes = self.build.by(Binary::ShiftRight, bits, 3);
        let behind = self.build.binary(Binary::Add, at, bytes);
        self.require_bytes(behind);
        self.build.write(self.at, behind);
        Ok(())
    }

    pub(super) fn lookahead(&mut self, of: &Type, span: Span) -> Lowered<Vec<ValueId>> {
        let (bits, _) = self.program.size_of(of).unwrap_or_default();
        let at = self.build.read(self.at);
        let behind = self.build.by(Binary::Add, at, u64::from(bits.div_ceil(8)));
        self.require_bytes(behind);
        let none = self.build.constant(0);
        Ok(self.fields(of, Cursor { at, bit: 0, bytes: bits.div_ceil(8) }, none, span)?.0)
    }

    /// Reads a value of the type. Returns it and the position after it. A varbit has `varbits`
    /// bits.
    fn fields(
        &mut self,
        of: &Type,
        from: Cursor,
        varbits: ValueId,
        span: Span,
    ) -> Lowered<(Vec<ValueId>, Cursor)> {
        let Cursor { at, bit, bytes } = from;
        let behind = |bits: u32| Cursor { bit: bit + bits, ..from };
        Ok(match of {
            Type::Bool => (self.build.field(at, bit, 1, bytes), behind(1)),
            Type::Bits { width, .. } => (self.build.field(at, bit, *width, bytes), behind(*width)),
            Type::Varbit(_) => {
                if !bit.is_multiple_of(8) {
                    return self.refuse(span, "a varbit that does not begin with a byte");
                }
                let first = self.build.by(Binary::Add, at, u64::from(bit / 8));
                let size = self.build.by(Binary::ShiftRight, varbits, 3);
                // The offsets of later fields are relative to the end of the varbit.
                let at = self.build.binary(Binary::Add, first, size);
                (vec![varbits, first], Cursor { at, bit: 0, bytes: bytes - bit / 8 })
            }
            Type::Enum(id) => match self.program.enums[id.index()].representation.clone() {
                Some(of) => self.fields(&of, from, varbits, span)?,
                None => (self.initial(of), from),
            },
            Type::New(id) => {
                let of = self.program.new_types[id.index()].of.clone();
                self.fields(&of, from, varbits, span)?
            }
            _ => {
                let mut all = Vec::new();
                if self.program.is_header(of) {
                    if !bit.is_multiple_of(8) {
                        return self.refuse(span, "a header that does not begin with a byte");
                    }
                    all.push(self.build.constant(1));
                    all.push(self.build.by(Binary::Add, at, u64::from(bit / 8)));
                }
                if matches!(of, Type::Stack(..)) {
                    all.push(self.build.constant(0));
                }
                let mut from = from;
                for of in self.program.parts(of) {
                    let (values, behind) = self.fields(&of, from, varbits, span)?;
                    all.extend(values);
                    from = behind;
                }
                (all, from)
            }
        })
    }
}
