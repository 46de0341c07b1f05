//! Generates P4Runtime's types and service from `proto/`. p4info's types are `p4info`'s. Their
//! description is kept: it says what messages become once they are decoded.

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
