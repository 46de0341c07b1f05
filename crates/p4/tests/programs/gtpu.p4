// A GTP-U gateway (3GPP TS 29.281) between a base station and subscribers.
//
// Uplink, tunnels and their extension headers are removed. Downlink, packets get their subscriber's tunnel.
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
header gtpu_t {
    bit<3>  version;
    bit<1>  protocol_type;
    bit<1>  spare;
    bit<1>  has_extension;
    bit<1>  has_sequence;
    bit<1>  has_npdu;
    bit<8>  type;
    bit<16> length;
    bit<32> teid;
}
// Present if one of the three bits is set.
header gtpu_options_t {
    bit<16> sequence;
    bit<8>  npdu;
    bit<8>  next;
}
// The length is in words of four bytes; the last byte is the type of the next extension.
header gtpu_extension_t {
    bit<8>      words;
    varbit<240> content;
    bit<8>      next;
}
struct headers {
    ethernet_t          ethernet;
    ipv4_t              outer;
    udp_t               udp;
    gtpu_t              gtpu;
    gtpu_options_t      options;
    gtpu_extension_t[2] extensions;
    ipv4_t              ipv4;
}
struct meta_t { }

const bit<16> GTPU_PORT = 2152;
const bit<8>  G_PDU = 255;

error { NoGtpu, EmptyExtension }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        p.extract(hdr.ethernet);
        transition select(hdr.ethernet.type, std.input_port) {
            (0x0800, 0): outer;
            (0x0800, _): ipv4;
            default: accept;
        }
    }
    state outer {
        p.extract(hdr.outer);
        p.extract(hdr.udp);
        verify(hdr.outer.ihl == 5 && hdr.outer.protocol == 17, error.NoGtpu);
        verify(hdr.udp.dst == GTPU_PORT, error.NoGtpu);
        p.extract(hdr.gtpu);
        verify(hdr.gtpu.version == 1 && hdr.gtpu.protocol_type == 1, error.NoGtpu);
        transition select(hdr.gtpu.type, hdr.gtpu.has_extension ++ hdr.gtpu.has_sequence ++ hdr.gtpu.has_npdu) {
            (G_PDU, 0): ipv4;
            (G_PDU, _): options;
            // Other messages, such as echo requests, are not for this program.
            default: accept;
        }
    }
    state options {
        p.extract(hdr.options);
        transition select(hdr.gtpu.has_extension, hdr.options.next) {
            (0, _): ipv4;
            (1, 0): ipv4;
            (1, _): extension;
        }
    }
    state extension {
        bit<8> words = p.lookahead<bit<8>>();
        verify(words != 0, error.EmptyExtension);
        p.extract(hdr.extensions.next, (bit<32>)words * 32 - 16);
        transition select(hdr.extensions.last.next) { 0: ipv4; default: extension; }
    }
    state ipv4 {
        p.extract(hdr.ipv4);
        transition accept;
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    action drop() { mark_to_drop(); }
    action leave(in bit<32> port) {
        std.output_action = ubpf_action.REDIRECT;
        std.output_port = port;
    }
    action decap() {
        hdr.outer.setInvalid();
        hdr.udp.setInvalid();
        hdr.gtpu.setInvalid();
        hdr.options.setInvalid();
        hdr.extensions.pop_front(2);
        leave(1);
    }
    table uplink {
        key = { hdr.gtpu.teid: exact; hdr.ipv4.src: exact; }
        actions = { decap; drop; }
        const default_action = drop();
    }
    action encap(bit<32> teid, bit<32> from, bit<32> to) {
        bit<16> inside = hdr.ipv4.length;
        hdr.gtpu = { 1, 1, 0, 0, 0, 0, G_PDU, inside, teid };
        hdr.udp = { GTPU_PORT, GTPU_PORT, inside + 16, 0 };
        hdr.outer = hdr.ipv4;
        hdr.outer.length = inside + 36;
        hdr.outer.id = 1;
        hdr.outer.ttl = 64;
        hdr.outer.protocol = 17;
        hdr.outer.src = from;
        hdr.outer.dst = to;
        bit<16> sum = csum_replace2(hdr.ipv4.checksum, hdr.ipv4.length, hdr.outer.length);
        sum = csum_replace2(sum, hdr.ipv4.id, 1);
        sum = csum_replace2(sum, hdr.ipv4.ttl ++ hdr.ipv4.protocol, 0x4011);
        sum = csum_replace4(sum, hdr.ipv4.src, from);
        hdr.outer.checksum = csum_replace4(sum, hdr.ipv4.dst, to);
        leave(0);
    }
    table downlink {
        key = { hdr.ipv4.dst: exact; }
        actions = { encap; drop; }
        const default_action = drop();
    }
    apply {
        if (!hdr.ipv4.isValid()) return;
        if (hdr.gtpu.isValid()) uplink.apply();
        else downlink.apply();
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
