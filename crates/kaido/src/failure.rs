//! How a command ends when it does not succeed: 2 for what the user wrote, 1 for the rest.

use std::process::ExitCode;

use crate::output::Output;

/// A command's error and its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    error: anyhow::Error,
    code: u8,
    /// What scripts get beside the text.
    details: serde_json::Map<String, serde_json::Value>,
}

/// What a command returns.
pub(crate) type Done = Result<ExitCode, Failure>;

impl Failure {
    /// The user's input is wrong.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self { error: error.into(), code: 2, details: Default::default() }
    }

    /// The input is right, and it did not work.
    pub(crate) fn failed(error: impl Into<anyhow::Error>) -> Self {
        Self { error: error.into(), code: 1, details: Default::default() }
    }

    /// The same, with members of a JSON object for scripts.
    pub(crate) fn with_details(mut self, details: serde_json::Value) -> Self {
        if let serde_json::Value::Object(details) = details {
            self.details.extend(details);
        }
        self
    }

    /// It did not work, and others have a code for how.
    pub(crate) fn with_code(error: impl Into<anyhow::Error>, code: u8) -> Self {
        Self { code, ..Self::failed(error) }
    }

    /// Says what went wrong, once, with its causes.
    pub(crate) fn report(&self, output: &Output) -> ExitCode {
        output.error(&self.text(), &self.details);
        ExitCode::from(self.code)
    }

    /// What went wrong, with its causes.
    pub(crate) fn text(&self) -> String {
        let mut text = self.error.to_string();
        for cause in self.error.chain().skip(1) {
            let cause = cause.to_string();
            // Some errors repeat their cause in their own words.
            if !text.contains(&cause) {
                text.push_str(": ");
                text.push_str(&cause);
            }
        }
        text
    }
}

impl From<lab::Error> for Failure {
    fn from(error: lab::Error) -> Self {
        if error.is_usage() { Self::usage(error) } else { Self::failed(error) }
    }
}

impl From<tonic::Status> for Failure {
    fn from(status: tonic::Status) -> Self {
        Self::of("the daemon", status)
    }
}

impl Failure {
    /// What a lab's emulator answers, or that it does not.
    pub(crate) fn of_emulator(status: tonic::Status) -> Self {
        Self::of("the emulator", status)
    }

    fn of(peer: &str, status: tonic::Status) -> Self {
        use tonic::Code;
        let error = if std::error::Error::source(&status).is_some() {
            // The connection's own error, not an answer.
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

/// Whether the time was over, and not the connection.
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
    fn an_emulator_that_goes_away_is_called_one() {
        let status = || tonic::Status::from_error("connection reset".into());
        let said = Failure::of_emulator(status()).text();
        assert_eq!(said, "the emulator went away before it answered");
        assert_eq!(Failure::from(status()).text(), "the daemon went away before it answered");
    }
}
