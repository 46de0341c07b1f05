//! Runs a program to completion or until a timeout.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::pause::pause;
use crate::{Cancel, Error};

/// Creates an in-memory file: it needs no disk space, and unlike a pipe no reader.
fn in_memory(text: &str) -> io::Result<File> {
    let mut file = File::from(memfd_create(c"text", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

/// Standard input for a program, holding `text`.
pub(crate) fn input(text: &str) -> io::Result<Stdio> {
    in_memory(text).map(Stdio::from)
}

/// Output after which a program is ended, in bytes: its peer may be compromised.
const MAX_LEN: u64 = 16 << 20;

/// Runs a program to completion, or kills it after `limit`. Returns its exit status, if it exited
/// by itself, and its output.
pub(crate) fn run(
    command: &mut Command,
    limit: Duration,
    cancel: &Cancel,
) -> Result<(Option<ExitStatus>, String), Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |source| Error::Command { command: program.clone(), source };
    // A pipe would stay open for as long as the daemon runs, and a regular file needs disk space.
    let mut said = in_memory("").map_err(failed)?;
    let (output, errors) = (said.try_clone().map_err(failed)?, said.try_clone().map_err(failed)?);
    command.stdout(output).stderr(errors);
    let mut child = command.spawn().map_err(failed)?;
    let started = Instant::now();
    let ended = loop {
        let ended = child.try_wait().map_err(failed)?;
        if ended.is_some() {
            break ended;
        }
        let is_long = || said.metadata().is_ok_and(|said| said.len() > MAX_LEN);
        if started.elapsed() > limit || cancel.check().is_err() || is_long() {
            // It may have exited by itself in the meantime.
            let _ = child.kill();
            child.wait().map_err(failed)?;
            break None;
        }
        pause(Duration::from_millis(2));
    };
    cancel.check()?;
    let mut text = Vec::new();
    said.rewind().and_then(|()| said.take(MAX_LEN).read_to_end(&mut text)).map_err(failed)?;
    Ok((ended, String::from_utf8_lossy(&text).trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_hangs_is_ended() {
        let shell = |script: &str, limit: u64| {
            let mut shell = Command::new("sh");
            shell.args(["-c", script]).stdin(input("what is read").unwrap());
            run(&mut shell, Duration::from_millis(limit), &Cancel::default()).unwrap()
        };
        let started = Instant::now();
        assert_eq!(shell("echo hangs; exec sleep 60", 300), (None, "hangs".into()));
        assert!(started.elapsed() < Duration::from_secs(30));
        let (ended, said) = shell("echo one; echo two >&2; exit 3", 20_000);
        assert_eq!((ended.unwrap().code(), said.as_str()), (Some(3), "one\ntwo"));
        assert_eq!(shell("exec cat /dev/zero", 20_000).0, None);
        // A process that it leaves running is not waited for.
        assert_eq!(shell("sleep 3 & echo done", 2000).1, "done");
        assert_eq!(shell("cat", 20_000).1, "what is read");
    }
}
