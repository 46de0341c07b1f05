//! Runs the commands of a page of the manual in one shell, as its reader does.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::kaido::{Kaido, Said};

/// Directory of the workspace, which a reader has as the clone.
const CLONE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Comment of a command that fails.
const FAILS: &str = "# no reply";

/// The console blocks of a part of a page. Lines that begin with `# ` are commands, continued by
/// indented ones; others are output.
#[derive(Debug)]
pub struct Page {
    commands: Vec<String>,
    waits: Vec<(String, String)>,
    replaced: Vec<(String, String)>,
}

impl Page {
    /// Reads the part of a page from the line `from` to the next heading of the same level.
    ///
    /// # Panics
    ///
    /// If there is no such line, or if the part has no commands.
    pub fn part(text: &str, from: &str) -> Self {
        let at = text.find(&format!("{from}\n")).unwrap_or_else(|| panic!("no line `{from}`"));
        let rest = &text[at + from.len()..];
        // A line `# …` is a command. The part of a page's heading ends with the next one.
        let level = from.bytes().take_while(|byte| *byte == b'#').count().max(2);
        let ends = (2..=level).filter_map(|level| rest.find(&format!("\n{} ", "#".repeat(level))));
        let end = ends.min().unwrap_or(rest.len());
        let mut commands: Vec<String> = Vec::new();
        for block in rest[..end].split("```").skip(1).step_by(2) {
            let Some(lines) = block.strip_prefix("console\n") else { continue };
            let mut is_command = false;
            for line in lines.lines() {
                if let Some(command) = line.strip_prefix("# ") {
                    commands.push(command.to_owned());
                    is_command = true;
                } else if is_command && (line.starts_with("  ") || line == "done") {
                    let last = commands.last_mut().expect("a command was pushed");
                    last.push('\n');
                    last.push_str(line);
                    is_command = line != "done";
                } else {
                    is_command = false;
                }
            }
        }
        assert!(!commands.is_empty(), "`{from}` has no commands");
        Self { commands, waits: Vec::new(), replaced: Vec::new() }
    }

    /// Replaces a text in all commands, such as a path of this machine.
    #[must_use]
    pub fn replace(mut self, text: &str, by: &Path) -> Self {
        let by = by.to_str().expect("it is UTF-8");
        self.replaced.push((text.to_owned(), by.to_owned()));
        self
    }

    /// Waits after the command that contains `text` until a shell's `condition` is true, for 30 s: a
    /// reader does not type as fast.
    #[must_use]
    pub fn wait_after(mut self, text: &str, condition: &str) -> Self {
        assert!(self.commands.iter().any(|one| one.contains(text)), "no command has `{text}`");
        self.waits.push((text.to_owned(), condition.to_owned()));
        self
    }

    /// Runs all commands in one shell in the clone, as root of the calling thread's namespace, with
    /// `kaido` in the search path. Returns the output.
    ///
    /// # Panics
    ///
    /// If a command fails, except those with the comment `no reply`, which have to.
    #[track_caller]
    pub fn run(&self, kaido: &Kaido) -> String {
        let program = kaido.program().parent().expect("it is in a directory");
        let mut path = OsString::from(program);
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut shell = Command::new("timeout");
        shell
            .args(["--kill-after=5", "120", "bash", "-c", &self.script(&kaido.run_directory())])
            .current_dir(CLONE);
        shell.env("PATH", path).env("KAIDO_RUN", kaido.run_directory());
        Said::run(&mut shell).ok()
    }

    fn script(&self, run_directory: &Path) -> String {
        // Jobs have numbers only with job control (-m).
        let mut script = "set -um\ntrap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n".to_owned();
        for command in &self.commands {
            let mut text = command.clone();
            for (from, to) in &self.replaced {
                text = text.replace(from, to);
            }
            text = text.replace("/run/kaido/", &format!("{}/", run_directory.display()));
            let quoted = text.replace('\'', "'\\''");
            // A job that is killed has that as its status.
            let is_so = match command {
                _ if command.contains(FAILS) => "[ $? != 0 ]",
                _ if command.contains("wait %") => "true",
                _ => "[ $? = 0 ]",
            };
            script += &format!("printf '# %s\\n' '{quoted}'\n{text}\n{is_so} || exit 1\n");
            for (_, condition) in self.waits.iter().filter(|(part, _)| command.contains(part)) {
                script += &format!(
                    "for i in $(seq 300); do {condition} && break; sleep 0.1; done\n{condition} || exit 1\n"
                );
            }
        }
        script
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_with_their_further_lines() {
        let text = "# A\n\n## One\n\n```console\n# a b \\\n      --c\noutput\n# for i in 1; do\n      d\n  \
                    done\nmore\n```\n\n```yaml\n# x: 1\n```\n\n## Two\n\n```console\n# other\n```\n";
        let page = Page::part(text, "## One");
        assert_eq!(page.commands, ["a b \\\n      --c", "for i in 1; do\n      d\n  done"]);
        assert_eq!(Page::part(text, "## Two").commands, ["other"]);
    }
}
