//! The real binary, with a private directory in place of `/run/kaido`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::packages::Packages;
use crate::schemas::{check_error, value_of};

/// The `kaido` command of one test. On drop, remaining labs are brought down.
#[derive(Debug)]
pub struct Kaido {
    program: PathBuf,
    /// Search path of the command, if it is not this process's.
    path: Option<OsString>,
    directory: TempDir,
}

/// Exit status and output of a command.
#[derive(Debug)]
pub struct Said {
    /// The command line.
    pub command: String,
    /// Exit code, or `None` if a signal ended the command.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Kaido {
    /// Creates the command for the program at `program`, which Cargo passes in
    /// `CARGO_BIN_EXE_kaido`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        // A Unix socket's path is limited to 108 bytes, so keep the directory's path short.
        let directory = tempfile::Builder::new().prefix("kd").tempdir_in("/tmp");
        let directory = directory.expect("/tmp takes a directory");
        let kaido = Self { program: program.into(), path: None, directory };
        std::fs::create_dir(kaido.run_directory()).expect("a new directory takes another");
        kaido
    }

    /// Adds Open vSwitch's packages to the command's search path.
    ///
    /// # Panics
    ///
    /// If the packages are missing.
    pub fn with_openvswitch(mut self) -> Self {
        let others = std::env::var_os("PATH").unwrap_or_default();
        let packages = [Packages::open("openvswitch").path("usr/bin")];
        let all = packages.into_iter().chain(std::env::split_paths(&others));
        self.path = Some(std::env::join_paths(all).expect("the directories have no colon"));
        self
    }

    /// Returns the directory in place of `/run/kaido`. It is not removed when empty, because the
    /// user chose it.
    pub fn run_directory(&self) -> PathBuf {
        self.directory.path().join("run")
    }

    /// Returns the path of the program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Returns a directory for the test's files.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file for the test and returns its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.directory.path().join(name);
        std::fs::write(&path, text).expect("/tmp takes a file");
        path.to_str().expect("the test's names are ASCII").into()
    }

    /// Returns the command without running it. It has no terminal.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).env("KAIDO_RUN", self.run_directory()).stdin(Stdio::null());
        command.envs(self.path.as_ref().map(|path| ("PATH", path)));
        command
    }

    /// Runs the command to completion.
    pub fn run(&self, arguments: &[&str]) -> Said {
        Said::run(&mut self.command(arguments))
    }

    /// Runs the command, which must succeed, and returns its standard output.
    pub fn ok(&self, arguments: &[&str]) -> String {
        self.run(arguments).ok()
    }

    /// Runs the command with `--json`, which must succeed, and returns its output as JSON. The
    /// output must fit the schema of the command.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let text = self.ok(&[&["--json"], arguments].concat());
        value_of(arguments, text.as_bytes())
    }

    /// Starts the command with piped output, to be killed or waited for.
    pub fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the binary runs")
    }

    /// Runs a shell script in a separate mount namespace, in which it may hide anything. `$K` is
    /// the binary.
    pub fn script(&self, script: &str) -> Said {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-euc", script]);
        command.env("KAIDO_RUN", self.run_directory()).env("K", &self.program).stdin(Stdio::null());
        Said::run(&mut command)
    }

    /// Returns the names of all labs.
    pub fn labs(&self) -> Vec<String> {
        let list = self.json(&["lab", "ls"]);
        let labs = list.as_array().expect("`ls` prints a list");
        labs.iter().map(|lab| lab["name"].as_str().expect("a lab has a name").into()).collect()
    }
}

impl Drop for Kaido {
    /// A failed test must not leave labs behind either. Never panics, because the thread may be
    /// unwinding.
    fn drop(&mut self) {
        let directories = std::fs::read_dir(self.run_directory().join("labs"));
        for directory in directories.into_iter().flatten().flatten() {
            if let Some(name) = directory.file_name().to_str() {
                let _ = self.command(&["lab", "down", name]).output();
            }
        }
        let _ = self.command(&["lab", "gc"]).output();
    }
}

impl Said {
    /// Runs a command to completion.
    pub fn run(command: &mut Command) -> Self {
        let output = command.output();
        let line = format!("{command:?}");
        Self::from_output(line, output.unwrap_or_else(|e| panic!("{command:?}: {e}")))
    }

    /// Converts the output of a command that was started.
    pub fn from_output(command: String, output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let Output { status, stdout, stderr } = output;
        Self { command, code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }

    /// Returns the standard output. The command must have succeeded.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self}");
        self.stdout
    }

    /// Asserts that the command ended with `code` and without a panic, and that its standard error
    /// contains all `words`.
    #[track_caller]
    pub fn failed(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self}");
        assert!(!self.stderr.contains("panicked"), "{self}");
        if let Some(error) = self.json_error() {
            check_error(&error);
        }
        for word in words {
            assert!(self.stderr.contains(word), "`{word}` is not said: {self}");
        }
    }
}

impl Said {
    /// Returns both outputs, without the command.
    pub(crate) fn output(&self) -> String {
        format!("{}{}", self.stdout, self.stderr).trim_end().to_owned()
    }

    /// Returns the error on standard error, if it is JSON.
    fn json_error(&self) -> Option<Value> {
        let line = self.stderr.lines().last().filter(|line| line.starts_with("{\"error\":"))?;
        serde_json::from_str(line).ok()
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { command, code, stdout, stderr } = self;
        write!(f, "{command} ended with {code:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}")
    }
}
