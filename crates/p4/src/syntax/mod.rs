//! The grammar: tokens to programs as they are written.

pub mod ast;
mod parser;

pub(crate) use parser::parse;
