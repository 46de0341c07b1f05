//! AF_XDP programs of others, unmodified, between hosts in namespaces.

mod kxdpgun;
mod openvswitch;
mod testpmd;
