//! The real binary, with a folder of its own in place of `/run/kaido`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::lab::Lab;

/// The `kaido` command of one test. Labs that are still there at its end are taken down.
#[derive(Debug)]
pub struct Kaido {
    program: PathBuf,
    folder: TempDir,
}

/// How a command ended and what it said.
#[derive(Debug)]
pub struct Said {
    /// What was run.
    pub command: String,
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Kaido {
    /// The program at `program`, which Cargo names in `CARGO_BIN_EXE_kaido`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        // A Unix socket's path has 108 bytes: the folder's is kept short.
        let folder = tempfile::Builder::new().prefix("kd").tempdir_in("/tmp");
        let kaido = Self { program: program.into(), folder: folder.expect("/tmp takes a folder") };
        std::fs::create_dir(kaido.run_folder()).expect("a new folder takes another");
        kaido
    }

    /// What stands for `/run/kaido`. Named by its user, it stays when it is empty.
    pub fn run_folder(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    /// A folder for the test's files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file for the test; returns its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).expect("/tmp takes a file");
        path.to_str().expect("the test's names are ASCII").into()
    }

    /// The command, not yet run. It has no terminal.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).env("KAIDO_RUN", self.run_folder()).stdin(Stdio::null());
        command
    }

    /// Runs the command to its end.
    pub fn run(&self, arguments: &[&str]) -> Said {
        Said::of(&mut self.command(arguments))
    }

    /// Runs the command, which must succeed; returns its standard output.
    pub fn ok(&self, arguments: &[&str]) -> String {
        self.run(arguments).ok()
    }

    /// Runs the command with `--json`; it must succeed, and its output must be JSON.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let text = self.ok(&[&["--json"], arguments].concat());
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{arguments:?}: {e}: {text}"))
    }

    /// Starts the command with its output kept, to be killed or waited for.
    pub fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the binary runs")
    }

    /// Runs a shell script in a mount namespace of its own, where it may hide what it likes; `$K`
    /// is the binary.
    pub fn script(&self, script: &str) -> Said {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-euc", script]);
        command.env("KAIDO_RUN", self.run_folder()).env("K", &self.program).stdin(Stdio::null());
        Said::of(&mut command)
    }

    /// Brings a lab up from a topology's text.
    pub fn lab_up(&self, yaml: &str) -> Lab<'_> {
        let file = self.file("lab.yaml", yaml);
        self.lab_up_file(&file, &[])
    }

    /// Brings a lab up from a topology file, with more arguments.
    pub fn lab_up_file(&self, file: &str, arguments: &[&str]) -> Lab<'_> {
        let up = self.json(&[&["lab", "up", file], arguments].concat());
        let name = up["lab"].as_str().expect("`up` names its lab");
        Lab::new(self, name)
    }

    /// The names of the labs that there are.
    pub fn labs(&self) -> Vec<String> {
        let list = self.json(&["lab", "ls"]);
        let labs = list.as_array().expect("`ls` prints a list");
        labs.iter().map(|lab| lab["name"].as_str().expect("a lab has a name").into()).collect()
    }
}

impl Drop for Kaido {
    /// A failed test leaves no lab either; nothing here panics, since it may be unwinding.
    fn drop(&mut self) {
        let folders = std::fs::read_dir(self.run_folder().join("labs"));
        for folder in folders.into_iter().flatten().flatten() {
            if let Some(name) = folder.file_name().to_str() {
                let _ = self.command(&["lab", "down", name]).output();
            }
        }
        let _ = self.command(&["lab", "gc"]).output();
    }
}

impl Said {
    /// Runs a command to its end.
    pub fn of(command: &mut Command) -> Self {
        let output = command.output();
        let line = format!("{command:?}");
        Self::from_output(line, output.unwrap_or_else(|e| panic!("{command:?}: {e}")))
    }

    /// What a command that was started has said.
    pub fn from_output(command: String, output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let Output { status, stdout, stderr } = output;
        Self { command, code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }

    /// The standard output of a command that must have succeeded.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self}");
        self.stdout
    }

    /// Asserts that the command ended with `code`, without a panic, and said all of `words` on its
    /// standard error.
    #[track_caller]
    pub fn failed(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self}");
        assert!(!self.stderr.contains("panicked"), "{self}");
        for word in words {
            assert!(self.stderr.contains(word), "`{word}` is not said: {self}");
        }
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { command, code, stdout, stderr } = self;
        write!(f, "{command} ended with {code:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}")
    }
}
