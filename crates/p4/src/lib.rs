//! P4_16 (P4 language specification, version 1.2.5): what a tenant's program says.
//!
//! [`source`] holds files and places in them, [`diagnostic`] what is said of them. The preprocessor
//! makes tokens of files, [`syntax`] a program of tokens. No I/O: included files are handed in.
#![forbid(unsafe_code)]

pub mod diagnostic;
mod lexer;
mod model;
pub mod number;
mod preprocessor;
pub mod source;
pub mod syntax;

pub use preprocessor::Includes;

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
    parsed.program = syntax::parse(&tokens, diagnostics);
    parsed
}
