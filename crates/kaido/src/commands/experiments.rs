//! `kaido demo` and `kaido bench`.

use crate::cli::{BenchOptions, DemoOptions};
use crate::failure::{Done, Failure};
use crate::output::Output;

pub(crate) fn demo(_options: DemoOptions, _output: &Output) -> Done {
    Err(Failure::failed(anyhow::anyhow!("not there yet")))
}

pub(crate) fn bench(_options: BenchOptions, _output: &Output) -> Done {
    Err(Failure::failed(anyhow::anyhow!("not there yet")))
}
