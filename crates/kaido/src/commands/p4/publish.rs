//! `kaido p4 publish`: publishes the state of a VM.

use std::process::ExitCode;

use output::p4::Publishing;
use publisher::{Begun, Error, Options};

use crate::failure::{Done, Failure};
use crate::output::{Output, counted};

pub(super) fn run(options: &Options, output: &Output) -> Done {
    let mut printed = Ok(());
    let begun = |Begun { file, keys }: &Begun| {
        let said = Publishing {
            file: file.display().to_string(),
            keys: keys.clone(),
            every_ms: options.every,
        };
        printed = output.print(&said, |Publishing { file, keys, every_ms }| {
            let keys = counted(keys.len(), "key");
            format!("{keys} in {file}, every {every_ms} ms; Ctrl-C ends it")
        });
    };
    let done = publisher::run(options, begun);
    printed?;
    match done {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(why @ (Error::NoDevice | Error::Devices(_) | Error::Name(_))) => {
            Err(Failure::usage(why))
        }
        Err(why) => Err(Failure::failed(why)),
    }
}
