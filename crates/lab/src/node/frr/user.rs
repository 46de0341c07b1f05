//! The user of FRR's daemons.

use std::ffi::CString;
use std::path::Path;

use netlink::{Ids, Namespace};
use nix::unistd::{Gid, User, getgrouplist};
use private::Owner;

use super::Frr;
use crate::Error;
use crate::error::MachineError;

/// IDs of FRR's user, which its package creates, and of its groups, such as `frrvty`.
pub(super) fn find() -> Result<(Owner, Ids), Error> {
    const NAME: &str = "frr";
    let missing = || Error::Machine(MachineError::NoFrr("the user frr".into()));
    let found = User::from_name(NAME).ok().flatten().ok_or_else(missing)?;
    let name = CString::new(NAME).expect("it contains no NUL");
    let groups = getgrouplist(&name, found.gid).map_err(|_| missing())?;
    let groups = groups.into_iter().map(Gid::as_raw).collect();
    let owner = Owner { user: found.uid.as_raw(), group: found.gid.as_raw() };
    Ok((owner, Ids { user: owner.user, groups }))
}

/// Returns an error if the kernel creates no user namespaces. `limit` is the content of
/// `/proc/sys/user/max_user_namespaces`.
pub(super) fn check_namespaces(limit: std::io::Result<String>) -> Result<(), Error> {
    match limit.as_deref().map(str::trim) {
        Ok("0") => Err(Error::Machine(MachineError::NoUserNamespaces { built: true })),
        Ok(_) => Ok(()),
        Err(_) => Err(Error::Machine(MachineError::NoUserNamespaces { built: false })),
    }
}

impl Frr {
    /// Creates a router's network namespace, owned by a user namespace of its own. The daemons'
    /// capabilities reach no other network namespace, neither by a descriptor nor by a network
    /// namespace ID (IFLA_TARGET_NETNSID).
    pub(crate) fn create_namespace(&self, path: &Path) -> Result<Namespace, Error> {
        let mut holder = self.kaido();
        holder.arg("router-namespace");
        Ok(Namespace::create_owned(path, &mut holder, &self.ids)?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::*;

    #[test]
    fn a_kernel_without_user_namespaces_is_named() {
        check_namespaces(Ok("96365\n".into())).unwrap();
        for (limit, fix) in [
            (Ok("0\n".into()), "user.max_user_namespaces=10000"),
            (Err(Error::from(ErrorKind::NotFound)), "CONFIG_USER_NS"),
        ] {
            let said = check_namespaces(limit).unwrap_err().to_string();
            assert!(said.contains(fix), "{said}");
        }
    }
}
