//! Failures of commands and their exit codes: 2 for mistakes in the user's input, 1 for the rest.

use std::process::ExitCode;

use nix::errno::Errno;
use output::error::Details;

/// A command's error and its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    error: anyhow::Error,
    code: u8,
    /// Locations in the user's input, for scripts.
    details: Details,
    /// True if the command uses files or sockets that only root may access.
    needs_root: bool,
}

/// The result of a command.
pub(crate) type Done = Result<ExitCode, Failure>;

impl Failure {
    /// Creates a failure for a mistake in the user's input.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self { error: error.into(), code: 2, details: Default::default(), needs_root: false }
    }

    /// Creates a failure for valid input.
    pub(crate) fn failed(error: impl Into<anyhow::Error>) -> Self {
        Self { error: error.into(), code: 1, details: Default::default(), needs_root: false }
    }

    /// Sets the locations of mistakes, for scripts.
    pub(crate) fn with_details(mut self, details: Details) -> Self {
        self.details = details;
        self
    }

    /// Creates a failure of a command that uses files or sockets that only root may access.
    pub(crate) fn of_private(error: impl Into<anyhow::Error>) -> Self {
        Self::failed(error).of_root()
    }

    /// Marks a failure of a command that uses files or sockets that only root may access.
    fn of_root(self) -> Self {
        Self { needs_root: true, ..self }
    }

    /// Creates a failure with the exit code that other programs use for it.
    pub(crate) fn with_code(error: impl Into<anyhow::Error>, code: u8) -> Self {
        Self { code, ..Self::failed(error) }
    }

    /// Joins failures of independent parts of a command, each in a line.
    pub(crate) fn all(failures: Vec<Self>) -> Self {
        let text = failures.iter().map(Self::text).collect::<Vec<_>>().join("\n");
        let is_usage = failures.iter().any(|failure| failure.code == 2);
        let diagnostics = failures.into_iter().filter_map(|failure| failure.details.diagnostics);
        let diagnostics = diagnostics.flatten().collect::<Vec<_>>();
        let diagnostics = Some(diagnostics).filter(|all| !all.is_empty());
        let error = anyhow::anyhow!(text);
        let joined = if is_usage { Self::usage(error) } else { Self::failed(error) };
        joined.with_details(Details { diagnostics, ..Details::default() })
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
        self.text_for(nix::unistd::geteuid().is_root())
    }

    fn text_for(&self, is_root: bool) -> String {
        let mut text = self.error.to_string();
        for cause in self.error.chain().skip(1).filter(|cause| !is_wrapper(*cause)) {
            let cause = cause.to_string();
            // Some errors repeat their cause in their own words.
            if !text.contains(&cause) {
                text.push_str(": ");
                text.push_str(&cause);
            }
        }
        let is_denied = has_errno(&self.error, Errno::EPERM)
            || self.needs_root && has_errno(&self.error, Errno::EACCES);
        if !is_root && is_denied && !text.contains("sudo") {
            text.push_str(": Kaido needs root for this: use sudo");
        }
        text
    }
}

/// Returns true for tonic's errors that add nothing to their cause: those of the transport, and a
/// status made of one.
fn is_wrapper(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.source().is_some()
        && (cause.is::<tonic::transport::Error>() || cause.is::<tonic::Status>())
}

/// Returns true if a cause is this error of the kernel: EPERM for a request that needs a privilege,
/// EACCES for a file. Kaido's own errors of the same kind, such as an unsafe directory, have no
/// number.
fn has_errno(error: &anyhow::Error, wanted: Errno) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>();
        io.is_some_and(|io| io.raw_os_error() == Some(wanted as i32))
            || cause.downcast_ref::<Errno>() == Some(&wanted)
    })
}

impl From<lab::Error> for Failure {
    fn from(error: lab::Error) -> Self {
        if error.is_usage() { Self::usage(error) } else { Self::failed(error) }.of_root()
    }
}

impl From<verify::Error> for Failure {
    fn from(error: verify::Error) -> Self {
        if error.is_usage() { Self::usage(error) } else { Self::failed(error) }.of_root()
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
                "does not respond in time: it is stopped or overloaded"
            } else {
                "closed the connection before it responded"
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
        Self::failed(error).of_root()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_for_lack_of_privileges_name_root() {
        use std::io;
        const HINT: &str = ": Kaido needs root for this: use sudo";
        let failure = |error: io::Error| {
            Failure::failed(anyhow::Error::new(error).context("cannot create the link"))
        };
        let of = |errno: Errno| failure(io::Error::from(errno));
        let text = of(Errno::EPERM).text_for(false);
        assert!(text.starts_with("cannot create the link: ") && text.ends_with(HINT), "{text}");
        assert!(!of(Errno::EPERM).text_for(true).contains("sudo"), "root has all privileges");
        assert!(Failure::failed(Errno::EPERM).text_for(false).ends_with(HINT));
        // The file is the user's choice, unless it is one of Kaido's own.
        assert!(!of(Errno::EACCES).text_for(false).contains("sudo"));
        assert!(of(Errno::EACCES).of_root().text_for(false).ends_with(HINT));
        // The messages of unsafe directories and peers have their own advice.
        let own = || failure(io::Error::new(io::ErrorKind::PermissionDenied, "is not safe"));
        assert!(!own().of_root().text_for(false).contains("sudo"));
        assert!(!of(Errno::ENOENT).of_root().text_for(false).contains("sudo"));
    }

    #[test]
    fn the_causes_of_a_status_are_named_without_it() {
        let reset = std::io::Error::other("connection reset");
        let status = tonic::Status::from_error(Box::new(reset));
        let error = anyhow::Error::new(status).context("the connection has ended");
        assert_eq!(Failure::failed(error).text(), "the connection has ended: connection reset");
    }

    #[test]
    fn an_emulator_that_goes_away_is_called_one() {
        let status = || tonic::Status::from_error("connection reset".into());
        let said = Failure::of_emulator(status()).text();
        assert_eq!(said, "the emulator closed the connection before it responded");
        assert_eq!(
            Failure::from(status()).text(),
            "the daemon closed the connection before it responded"
        );
    }
}
