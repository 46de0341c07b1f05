//! Probes for the kernel settings and the rules that service functions need.

use std::collections::BTreeSet;

use crate::{firewall, rules};

/// A kernel setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The required value in the syntax of `sysctl`: `net.ipv4.ip_early_demux=0`.
    pub wanted: String,
    /// True if the setting has this value.
    pub ok: bool,
}

/// Returns the settings of the calling process's network namespace.
pub fn function_settings() -> Vec<Setting> {
    let settings = dataplane::xdp::function_settings().iter();
    let look = |(key, wanted): &(&str, &str)| Setting {
        wanted: format!("net.{}={wanted}", key.replace('/', ".")),
        ok: netlink::sysctl::read(key).is_ok_and(|is| is == *wanted),
    };
    settings.map(look).collect()
}

/// Returns warnings about the rules of the calling process's network namespace for service functions:
/// packets that match no rule pass, or rules do not do what they look like. `ports` are the data
/// plane's.
pub fn function_rules(ports: &BTreeSet<&str>) -> Vec<String> {
    let mut found: Vec<String> = firewall::warning().into_iter().collect();
    found.extend(rules::warnings(ports));
    found
}

/// Returns the interfaces of the calling process's network namespace on which the kernel drops
/// segment routing headers without an HMAC, and true if only `all` requires one, which has no
/// effect.
pub fn hmac() -> (Vec<String>, bool) {
    let links = netlink::Handle::new().and_then(|mut handle| handle.links()).unwrap_or_default();
    let required: Vec<String> =
        links.into_iter().filter(|link| link.requires_hmac).map(|link| link.name).collect();
    let all = netlink::sysctl::read("ipv6/conf/all/seg6_require_hmac");
    let all = all.is_ok_and(|value| value.parse::<i32>().is_ok_and(|value| value > 0));
    let alone = all && required.is_empty();
    (required, alone)
}
