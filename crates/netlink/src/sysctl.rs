//! Kernel parameters of the calling thread's network namespace.

use std::fs;
use std::path::{Component, Path};

use crate::{Error, Result};

const ROOT: &str = "/proc/sys/net";

/// Writes `value` to the parameter `path` below /proc/sys/net, such as
/// `ipv6/conf/all/forwarding`.
pub fn write(path: &str, value: &str) -> Result<()> {
    let operation = || format!("set net/{path} to {value}");
    fs::write(file(path, operation)?, value).map_err(|source| Error::io(operation(), source))
}

/// Reads the parameter `path` below /proc/sys/net.
pub fn read(path: &str) -> Result<String> {
    let operation = || format!("read net/{path}");
    fs::read_to_string(file(path, operation)?)
        .map(|value| value.trim_end().to_owned())
        .map_err(|source| Error::io(operation(), source))
}

fn file(path: &str, operation: impl Fn() -> String) -> Result<std::path::PathBuf> {
    // The path contains interface names, which come from user-written files.
    if Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
        Ok(Path::new(ROOT).join(path))
    } else {
        Err(Error::io(operation(), nix::errno::Errno::EINVAL))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_namespace;

    #[test]
    fn a_path_cannot_leave_the_tree() {
        assert!(write("../kernel/panic", "0").is_err());
        assert!(read("/etc/passwd").is_err());
    }

    #[test]
    fn root_a_parameter_belongs_to_the_threads_namespace() {
        in_namespace(|| {
            write("ipv4/ip_forward", "1").unwrap();
            assert_eq!(read("ipv4/ip_forward").unwrap(), "1");
            let other = crate::Namespace::unnamed().unwrap();
            other.run(|| write("ipv4/ip_forward", "0").unwrap()).unwrap();
            assert_eq!(read("ipv4/ip_forward").unwrap(), "1");
            let error = write("ipv4/conf/nosuch0/forwarding", "1").unwrap_err();
            assert!(error.is_not_found(), "{error}");
            assert!(error.to_string().contains("net/ipv4/conf/nosuch0/forwarding"));
        });
    }
}
