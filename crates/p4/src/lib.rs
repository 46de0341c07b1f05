//! A compiler for P4_16 (P4 language specification, version 1.2.5), for tenants' programs.
//!
//! [`source`] holds source files and spans, [`diagnostic`] errors and warnings. The preprocessor
//! produces tokens, and [`syntax`] parses them to an abstract syntax tree. The checker resolves
//! names and types and produces the intermediate representation, [`ir`]. [`interpret`] executes it
//! directly, and [`stf`] runs tests on it. `flat` inlines all calls, and [`ebpf`] generates code
//! from the result: an [`object`] with the tables in maps, as [`layout`] defines; [`cells`] are the
//! contents of counters and meters in these maps. The crate performs no I/O: the caller supplies
//! included files.
#![forbid(unsafe_code)]

pub mod cells;
mod check;
pub mod diagnostic;
pub mod ebpf;
mod flat;
pub mod interpret;
pub mod ir;
pub mod layout;
mod lexer;
pub mod model;
pub mod number;
pub mod object;
mod preprocessor;
pub mod source;
pub mod stf;
pub mod syntax;
#[cfg(test)]
mod test_programs;
pub mod vm;
mod words;

pub use flat::NotCompiled;
pub use preprocessor::{Includes, NoIncludes};

use diagnostic::Diagnostics;
use source::Sources;
use syntax::ast::Program;

/// A parsed program and its diagnostics.
#[derive(Debug, Default)]
pub struct Parsed {
    /// The source files.
    pub sources: Sources,
    /// The syntax tree, without the parts that have errors.
    pub program: Program,
    /// Errors and warnings.
    pub diagnostics: Diagnostics,
}

/// Parses a program: the text of the file `name`, and the files that it includes.
pub fn parse(name: &str, text: &str, includes: &dyn Includes) -> Parsed {
    let mut parsed = Parsed::default();
    let (sources, diagnostics) = (&mut parsed.sources, &mut parsed.diagnostics);
    let tokens = preprocessor::preprocess(name, text, includes, sources, diagnostics);
    parsed.program = syntax::parse(&tokens, sources, diagnostics);
    parsed
}

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
    let Parsed { sources, program, mut diagnostics } = parse(name, text, includes);
    if diagnostics.has_errors() {
        return Checked { sources, program: ir::Program::default(), diagnostics };
    }
    let program = check::check(&program, &mut diagnostics);
    Checked { sources, program, diagnostics }
}
