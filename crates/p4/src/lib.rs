//! P4_16 (P4 language specification, version 1.2.5): what a tenant's program says.
//!
//! [`source`] holds files and places in them, [`diagnostic`] what is said of them. The preprocessor
//! makes tokens of files, [`syntax`] a program of tokens, and the checker a program whose names and
//! types are known, [`ir`]. [`interpret`] runs it as the language says, [`stf`] runs tests on it.
//! `flat` writes every call out, and [`ebpf`] makes code of that: an [`object`], whose tables are in
//! maps as [`layout`] says; [`cells`] are what counters and meters hold in them. No I/O: included files are handed in.
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

/// A program as it is written, and what is to be said of it.
#[derive(Debug, Default)]
pub struct Parsed {
    /// The files that it is made of.
    pub sources: Sources,
    /// What the grammar makes of it; what is wrong is left out.
    pub program: Program,
    /// What is wrong.
    pub diagnostics: Diagnostics,
}

/// Reads a program: the text of the file `name`, and what it includes.
pub fn parse(name: &str, text: &str, includes: &dyn Includes) -> Parsed {
    let mut parsed = Parsed::default();
    let (sources, diagnostics) = (&mut parsed.sources, &mut parsed.diagnostics);
    let tokens = preprocessor::preprocess(name, text, includes, sources, diagnostics);
    parsed.program = syntax::parse(&tokens, sources, diagnostics);
    parsed
}

/// A program whose names and types are known, and what is to be said of it.
#[derive(Debug, Default)]
pub struct Checked {
    /// The files that it is made of.
    pub sources: Sources,
    /// What it means; not whole if something is wrong.
    pub program: ir::Program,
    /// What is wrong, and what may be.
    pub diagnostics: Diagnostics,
}

/// Reads a program and finds out what it means. What the grammar finds wrong comes first: what means
/// nothing is looked for in whole programs only.
pub fn check(name: &str, text: &str, includes: &dyn Includes) -> Checked {
    let Parsed { sources, program, mut diagnostics } = parse(name, text, includes);
    if diagnostics.has_errors() {
        return Checked { sources, program: ir::Program::default(), diagnostics };
    }
    let program = check::check(&program, &mut diagnostics);
    Checked { sources, program, diagnostics }
}
