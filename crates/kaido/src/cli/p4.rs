//! `kaido p4`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum P4Command {
    /// Say what is wrong with a program
    Check {
        #[command(flatten)]
        program: P4Program,
    },
    /// Run tests on a program: packets in, packets out (STF, p4c's format)
    Test {
        #[command(flatten)]
        program: P4Program,
        /// The tests
        #[arg(required = true, value_name = "TEST")]
        tests: Vec<PathBuf>,
    },
    /// Print what a control plane knows of a program (P4Runtime's p4info)
    Info {
        #[command(flatten)]
        program: P4Program,
        /// Write protobuf's bytes, in place of its text
        #[arg(long, conflicts_with = "json")]
        binary: bool,
    },
    /// Show what an object is made of: maps, functions, instructions
    ///
    /// An object is a compiled program: eBPF in an ELF file, as p4c's uBPF back end and clang make it.
    Explain {
        /// The object
        #[arg(value_name = "OBJECT")]
        object: PathBuf,
    },
}

/// A tenant's program.
#[derive(Debug, Args)]
pub(crate) struct P4Program {
    /// The program (P4_16)
    #[arg(value_name = "PROGRAM")]
    pub(crate) file: PathBuf,
    /// Look for included files there as well
    #[arg(short = 'I', long = "include", value_name = "FOLDER")]
    pub(crate) include: Vec<PathBuf>,
    /// Define a macro, as 1 if it has no value
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]", value_parser = define)]
    pub(crate) defines: Vec<(String, String)>,
}

/// A macro and what stands for it.
fn define(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty()
        || !name.chars().all(is_word)
        || name.starts_with(|c: char| c.is_ascii_digit())
    {
        return Err(format!("`{name}` is no name of a macro"));
    }
    if value.contains(['\n', '\r']) {
        return Err("a macro's value is one line".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}
