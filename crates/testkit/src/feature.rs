//! Features that kernels since 6.1 may lack. A test reports a missing feature and skips the part
//! that needs it.
//!
//! With `KAIDO_NO_SKIP`, as in the guest of `make test-guest`, a test may only skip features that
//! the kernel cannot have.

use std::fmt::Display;

/// A feature that not every kernel has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feature {
    name: &'static str,
    since: Since,
}

/// Availability of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    /// Kernels with this option, of any version.
    Option(&'static str),
    /// Kernels since this version.
    Version(u32, u32),
    /// No kernel yet.
    Never,
}

/// VRF devices, and End.DT4, End.DT46 and End.DT6 with `vrftable`, which depend on them.
pub const VRF: Feature = Feature { name: "VRF devices", since: Since::Option("CONFIG_NET_VRF") };
/// VLAN devices.
pub const VLAN: Feature =
    Feature { name: "802.1Q and 802.1ad devices", since: Since::Option("CONFIG_VLAN_8021Q") };
/// Bonds.
pub const BOND: Feature = Feature { name: "bonds", since: Since::Option("CONFIG_BONDING") };
/// The kernel's network emulator.
pub const NETEM: Feature = Feature { name: "netem", since: Since::Option("CONFIG_NET_SCH_NETEM") };
/// The PSP flavor of End, alone or with NEXT-C-SID.
pub const PSP: Feature = Feature { name: "End with PSP", since: Since::Version(6, 3) };
/// The NEXT-C-SID flavor of End.X.
pub const X_NEXT_CSID: Feature =
    Feature { name: "End.X with NEXT-C-SID", since: Since::Version(6, 6) };
/// Rules that match a DSCP.
pub const RULE_DSCP: Feature = Feature { name: "rules by DSCP", since: Since::Version(6, 13) };
/// End.X with an interface.
pub const X_INTERFACE: Feature =
    Feature { name: "End.X with an interface", since: Since::Version(6, 17) };
/// USP and USD of any behavior, PSP of behaviors other than End, and insertion of segments into
/// IPv4.
pub const NO_KERNEL: Feature = Feature { name: "this behavior", since: Since::Never };

impl Feature {
    /// Reports a missing feature on standard error. A test calls this when it skips something.
    /// `why` is the kernel's error.
    ///
    /// # Panics
    ///
    /// Panics if nothing may be skipped and this kernel should have the feature.
    #[track_caller]
    pub fn is_missing(self, why: impl Display) {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let strict = std::env::var_os("KAIDO_NO_SKIP").is_some();
        assert!(!strict || !self.is_in(&release), "{self}: Linux {} has it: {why}", release.trim());
        eprintln!("SKIPPED: {self}; {why}");
    }

    /// Returns true if a kernel of this release with all options has the feature.
    fn is_in(self, release: &str) -> bool {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        let mut number = || numbers.next().and_then(|number| number.parse().ok()).unwrap_or(0);
        let version: (u32, u32) = (number(), number());
        match self.since {
            Since::Option(_) => true,
            Since::Version(major, minor) => version >= (major, minor),
            Since::Never => false,
        }
    }
}

impl Display for Feature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.since {
            Since::Option(option) => {
                write!(f, "{} ({option}; `make test-guest` has it)", self.name)
            }
            Since::Version(major, minor) => write!(f, "{} (Linux {major}.{minor})", self.name),
            Since::Never => write!(f, "{} (no kernel yet)", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_all_earlier_features() {
        for (release, psp, csid) in
            [("6.1.0-56-cloud-amd64\n", false, false), ("6.3", true, false), ("7.0.1", true, true)]
        {
            assert_eq!((PSP.is_in(release), X_NEXT_CSID.is_in(release)), (psp, csid), "{release}");
            assert!(VRF.is_in(release) && !NO_KERNEL.is_in(release));
        }
        assert_eq!(PSP.to_string(), "End with PSP (Linux 6.3)");
    }
}
