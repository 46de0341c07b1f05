//! Generates the gRPC types and services from `proto/`. Needs no installed protoc.

use prost::Message;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Read at run time: a build directory may have been moved.
    let root = format!("{}/../../proto", std::env::var("CARGO_MANIFEST_DIR")?);
    println!("cargo::rerun-if-changed={root}");
    let files = protox::compile(["kaido/v1/kaido.proto"], [root.as_str()])?;
    let described = std::path::Path::new(&std::env::var("OUT_DIR")?).join("kaido.bin");
    std::fs::write(described, files.encode_to_vec())?;
    tonic_prost_build::configure().compile_fds(files)?;
    Ok(())
}
