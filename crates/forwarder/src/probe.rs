//! What a service function needs of this machine, found by looking.

/// A setting of the kernel's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// As `sysctl` takes it: `net.ipv4.ip_early_demux=0`.
    pub wanted: String,
    /// Whether it is so.
    pub ok: bool,
}

/// The settings of the calling process's network namespace.
pub fn function_settings() -> Vec<Setting> {
    let settings = dataplane::xdp::function_settings().iter();
    let look = |(key, wanted): &(&str, &str)| Setting {
        wanted: format!("net.{}={wanted}", key.replace('/', ".")),
        ok: netlink::sysctl::read(key).is_ok_and(|is| is == *wanted),
    };
    settings.map(look).collect()
}
