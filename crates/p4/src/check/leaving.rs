//! Warnings for port fields of the model's metadata that are set but have no effect, because the
//! field that enables them is never written.

use p4_syntax::diagnostic::Diagnostic;
use p4_syntax::source::Span;

use super::Checker;
use crate::ir::{Expression, ExpressionKind};
use crate::model::field::{CLONE, CLONE_PORT, NAMES, OUTPUT_ACTION, OUTPUT_PORT};

/// First assignment to each field of the metadata.
pub(super) type Written = [Option<Span>; NAMES.len()];

impl Checker<'_> {
    /// Records an assignment.
    pub(super) fn note_written(&mut self, place: &Expression) {
        if self.program.is_metadata(&place.of) {
            self.written.iter_mut().for_each(|field| *field = field.or(Some(place.span)));
        }
        if let ExpressionKind::Field(of, at) = &place.kind
            && self.program.is_metadata(&of.of)
        {
            self.written[*at].get_or_insert(place.span);
        }
    }

    /// Warns of ports that are set but never used.
    pub(super) fn warn_of_ports(&mut self) {
        for (port, says, so) in [
            (OUTPUT_PORT, OUTPUT_ACTION, "output_action = ubpf_action.REDIRECT"),
            (CLONE_PORT, CLONE, "clone = true"),
        ] {
            let (Some(span), None) = (self.written[port], self.written[says]) else { continue };
            let message = format!("`{}` has no effect: no packet is sent to it", NAMES[port]);
            let diagnostic = Diagnostic::warning(span, message);
            self.problems.add(diagnostic.help(format!("`{so}` of the same metadata does")));
        }
    }
}
