//! Runs `nft`, with a timeout: it waits for other processes that change rules.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of bytes read of its output.
const MAX_OUTPUT: u64 = 16 << 20;

/// Runs `nft` in the calling thread's network namespace, and returns its output, or the reason for its
/// failure.
pub(crate) fn run(arguments: &[&str], input: &str) -> Result<String, String> {
    let mut nft = Command::new("nft");
    nft.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = nft.spawn().map_err(|why| format!("{why} (Debian: package nftables)"))?;
    // It may have exited; its status says why.
    let _ = child.stdin.take().map(|mut pipe| pipe.write_all(input.as_bytes()));
    let output = child.stdout.take().ok_or("no output")?;
    let (sender, answer) = channel();
    // The thread ends with the child, because it reads the child's output.
    let reader = std::thread::Builder::new().name("nft".into()).spawn(move || {
        let mut text = String::new();
        let read = output.take(MAX_OUTPUT).read_to_string(&mut text);
        let _ = sender.send(read.map(|_| text));
    });
    let read = reader.map_err(|why| why.to_string()).and_then(|_| {
        let late = |_| format!("no end within {} s", TIMEOUT.as_secs());
        answer.recv_timeout(TIMEOUT).map_err(late)?.map_err(|why| why.to_string())
    });
    if read.is_err() {
        // It may have exited meanwhile.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|why| why.to_string())?;
    let text = read?;
    if status.success() {
        return Ok(text);
    }
    let mut said = Vec::new();
    // A message is far below the size of a pipe.
    let _ = child.stderr.take().map(|pipe| pipe.take(4096).read_to_end(&mut said));
    let said = String::from_utf8_lossy(&said);
    Err(said.lines().next().map_or_else(|| status.to_string(), str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_named() {
        let said = run(&["-f", "-"], "table inet").unwrap_err();
        assert!(said.contains("syntax error"), "{said}");
    }
}
