//! Features of an interface by their names (`ethtool -k`), for those that have no command of their own.

use nix::errno::Errno;

use super::{Call, call};

// linux/ethtool.h
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETH_SS_FEATURES: u32 = 4;
const ETH_GSTRING_LEN: usize = 32;

/// Words of 32 features in a call. Linux 6.18 has 60 features.
const WORDS: usize = 4;
const MAX_FEATURES: usize = 32 * WORDS;

/// struct ethtool_sset_info, with one count
#[repr(C)]
struct Sets {
    command: u32,
    reserved: u32,
    /// Bits of the sets; the kernel clears those that it does not have.
    mask: u64,
    count: u32,
}

/// struct ethtool_gstrings
#[repr(C)]
struct Strings {
    command: u32,
    set: u32,
    count: u32,
    names: [[u8; ETH_GSTRING_LEN]; MAX_FEATURES],
}

/// struct ethtool_gfeatures
#[repr(C)]
struct Get {
    command: u32,
    size: u32,
    words: [GetWord; WORDS],
}

/// struct ethtool_get_features_block
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct GetWord {
    available: u32,
    requested: u32,
    active: u32,
    never_changed: u32,
}

/// struct ethtool_sfeatures
#[repr(C)]
struct Set {
    command: u32,
    size: u32,
    words: [SetWord; WORDS],
}

/// struct ethtool_set_features_block
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct SetWord {
    valid: u32,
    requested: u32,
}

// SAFETY: the kernel writes one count for each bit in `mask`, of which there is one.
unsafe impl Call for Sets {}
// SAFETY: the kernel writes all names. `position` has checked that they fit.
unsafe impl Call for Strings {}
// SAFETY: `size` is at most `WORDS`.
unsafe impl Call for Get {}
// SAFETY: as above.
unsafe impl Call for Set {}

/// Position of a feature in the kernel's list, and the number of 32-bit words of that list; `None` if the kernel does not
/// have the feature.
fn position(interface: &str, name: &str) -> Result<Option<(usize, u32)>, Errno> {
    let mut sets =
        Sets { command: ETHTOOL_GSSET_INFO, reserved: 0, mask: 1 << ETH_SS_FEATURES, count: 0 };
    call(interface, &mut sets)?;
    // ETHTOOL_GSTRINGS writes all names, whatever the size of the buffer.
    let count = usize::try_from(sets.count).unwrap_or(usize::MAX);
    if sets.mask == 0 || count > MAX_FEATURES {
        return Err(Errno::EOPNOTSUPP);
    }
    let mut strings = Box::new(Strings {
        command: ETHTOOL_GSTRINGS,
        set: ETH_SS_FEATURES,
        count: sets.count,
        names: [[0; ETH_GSTRING_LEN]; MAX_FEATURES],
    });
    call(interface, &mut *strings)?;
    let is_it = |bytes: &[u8; ETH_GSTRING_LEN]| {
        bytes.split(|byte| *byte == 0).next() == Some(name.as_bytes())
    };
    let words = sets.count.div_ceil(32);
    Ok(strings.names[..count].iter().position(is_it).map(|at| (at, words)))
}

/// Returns true if an interface has a feature, and it is on.
pub(super) fn is_on(interface: &str, name: &str) -> Result<bool, Errno> {
    let Some((at, size)) = position(interface, name)? else { return Ok(false) };
    let mut get = Get { command: ETHTOOL_GFEATURES, size, words: [GetWord::default(); WORDS] };
    call(interface, &mut get)?;
    Ok(get.words[at / 32].active & (1 << (at % 32)) != 0)
}

/// Turns a feature on or off. The kernel reports success if the driver cannot: [`is_on`] shows the
/// result.
pub(super) fn set(interface: &str, name: &str, on: bool) -> Result<(), Errno> {
    let (at, size) = position(interface, name)?.ok_or(Errno::EOPNOTSUPP)?;
    let mut set = Set { command: ETHTOOL_SFEATURES, size, words: [SetWord::default(); WORDS] };
    let bit = 1 << (at % 32);
    set.words[at / 32] = SetWord { valid: bit, requested: if on { bit } else { 0 } };
    call(interface, &mut set)
}
