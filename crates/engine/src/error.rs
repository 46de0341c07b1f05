use nix::errno::Errno;

/// Why the engine does not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such interface in this namespace.
    #[error("there is no interface `{0}` here")]
    NoInterface(String),
    /// The kernel refused something for an interface.
    #[error("{interface}: cannot {doing}")]
    Interface {
        /// The interface.
        interface: String,
        /// What was refused.
        doing: &'static str,
        /// Why.
        #[source]
        source: Errno,
    },
    /// The kernel refused something else.
    #[error("cannot {doing}")]
    Refused {
        /// What was refused.
        doing: &'static str,
        /// Why.
        #[source]
        source: Errno,
    },
}
