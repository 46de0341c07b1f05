//! The table of endpoint behaviors in docs/dataplane.md, generated from `srv6::TABLE`.

use std::path::Path;

use anyhow::{Context, bail};

const PAGE: &str = "docs/dataplane.md";
const BEGIN: &str = "<!-- cargo xtask behaviors -->\n";
const END: &str = "<!-- end of the table -->\n";

pub(crate) fn run(root: &Path, check: bool) -> anyhow::Result<()> {
    let file = root.join(PAGE);
    let old = std::fs::read_to_string(&file).with_context(|| format!("cannot read {PAGE}"))?;
    let new = with_table(&old)?;
    if check && new != old {
        bail!("the table of behaviors in {PAGE} is out of date: run `cargo xtask behaviors`");
    }
    if !check {
        std::fs::write(&file, new).with_context(|| format!("cannot write {PAGE}"))?;
    }
    println!("the table of behaviors in {PAGE} is up to date");
    Ok(())
}

/// Returns the page with the table in place of the old one.
fn with_table(page: &str) -> anyhow::Result<String> {
    let marks = page.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    let Some((before, after)) = marks else {
        bail!("{PAGE} has no place for the table: add `{}` and `{}`", BEGIN.trim(), END.trim());
    };
    Ok(format!("{before}{BEGIN}\n{}\n{END}{after}", table()))
}

fn table() -> String {
    let mut text = "| behavior | defined in | arguments | flavors | in the kernel since |\n\
                    |---|---|---|---|---|\n"
        .to_owned();
    for info in &srv6::TABLE {
        let flavors: Vec<_> = info.flavors.iter().map(|flavor| flavor.name()).collect();
        let since = info.kernel.map(|kernel| format!("Linux {}", kernel.since));
        let cells = [
            format!("`{}`", info.name),
            info.reference.into(),
            info.arguments.into(),
            flavors.join(", "),
            since.unwrap_or_else(|| "only XDP".into()),
        ];
        let cells =
            cells.map(|cell| if cell.is_empty() { " |".into() } else { format!(" {cell} |") });
        text += &format!("|{}\n", cells.concat());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_replaces_the_old_one() {
        let page = format!("a\n{BEGIN}old\n{END}b\n");
        let new = with_table(&page).unwrap();
        assert!(new.starts_with("a\n") && new.ends_with("b\n") && !new.contains("old"), "{new}");
        assert!(new.contains("| `End` | RFC 8986 section 4.1 | |"), "{new}");
        assert_eq!(with_table(&new).unwrap(), new);
        assert!(with_table("a page without a place").is_err());
    }
}
