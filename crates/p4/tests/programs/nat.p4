// Source NAT for IPv4: translates addresses and ports in both directions.
//
// All checksums are updated incrementally (RFC 1624).
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
header ports_t {
    bit<16> src;
    bit<16> dst;
}
header tcp_rest_t {
    bit<64> numbers;
    bit<32> flags_and_window;
    bit<16> checksum;
    bit<16> urgent;
}
header udp_rest_t {
    bit<16> length;
    bit<16> checksum;
}
struct headers {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ports_t    ports;
    tcp_rest_t tcp;
    udp_rest_t udp;
}
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        p.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 {
        p.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.protocol) {
            (5, 6): tcp;
            (5, 17): udp;
            default: accept;
        }
    }
    state tcp {
        p.extract(hdr.ports);
        p.extract(hdr.tcp);
        transition accept;
    }
    state udp {
        p.extract(hdr.ports);
        p.extract(hdr.udp);
        transition accept;
    }
}

// Updates a transport checksum after a change of an address and a port.
bit<16> follow(in bit<16> sum, in bit<32> old, in bit<32> new, in bit<16> from, in bit<16> to) {
    return csum_replace2(csum_replace4(sum, old, new), from, to);
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    action drop() { mark_to_drop(); }
    action change(inout bit<32> address, inout bit<16> port, bit<32> new, bit<16> to) {
        hdr.ipv4.checksum = csum_replace4(hdr.ipv4.checksum, address, new);
        if (hdr.tcp.isValid()) {
            hdr.tcp.checksum = follow(hdr.tcp.checksum, address, new, port, to);
        } else if (hdr.udp.checksum != 0) {
            // Zero means no checksum; a computed zero is written as all ones (RFC 768).
            bit<16> sum = follow(hdr.udp.checksum, address, new, port, to);
            hdr.udp.checksum = sum == 0 ? 16w0xffff : sum;
        }
        address = new;
        port = to;
    }
    table outwards {
        key = { hdr.ipv4.src: exact; hdr.ports.src: exact; hdr.ipv4.protocol: exact; }
        actions = { change(hdr.ipv4.src, hdr.ports.src); drop; }
        const default_action = drop();
    }
    table inwards {
        key = { hdr.ipv4.dst: exact; hdr.ports.dst: exact; hdr.ipv4.protocol: exact; }
        actions = { change(hdr.ipv4.dst, hdr.ports.dst); drop; }
        const default_action = drop();
    }
    apply {
        if (!hdr.ports.isValid() || hdr.ipv4.ttl <= 1) {
            drop();
            return;
        }
        bool found;
        if (std.input_port == 0) {
            found = outwards.apply().hit;
            std.output_port = 1;
        } else {
            found = inwards.apply().hit;
            std.output_port = 0;
        }
        if (!found) return;
        bit<16> old = hdr.ipv4.ttl ++ hdr.ipv4.protocol;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        hdr.ipv4.checksum = csum_replace2(hdr.ipv4.checksum, old, hdr.ipv4.ttl ++ hdr.ipv4.protocol);
        std.output_action = ubpf_action.REDIRECT;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
