//! Failures of commands and their exit codes: 2 for mistakes in the user's input, 1 for the rest.

use std::process::ExitCode;

use output::error::Details;

/// A command's error and its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    error: anyhow::Error,
    code: u8,
    /// Locations in the user's input, for scripts.
    details: Details,
}

/// The result of a command.
pub(crate) type Done = Result<ExitCode, Failure>;

impl Failure {
    /// Creates a failure for a mistake in the user's input.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self { error: error.into(), code: 2, details: Default::default() }
    }

    /// Creates a failure for valid input.
    pub(crate) fn failed(error: impl Into<anyhow::Error>) -> Self {
        Self { error: error.into(), code: 1, details: Default::default() }
    }

    /// Sets the locations of mistakes, for scripts.
    pub(crate) fn with_details(mut self, details: Details) -> Self {
        self.details = details;
        self
    }

    /// Creates a failure with the exit code that other programs use for it.
    pub(crate) fn with_code(error: impl Into<anyhow::Error>, code: u8) -> Self {
        Self { code, ..Self::failed(error) }
    }

    /// Locations in the user's input, for scripts.
    pub(crate) fn details(&self) -> &Details {
        &self.details
    }

    /// Exit code of the command.
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }

    /// Returns the text of the error, with its causes.
    pub(crate) fn text(&self) -> String {
        let mut text = self.error.to_string();
        for cause in self.error.chain().skip(1) {
            let cause = cause.to_string();
            // Some errors repeat their cause in their own words, and tonic's has none.
            if cause != "transport error" && !text.contains(&cause) {
                text.push_str(": ");
                text.push_str(&cause);
            }
        }
        let is_root = nix::unistd::geteuid().is_root();
        if !is_root && is_denied(&self.error) && !text.contains("sudo") {
            text.push_str(": this needs root: run it with sudo");
        }
        text
    }
}

/// Returns true if the user lacks a right: a file's, or one for a request to the kernel.
fn is_denied(error: &anyhow::Error) -> bool {
    let kind = |cause: &(dyn std::error::Error + 'static)| {
        let io = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        let errno = cause.downcast_ref::<nix::errno::Errno>();
        io.or_else(|| errno.map(|errno| std::io::Error::from(*errno).kind()))
    };
    error.chain().any(|cause| kind(cause) == Some(std::io::ErrorKind::PermissionDenied))
}

impl From<lab::Error> for Failure {
    fn from(error: lab::Error) -> Self {
        if error.is_usage() { Self::usage(error) } else { Self::failed(error) }
    }
}

impl From<verify::Error> for Failure {
    fn from(error: verify::Error) -> Self {
        if error.is_usage() { Self::usage(error) } else { Self::failed(error) }
    }
}

impl From<tonic::Status> for Failure {
    fn from(status: tonic::Status) -> Self {
        Self::of("the daemon", status)
    }
}

impl Failure {
    /// Converts the error of a lab's emulator, or of the connection to it.
    pub(crate) fn of_emulator(status: tonic::Status) -> Self {
        Self::of("the emulator", status)
    }

    fn of(peer: &str, status: tonic::Status) -> Self {
        use tonic::Code;
        let error = if std::error::Error::source(&status).is_some() {
            // The connection failed before an answer.
            let says = if is_late(&status) {
                "does not answer in time: it is stopped, or has too much to do"
            } else {
                "went away before it answered"
            };
            anyhow::anyhow!("{peer} {says}")
        } else {
            anyhow::anyhow!("{}", status.message())
        };
        match status.code() {
            Code::NotFound | Code::AlreadyExists | Code::InvalidArgument => Self::usage(error),
            _ => Self::failed(error),
        }
    }
}

/// Returns true if the error is a timeout rather than a lost connection.
fn is_late(status: &tonic::Status) -> bool {
    matches!(status.code(), tonic::Code::Cancelled | tonic::Code::DeadlineExceeded)
}

impl From<api::ConnectError> for Failure {
    fn from(error: api::ConnectError) -> Self {
        Self::failed(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_rights_are_recognized() {
        let denied = || std::io::Error::from_raw_os_error(nix::errno::Errno::EPERM as i32);
        assert!(is_denied(&anyhow::Error::new(denied()).context("cannot read the lab")));
        assert!(is_denied(&nix::errno::Errno::EACCES.into()));
        assert!(!is_denied(&nix::errno::Errno::ENOENT.into()));
    }

    #[test]
    fn an_emulator_that_goes_away_is_called_one() {
        let status = || tonic::Status::from_error("connection reset".into());
        let said = Failure::of_emulator(status()).text();
        assert_eq!(said, "the emulator went away before it answered");
        assert_eq!(Failure::from(status()).text(), "the daemon went away before it answered");
    }
}
