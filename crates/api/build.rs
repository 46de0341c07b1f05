//! Generates the gRPC types and services from `proto/`, without a protoc on the machine.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto");
    println!("cargo::rerun-if-changed={root}");
    let files = protox::compile(["kaido/v1/kaido.proto"], [root])?;
    tonic_prost_build::configure().compile_fds(files)?;
    Ok(())
}
