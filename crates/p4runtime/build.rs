//! Generates P4Runtime's types and service from `proto/`. p4info's types are `p4info`'s.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = format!("{}/../../proto", std::env::var("CARGO_MANIFEST_DIR")?);
    println!("cargo::rerun-if-changed={root}");
    let files = protox::compile(["p4/v1/p4runtime.proto"], [root.as_str()])?;
    tonic_prost_build::configure()
        .extern_path(".p4.config.v1", "::p4info::v1")
        .compile_fds(files)?;
    Ok(())
}
