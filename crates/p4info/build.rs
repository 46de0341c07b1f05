//! Generates the types of P4Info from `proto/`, and keeps the descriptor for the text format.

use prost::Message;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = format!("{}/../../proto", std::env::var("CARGO_MANIFEST_DIR")?);
    println!("cargo::rerun-if-changed={root}");
    let files = protox::compile(["p4/config/v1/p4info.proto"], [root.as_str()])?;
    let described = std::path::Path::new(&std::env::var("OUT_DIR")?).join("p4info.bin");
    std::fs::write(described, files.encode_to_vec())?;
    // A map ordered by key: every run produces the same bytes.
    prost_build::Config::new().btree_map(["."]).compile_fds(files)?;
    Ok(())
}
