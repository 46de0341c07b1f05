//! The front end of P4_16 (P4 language specification, version 1.2.5): from files to a syntax tree.
//!
//! [`source`] holds source files and spans, [`diagnostic`] errors and warnings. The preprocessor
//! produces tokens, and the parser an abstract syntax tree, [`ast`]. The files of the core library
//! and of the architecture model are built in; the caller supplies other included files: the crate
//! performs no I/O.
#![forbid(unsafe_code)]

pub mod ast;
pub mod diagnostic;
mod lexer;
mod library;
pub mod number;
mod parser;
mod preprocessor;
pub mod source;
pub mod words;

pub use preprocessor::{Includes, NoIncludes};

use ast::Program;
use diagnostic::Diagnostics;
use source::Sources;

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
    parsed.program = parser::parse(&tokens, sources, diagnostics);
    parsed
}
