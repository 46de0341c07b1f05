//! Progress of commands that bring labs up.

use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use lab::Stage;

use crate::failure::Failure;
use crate::output::Output;

/// Returns the path of this program, which also runs the lab's daemons.
pub(crate) fn program() -> Result<std::path::PathBuf, Failure> {
    std::env::current_exe().context("cannot find this program's own file").map_err(Failure::failed)
}

/// Returns a callback that shows the progress of bringing up a lab.
pub(super) fn shows(bar: &ProgressBar) -> impl FnMut(Stage, usize, usize) {
    move |stage, done, total| {
        bar.set_message(stage.words());
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    }
}

pub(crate) fn progress_bar(output: &Output) -> ProgressBar {
    if !output.is_watched() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{elapsed:>4} {bar:30} {pos}/{len} {msg}")
        .expect("the template is well-formed");
    let bar = ProgressBar::new(0).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
