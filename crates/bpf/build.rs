//! Compiles `bpf/*.bpf.c` and generates their skeletons into OUT_DIR.

use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

/// Names of the sources, without `.bpf.c`.
const PROGRAMS: [&str; 7] = ["exit", "measure", "meter", "proof", "sockets", "srv6", "trace"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Read at run time: the build directory may have been moved.
    let sources = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../../bpf");
    println!("cargo::rerun-if-changed={}", sources.display());
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let architecture = std::env::var("CARGO_CFG_TARGET_ARCH")?;
    let include = sources.join("include").display().to_string();
    // Debian keeps <asm/types.h> in a directory per architecture, which clang does not search for
    // the target bpf.
    let multiarch = format!("/usr/include/{architecture}-linux-gnu");
    for name in PROGRAMS {
        SkeletonBuilder::new()
            .source(sources.join(format!("{name}.bpf.c")))
            .clang_args(["-I", &include, "-I", &multiarch, "-mcpu=v3", "-Wall", "-Werror"])
            .build_and_generate(out.join(format!("{name}.skel.rs")))?;
    }
    Ok(())
}
