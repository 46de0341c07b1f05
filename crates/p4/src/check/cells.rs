//! Type arguments of counters, meters, registers and digests (`crates/p4-syntax/model/kaido.p4`).

use p4_syntax::diagnostic::Diagnostic;
use p4_syntax::source::Span;

use super::{Checked, Checker, Place};
use crate::ir::{ExternId, Type};
use crate::model::Object;

/// Maximum width of a counter in bits.
const MAX_COUNT: u32 = 64;

impl Checker<'_> {
    /// Reports an error unless the model's object is allowed here, with these type arguments.
    pub(super) fn check_cells(&mut self, span: Span, id: ExternId, types: &[Type]) -> Checked<()> {
        let Some(object) = self.program.model_object(id) else { return Ok(()) };
        if object.is_direct() && self.place != Place::ControlLocals {
            let diagnostic = Diagnostic::error(span, "this belongs in the control of its table");
            let property = property(object);
            return self
                .refuse(diagnostic.help(format!("there, `{property} = name;` is the table's")));
        }
        match (object, types) {
            (Object::Counter | Object::DirectCounter, [counts, ..]) => {
                let fits = match self.representation(counts) {
                    Type::Bits { width, signed } => !signed && (1..=MAX_COUNT).contains(&width),
                    _ => false,
                };
                if !fits {
                    let what = self.describe(counts);
                    let message = format!("a counter cannot be of type {what}");
                    let diagnostic = Diagnostic::error(span, message);
                    return self
                        .refuse(diagnostic.label(format!("expected bit<1> to bit<{MAX_COUNT}>")));
                }
            }
            (Object::Digest, [data])
                if self.program.number_widths(data).is_none()
                    || self.program.size_of(data).is_none() =>
            {
                let what = self.describe(data);
                let diagnostic =
                    Diagnostic::error(span, format!("a digest cannot be of type {what}"));
                return self
                    .refuse(diagnostic.help("numbers, and structs of them, can be digests"));
            }
            _ => {}
        }
        let index = match object {
            Object::Counter | Object::Register => types.get(1),
            Object::Meter => types.first(),
            _ => None,
        };
        match index {
            Some(of) => match self.representation(of) {
                Type::Bits { signed: false, .. } => Ok(()),
                _ => {
                    let what = self.describe(of);
                    self.wrong(span, format!("an index must be bit<…>, not {what}"))
                }
            },
            None => Ok(()),
        }
    }
}

/// Returns the table property for a direct counter or meter.
pub(super) fn property(of: Object) -> &'static str {
    match of {
        Object::DirectMeter => "psa_direct_meter",
        _ => "psa_direct_counter",
    }
}
