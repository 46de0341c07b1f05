//! AF_XDP programs of others, unmodified, between hosts in namespaces.

mod openvswitch;
