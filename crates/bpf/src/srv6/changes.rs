//! Changes in place: packets read the old value or the new one.

use std::net::Ipv6Addr;
use std::sync::atomic::{Ordering, fence};

use crate::Srv6;
use crate::records::wait_for_packets;
use crate::skeleton::types;

impl Srv6 {
    /// Sets the prefix lengths of the SIDs, longest first.
    pub fn set_sid_lengths(&self, lengths: &types::lengths6) {
        wait_for_packets();
        let control = self.control.at(0);
        // SAFETY: the pointer is into the mapping and this is its only writer; packets read the
        // other of the two tables, and after the next line only this one.
        unsafe {
            let next = (&raw const (*control).active).read_volatile() & 1 ^ 1;
            (&raw mut (*control).sids[next as usize]).write_volatile(*lengths);
            fence(Ordering::Release);
            (&raw mut (*control).active).write_volatile(next);
        }
    }

    /// Sets the source of outer headers that the program writes itself (End.M.GTP6.E). A packet in
    /// between may have words of both.
    pub fn set_source(&self, source: Ipv6Addr) {
        let control = self.control.at(0);
        // SAFETY: the pointer is into the mapping and this is its only writer.
        unsafe { (&raw mut (*control).source).write_volatile(crate::words(source)) }
    }

    /// Sets the prefix lengths of a tenant, longest first.
    pub fn set_tenant_lengths(&self, tenant: u32, ipv4: &types::lengths4, ipv6: &types::lengths6) {
        wait_for_packets();
        let entry = self.tenants.at(tenant as usize);
        // SAFETY: as in `set_sid_lengths`.
        unsafe {
            let next = (&raw const (*entry).active).read_volatile() & 1 ^ 1;
            (&raw mut (*entry).ipv4[next as usize]).write_volatile(*ipv4);
            (&raw mut (*entry).ipv6[next as usize]).write_volatile(*ipv6);
            fence(Ordering::Release);
            (&raw mut (*entry).active).write_volatile(next);
        }
    }

    /// Changes the segment lists of a policy. Each packet takes an old list or a new one.
    pub fn change_policy(&self, number: u32, value: types::policy) {
        let entry = self.policies.entries().at(number as usize);
        // SAFETY: the pointer is into the mapping and this is its only writer. Each field is one
        // word. A `spread` other than 0 is in effect before the list changes, and 0 only after it.
        unsafe {
            if value.spread != 0 {
                (&raw mut (*entry).spread).write_volatile(value.spread);
                fence(Ordering::Release);
            }
            (&raw mut (*entry).list).write_volatile(value.list);
            (&raw mut (*entry).in_kernel).write_volatile(value.in_kernel);
            fence(Ordering::Release);
            (&raw mut (*entry).spread).write_volatile(value.spread);
        }
    }
}
