//! Output of the compiler's diagnostics.

use std::io::IsTerminal;
use std::path::Path;

use anyhow::anyhow;
use output::error::Details;
use output::p4::{Location, Related};
use p4::diagnostic::{Diagnostic, Diagnostics, Severity};
use p4::source::Sources;

use crate::failure::Failure;
use crate::output::{Output, counted};

/// Prints the diagnostics of a program; fails if there are errors.
pub(super) fn tell(
    file: &Path,
    diagnostics: &Diagnostics,
    sources: &Sources,
    output: &Output,
) -> Result<(), Failure> {
    if !output.is_json() {
        let said = diagnostics.render(sources, std::io::stderr().is_terminal());
        if !said.is_empty() {
            crate::output::tell(&format!("{said}\n"));
        }
    }
    let is_error = |one: &&Diagnostic| one.severity == Severity::Error;
    let errors = diagnostics.iter().filter(is_error).count();
    if errors == 0 {
        return Ok(());
    }
    let failure = Failure::usage(anyhow!("{}: {}", file.display(), counted(errors, "error")));
    let diagnostics = output.is_json().then(|| all_output(diagnostics, sources));
    Err(failure.with_details(Details { diagnostics, ..Details::default() }))
}

pub(in crate::commands) fn all_output(
    diagnostics: &Diagnostics,
    sources: &Sources,
) -> Vec<output::p4::Diagnostic> {
    diagnostics.iter().map(|one| diagnostic_output(one, sources)).collect()
}

fn diagnostic_output(diagnostic: &Diagnostic, sources: &Sources) -> output::p4::Diagnostic {
    let place = |span| {
        let at = sources.locate(span)?;
        Some(Location { file: at.file.to_owned(), line: at.line, column: at.column })
    };
    let related = diagnostic.related.iter();
    output::p4::Diagnostic {
        severity: match diagnostic.severity {
            Severity::Error => output::p4::Severity::Error,
            Severity::Warning => output::p4::Severity::Warning,
        },
        message: diagnostic.message.clone(),
        at: place(diagnostic.span),
        label: Some(diagnostic.label.clone()).filter(|label| !label.is_empty()),
        related: related
            .map(|(span, why)| Related { at: place(*span), why: why.clone() })
            .collect(),
        help: diagnostic.help.clone(),
    }
}
