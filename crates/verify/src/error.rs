//! Errors of tests.

/// A test cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The lab cannot be used.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// The kernel's tables cannot be read.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// A program cannot be started.
    #[error("cannot run {command}")]
    Command {
        /// Program name.
        command: String,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// A program that a test needs is missing.
    #[error("{program}, which a test needs, does not run: `apt-get install {package}`")]
    NoTool {
        /// Program name.
        program: &'static str,
        /// Package that provides it.
        package: &'static str,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    /// True if the user's input is wrong.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Lab(error) if error.is_usage())
    }
}
