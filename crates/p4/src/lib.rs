//! The checker and the reference interpreter of P4_16 (P4 language specification, version 1.2.5), for
//! tenants' programs.
//!
//! The checker resolves the names and types of a syntax tree (`p4_syntax`) and produces the
//! intermediate representation, [`ir`], for the architecture [`model`]. [`interpret`] executes it
//! directly, and [`stf`] runs tests on it. The compiler is `p4_ebpf`. The crate performs no I/O.
#![forbid(unsafe_code)]

mod check;
pub mod interpret;
pub mod ir;
pub mod model;
pub mod stf;

pub use p4_syntax::{Includes, NoIncludes, diagnostic, source};

use p4_syntax::Parsed;
use p4_syntax::diagnostic::Diagnostics;
use p4_syntax::source::Sources;

/// A checked program and its diagnostics.
#[derive(Debug, Default)]
pub struct Checked {
    /// The source files.
    pub sources: Sources,
    /// The intermediate representation; incomplete if there are errors.
    pub program: ir::Program,
    /// Errors and warnings.
    pub diagnostics: Diagnostics,
}

/// Parses and checks a program. It is checked only if it has no syntax errors.
pub fn check(name: &str, text: &str, includes: &dyn Includes) -> Checked {
    let Parsed { sources, program, mut diagnostics } = p4_syntax::parse(name, text, includes);
    if diagnostics.has_errors() {
        return Checked { sources, program: ir::Program::default(), diagnostics };
    }
    let program = check::check(&program, &mut diagnostics);
    Checked { sources, program, diagnostics }
}
