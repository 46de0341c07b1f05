// A VXLAN tunnel endpoint (RFC 7348): port 0 is the bridged network, port 1 the underlay.
//
// A tenant's frame is encapsulated for the endpoint of its destination address. A packet of a known network is
// decapsulated.
#include <ubpf_model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}
header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  dscp;
    bit<16> length;
    bit<16> id;
    bit<3>  flags;
    bit<13> offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}
header udp_t {
    bit<16> src;
    bit<16> dst;
    bit<16> length;
    bit<16> checksum;
}
header vxlan_t {
    bit<8>  flags;
    bit<24> reserved;
    bit<24> vni;
    bit<8>  reserved2;
}
struct headers {
    ethernet_t outer_ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    vxlan_t    vxlan;
    ethernet_t ethernet;
}
struct meta_t { }

const bit<16> VXLAN_PORT = 4789;
const bit<8>  VNI_VALID = 0x08;

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { transition select(std.input_port) { 0: inner; default: outer; } }
    state outer {
        p.extract(hdr.outer_ethernet);
        transition select(hdr.outer_ethernet.type) { 0x0800: ipv4; }
    }
    state ipv4 {
        p.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.offset, hdr.ipv4.protocol) { (5, 0, 17): udp; }
    }
    state udp {
        p.extract(hdr.udp);
        transition select(hdr.udp.dst) { VXLAN_PORT: vxlan; }
    }
    state vxlan {
        p.extract(hdr.vxlan);
        verify(hdr.vxlan.flags & VNI_VALID != 0, error.NoMatch);
        transition inner;
    }
    state inner {
        p.extract(hdr.ethernet);
        transition accept;
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    action drop() { mark_to_drop(); }
    action wrap(bit<24> vni, bit<32> from, bit<32> to, bit<48> gateway) {
        bit<16> inside = (bit<16>)std.packet_length;
        bit<32> flow;
        hash(flow, HashAlgorithm.lookup3, hdr.ethernet.dst);
        hdr.outer_ethernet = { gateway, 0x0200000000fe, 0x0800 };
        hdr.vxlan = { VNI_VALID, 0, vni, 0 };
        hdr.udp = { 2w3 ++ flow[13:0], VXLAN_PORT, inside + 16, 0 };
        hdr.ipv4 = {
            version = 4, ihl = 5, length = inside + 36, flags = 2, ttl = 64, protocol = 17,
            src = from, dst = to, ...
        };
        // The constant part of the sum is precomputed: all but the length and the addresses.
        bit<16> sum = ~(16w0x4500 + 0x4000 + 0x4011);
        sum = csum_replace2(sum, 0, hdr.ipv4.length);
        sum = csum_replace4(sum, 0, from);
        hdr.ipv4.checksum = csum_replace4(sum, 0, to);
        std.output_action = ubpf_action.REDIRECT;
        std.output_port = 1;
    }
    action unwrap() {
        hdr.outer_ethernet.setInvalid();
        hdr.ipv4.setInvalid();
        hdr.udp.setInvalid();
        hdr.vxlan.setInvalid();
        std.output_action = ubpf_action.REDIRECT;
        std.output_port = 0;
    }
    table addresses {
        key = { hdr.ethernet.dst: exact; }
        actions = { wrap; drop; }
        default_action = drop();
    }
    table networks {
        key = { hdr.vxlan.vni: exact; hdr.ipv4.src: exact; }
        actions = { unwrap; drop; }
        default_action = drop();
    }
    apply {
        if (hdr.vxlan.isValid()) networks.apply();
        else addresses.apply();
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
