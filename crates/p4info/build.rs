//! Generates p4info's types from `proto/`, and keeps their description for its text form.

use prost::Message;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = format!("{}/../../proto", std::env::var("CARGO_MANIFEST_DIR")?);
    println!("cargo::rerun-if-changed={root}");
    let files = protox::compile(["p4/config/v1/p4info.proto"], [root.as_str()])?;
    let described = std::path::Path::new(&std::env::var("OUT_DIR")?).join("p4info.bin");
    std::fs::write(described, files.encode_to_vec())?;
    // A map in the order of its keys: the same bytes in every run.
    prost_build::Config::new().btree_map(["."]).compile_fds(files)?;
    Ok(())
}
