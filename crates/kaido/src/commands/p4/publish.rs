//! `kaido p4 publish`: publishes the state of a VM.

use std::process::ExitCode;

use publisher::{Begun, Error, Options};
use serde_json::json;

use crate::failure::{Done, Failure};
use crate::output::{Output, counted};

pub(super) fn run(options: &Options, output: &Output) -> Done {
    let mut printed = Ok(());
    let begun = |Begun { file, keys }: &Begun| {
        let said =
            json!({ "file": file.display().to_string(), "keys": keys, "every_ms": options.every });
        printed = output.print(&said, |_| {
            let (keys, file) = (counted(keys.len(), "key"), file.display());
            format!("{keys} in {file}, every {} ms; Ctrl-C ends it", options.every)
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
