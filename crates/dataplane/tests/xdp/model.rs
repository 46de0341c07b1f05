//! Models of behaviors in Python, written from the RFC's pseudocode (`tests/models`): oracles for those
//! that the kernel does not have.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A model, in a process of its own.
pub(crate) struct Model {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Model {
    /// Starts the model in a file.
    pub(crate) fn start(python: &str, file: &str) -> Self {
        let mut command = Command::new(python);
        let path = format!("{}/tests/models/{file}", env!("CARGO_MANIFEST_DIR"));
        command.arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|why| panic!("{python}: {why}"));
        let questions = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, questions, answers }
    }

    /// Returns the packet that leaves for a question, in hexadecimal digits, or the other verdict.
    pub(crate) fn ask(&mut self, question: &str) -> Result<String, String> {
        writeln!(self.questions, "{question}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        match answer.trim().split_once(' ') {
            Some(("forward", packet)) => Ok(packet.to_owned()),
            _ => Err(answer.trim().to_owned()),
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the number of packets for a test: KAIDO_PACKETS, or the given one.
pub(crate) fn packets(otherwise: u64) -> u64 {
    let given = std::env::var("KAIDO_PACKETS").ok();
    given.map_or(otherwise, |given| given.parse().expect("it is a number"))
}
