//! `kaido-publish`: `kaido p4 publish` as a separate program, for VMs.
#![forbid(unsafe_code)]

use std::error::Error as _;
use std::process::ExitCode;

use clap::Parser;
use publisher::Options;

/// Publish data about this machine to its tenant's P4 programs on the host.
#[derive(Debug, Parser)]
#[command(name = "kaido-publish", version, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    options: Options,
}

fn main() -> ExitCode {
    let Cli { options } = Cli::parse();
    let begun = |begun: &publisher::Begun| {
        let (keys, file) = (begun.keys.len(), begun.file.display());
        println!("{keys} keys in {file}, every {} ms; Ctrl-C ends it", options.every);
    };
    match publisher::run(&options, begun) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let mut text = why.to_string();
            let mut cause = why.source();
            while let Some(one) = cause {
                text.push_str(&format!(": {one}"));
                cause = one.source();
            }
            eprintln!("kaido-publish: {text}");
            ExitCode::FAILURE
        }
    }
}
