//! Generates the gRPC types and services from `proto/`. Needs no installed protoc.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Read at run time: a build directory may have been moved.
    let root = format!("{}/../../proto", std::env::var("CARGO_MANIFEST_DIR")?);
    println!("cargo::rerun-if-changed={root}");
    let files = protox::compile(["kaido/v1/kaido.proto"], [root.as_str()])?;
    tonic_prost_build::configure().compile_fds(files)?;
    Ok(())
}
