//! Generates P4Runtime's types and service from `proto/`; the types of p4info come from crate
//! `p4info`. Keeps the descriptor set, from which the sizes of decoded messages are computed.

use prost::Message;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = format!("{}/../../proto", std::env::var("CARGO_MANIFEST_DIR")?);
    println!("cargo::rerun-if-changed={root}");
    let files = protox::compile(["p4/v1/p4runtime.proto"], [root.as_str()])?;
    let described = std::path::Path::new(&std::env::var("OUT_DIR")?).join("p4runtime.bin");
    std::fs::write(described, files.encode_to_vec())?;
    tonic_prost_build::configure()
        .extern_path(".p4.config.v1", "::p4info::v1")
        .compile_fds(files)?;
    Ok(())
}
