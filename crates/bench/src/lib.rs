//! Experiments on labs: the demo, and the benchmarks.
#![forbid(unsafe_code)]
