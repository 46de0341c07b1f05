//! Generates the gRPC types and services from `proto/`, without a protoc on the machine.

use prost::Message;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // As it is now: a build folder may have come from another place.
    let root = format!("{}/../../proto", std::env::var("CARGO_MANIFEST_DIR")?);
    println!("cargo::rerun-if-changed={root}");
    let files = protox::compile(["kaido/v1/kaido.proto"], [root.as_str()])?;
    let described = std::path::Path::new(&std::env::var("OUT_DIR")?).join("kaido.bin");
    std::fs::write(described, files.encode_to_vec())?;
    tonic_prost_build::configure().compile_fds(files)?;
    Ok(())
}
