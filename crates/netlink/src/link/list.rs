//! The list of all interfaces.

use std::collections::HashSet;

use netlink_packet_route::link::{LinkAttribute, LinkExtentMask, LinkMessage};

use super::{GETLINK, Link, link};
use crate::attribute::u32_at;
use crate::{Errno, Error, Handle, Result};

// linux/rtnetlink.h, linux/if_link.h
const RTM_GETSTATS: u16 = 94;
const STATS_HEADER: usize = 12;
const STATS_LINK_64: u32 = 1;

impl Handle {
    /// All interfaces, ordered by index. One that exceeds a message is left out: a macvlan with more than
    /// 10,000 source addresses.
    pub fn links(&mut self) -> Result<Vec<Link>> {
        let mut links = match self.listed_links() {
            Err(Error::Unstable { .. }) => Vec::new(),
            Err(why) if why.errno() == Some(Errno::EMSGSIZE) => Vec::new(),
            links => links?,
        };
        // If an interface outgrows the message while it is listed, the kernel ends the list there, on
        // Linux 6.18 without an error.
        let indices = self.indices()?;
        let listed: HashSet<u32> = links.iter().map(|link| link.index).collect();
        for index in indices.iter().filter(|index| !listed.contains(index)) {
            match self.link_at(*index) {
                Ok(link) => {
                    // Drop the entry of a deleted interface whose name this one has.
                    links.retain(|one| one.name != link.name || indices.contains(&one.index));
                    links.push(link);
                }
                Err(why) if why.is_not_found() || why.errno() == Some(Errno::EMSGSIZE) => {}
                Err(why) => return Err(why),
            }
        }
        links.sort_by_key(|link| link.index);
        Ok(links)
    }

    /// The interfaces that the kernel lists.
    fn listed_links(&mut self) -> Result<Vec<Link>> {
        // With any extension mask, the kernel allocates messages for the largest interface. Without one,
        // the list ends at an interface whose alternative names exceed 32 KiB. This mask adds nothing.
        let mut message = LinkMessage::default();
        message.attributes = vec![LinkAttribute::ExtMask(vec![LinkExtentMask::Mrp])];
        let body = crate::socket::bytes(&message);
        self.socket.dump("list the interfaces", GETLINK, &body, |b| link(b).map(Some))
    }

    /// The indices of all interfaces. Their statistics have a fixed size, so that none ends this list.
    pub fn indices(&mut self) -> Result<Vec<u32>> {
        // struct if_stats_msg
        let mut body = [0; STATS_HEADER];
        body[8..].copy_from_slice(&STATS_LINK_64.to_ne_bytes());
        let mut index = |body: &[u8]| u32_at(body, 4).map(Some);
        let operation = "list the interfaces";
        match self.socket.dump(operation, RTM_GETSTATS, &body, &mut index) {
            // Interfaces are created and deleted without a pause: use the last list.
            Err(Error::Unstable { .. }) => {
                Ok(self.socket.dump_once(operation, RTM_GETSTATS, &body, &mut index)?.0)
            }
            indices => indices,
        }
    }
}
