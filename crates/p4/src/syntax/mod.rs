//! The parser: from tokens to the abstract syntax tree.

pub mod ast;
mod parser;

pub(crate) use parser::parse;
