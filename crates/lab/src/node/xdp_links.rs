//! Links of nodes that forward in XDP: offloads, and exits to interfaces with a rate.

use model::topology::{Backend, Interface, Node};
use netlink::{Handle, Namespace, Offload, VethEnd, set_offload};

use crate::Error;
use crate::node::index::interface_index;

/// Prepares an interface whose peer runs XDP. Checksum offload is disabled, because XDP loses the
/// packet metadata that requests the checksum. GRO is enabled, because a veth accepts frames from
/// XDP only with NAPI, which GRO activates.
pub(crate) fn prepare_far_end(namespace: &Namespace, interface: &str) -> Result<(), Error> {
    Ok(namespace.run(|| {
        set_offload(interface, Offload::TxChecksum, false)?;
        set_offload(interface, Offload::Gro, true)
    })??)
}

/// Prepares an interface whose peer has an AF_XDP socket: frames have no metadata that requests a
/// checksum, or that has VLAN tags.
pub(crate) fn prepare_socket_peer(namespace: &Namespace, interface: &str) -> Result<(), Error> {
    Ok(namespace.run(|| {
        Offload::LEFT_TO_DEVICE
            .into_iter()
            .try_for_each(|offload| set_offload(interface, offload, false))
    })??)
}

/// Creates the exits for the interfaces of a node that runs XDP. XDP bypasses queueing disciplines,
/// so a rate would have no effect. For an interface with a rate, XDP sends into one end of a veth
/// pair instead; packets that arrive at the other end are queued on the interface like the kernel's
/// own packets. Drops, backlog and rate are then visible in the same place as on other nodes.
pub(crate) fn make_exits(node: &Node, namespace: &Namespace) -> Result<(), Error> {
    let shaped = |(_, interface): &(usize, &Interface)| is_shaped(interface);
    for (at, interface) in node.interfaces.iter().enumerate().filter(shaped) {
        let port = interface_index(at);
        let mut handle = Handle::within(namespace)?;
        let names = [exit_name(at), format!("queue-{port}")];
        let [exit, feed] = names.each_ref().map(|name| VethEnd {
            name,
            namespace,
            mtu: u32::from(interface.mtu),
            mac: None,
            index: None,
        });
        let label = format!("exit of {} on {}", interface.name, node.name);
        handle.request(&label, netlink::add_veth(&exit, &feed))?;
        let queue = handle.link(&names[1])?.index;
        namespace.run(|| {
            // Packets that the kernel originates on every interface, such as neighbor discovery,
            // would leave through the port.
            for name in &names {
                netlink::sysctl::write(&format!("ipv6/conf/{name}/disable_ipv6"), "1")?;
            }
            set_offload(&names[1], Offload::Gro, true)?;
            bpf::lead_to_queue(queue, port)?;
            Ok::<(), Error>(())
        })??;
        for name in &names {
            let index = handle.link(name)?.index;
            handle.request(&label, netlink::set_up(index))?;
        }
    }
    Ok(())
}

/// True if the kernel's own queue enforces an interface's rate; otherwise the emulator does.
pub(crate) fn is_shaped(interface: &Interface) -> bool {
    interface.rate.is_some() && interface.backend != Backend::Emulator
}

/// Name of the exit device for a node's interface. It cannot collide with a node's: those have no
/// hyphen.
pub(crate) fn exit_name(interface: usize) -> String {
    format!("xdp-{}", interface_index(interface))
}
