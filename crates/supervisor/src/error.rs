/// Why a lab cannot be supervised, or an event not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something of the lab.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// Netlink.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// The emulator does not answer.
    #[error(transparent)]
    Connect(#[from] api::ConnectError),
    /// The emulator has ended.
    #[error("the emulator has ended: the next one is told")]
    Ended,
    /// The emulator refuses.
    #[error("{}", .0.message())]
    Emulator(#[from] tonic::Status),
    /// The system refuses something.
    #[error("cannot {doing}")]
    Refused {
        /// What was refused.
        doing: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    pub(crate) fn refused<E: Into<std::io::Error>>(doing: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::Refused { doing, source: source.into() }
    }

    /// Whether it is gone soon: another command works on the lab.
    pub(crate) fn passes(&self) -> bool {
        matches!(self, Self::Lab(lab::Error::Busy(_)))
    }
}
