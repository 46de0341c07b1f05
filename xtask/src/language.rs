//! `docs/p4-language.md`: supported features of P4_16, generated from the programs that test them.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, ensure};

const PROGRAMS: &str = "crates/p4/tests/programs";
const PAGE: &str = "docs/p4-language.md";

/// Writes the page, or fails if it is out of date.
pub(crate) fn run(root: &Path, check: bool) -> anyhow::Result<()> {
    let page = page(root)?;
    let path = root.join(PAGE);
    if check {
        let found = std::fs::read_to_string(&path).with_context(|| PAGE.to_owned())?;
        ensure!(found == page, "{PAGE} is out of date: run `cargo xtask language`");
        return Ok(());
    }
    std::fs::write(&path, page).with_context(|| format!("cannot write {PAGE}"))
}

fn page(root: &Path) -> anyhow::Result<String> {
    let mut names = Vec::new();
    for file in std::fs::read_dir(root.join(PROGRAMS)).context(PROGRAMS)? {
        let path = file?.path();
        // A program without a test proves nothing.
        if path.extension().is_some_and(|extension| extension == "stf") {
            names.push(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
        }
    }
    names.sort();
    let mut page = String::from(
        "# What of P4_16 is there\n\n\
         Each line is a program with a test that is run with every change (`make test`), against the\n\
         language specification 1.2.5 and the models `ubpf_model.p4`, `kaido.p4` and `vm.p4`. What is not\n\
         there is refused by name, with its place. Written by `cargo xtask language`.\n\n\
         | program | shows |\n|---|---|\n",
    );
    for name in names {
        let file = format!("{PROGRAMS}/{name}.p4");
        let text = std::fs::read_to_string(root.join(&file)).with_context(|| file.clone())?;
        let comment = text.lines().map_while(|line| line.strip_prefix("// "));
        let shown = comment.collect::<Vec<_>>().join(" ").replace('|', "\\|").replace('<', "\\<");
        ensure!(!shown.is_empty(), "{file}: the first line does not say what the program shows");
        writeln!(page, "| [{name}](../{file}) | {shown} |")?;
    }
    Ok(page)
}
