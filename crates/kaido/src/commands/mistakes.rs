//! Failure of a command for the mistakes in a file.

use anyhow::anyhow;
use document::Problems;
use output::error::Details;

use crate::failure::Failure;
use crate::output::Output;

/// Reports the mistakes in a file.
pub(super) fn mistakes(problems: &Problems, output: &Output) -> Failure {
    let name = &problems.file;
    let details = Details {
        file: Some(name.clone()),
        problems: Some(problems.problems.clone()),
        ..Details::default()
    };
    let text = if output.is_json() {
        anyhow!("{name} has errors")
    } else {
        anyhow!("{name} has errors\n{problems}")
    };
    Failure::usage(text).with_details(details)
}
