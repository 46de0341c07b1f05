/// Errors of the supervisor.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error of the lab.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// A netlink error.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// The emulator does not respond.
    #[error(transparent)]
    Connect(#[from] api::ConnectError),
    /// The emulator has ended.
    #[error("the emulator exited: the steps are repeated when it is restarted")]
    Ended,
    /// The emulator rejected a request.
    #[error("{}", .0.message())]
    Emulator(#[from] tonic::Status),
    /// The system rejected an operation.
    #[error("cannot {doing}")]
    Refused {
        /// The rejected operation.
        doing: &'static str,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    pub(crate) fn refused<E: Into<std::io::Error>>(doing: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::Refused { doing, source: source.into() }
    }

    /// Returns true for a transient error: another command holds the lab.
    pub(crate) fn passes(&self) -> bool {
        matches!(self, Self::Lab(lab::Error::Busy(_)))
    }
}
