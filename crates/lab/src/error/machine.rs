//! Prerequisites that the machine lacks.

use std::path::PathBuf;

/// Prerequisites that the machine lacks.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The kernel has no netem.
    #[error(
        "link {link} needs netem, which this kernel lacks ({source}): it needs CONFIG_NET_SCH_NETEM; \
         write `engine: true`, and the emulator does the same"
    )]
    NoNetem {
        /// Link name.
        link: String,
        /// The kernel's error.
        source: netlink::Error,
    },
    /// The user is not root.
    #[error("a lab needs root: run this with sudo")]
    NotRoot,
    /// IPv6 is missing or disabled in the kernel.
    #[error("IPv6 is disabled on this machine ({0}): a lab needs it")]
    NoIpv6(&'static str),
    /// FRR is not installed.
    #[error("FRR is not installed ({0} is missing): run `apt-get install frr`, or `make deps`")]
    NoFrr(PathBuf),
    /// Open vSwitch is not installed.
    #[error(transparent)]
    NoSwitch(openvswitch::NotInstalled),
    /// FRR's routers need user namespaces, and the kernel creates none.
    #[error(
        "the kernel creates no user namespace, which FRR's routers need: {}",
        if *.built { "run `sysctl user.max_user_namespaces=10000`" } else { "it lacks CONFIG_USER_NS" }
    )]
    NoUserNamespaces {
        /// True if the kernel was built with user namespaces.
        built: bool,
    },
    /// Service functions have rules, but nft is missing.
    #[error(
        "nft, which loads the rules of service functions, does not run: `apt-get install nftables`"
    )]
    NoNft(#[source] std::io::Error),
}
