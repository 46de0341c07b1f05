// Decapsulation of IPv4 in IPv4 (RFC 2003) and GRE with or without a key (RFC 2890).
//
// Only packets from a known peer are decapsulated.
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
header gre_t {
    bit<1>  checksum;
    bit<1>  reserved;
    bit<1>  key;
    bit<1>  sequence;
    bit<9>  rest;
    bit<3>  version;
    bit<16> protocol;
}
header gre_key_t { bit<32> key; }
struct headers {
    ethernet_t ethernet;
    ipv4_t     outer;
    gre_t      gre;
    gre_key_t  gre_key;
    ipv4_t     ipv4;
}
struct meta_t { bit<32> key; }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        p.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x0800: outer; default: accept; }
    }
    state outer {
        p.extract(hdr.outer);
        transition select(hdr.outer.ihl, hdr.outer.offset, hdr.outer.protocol) {
            (5, 0, 4): ipv4;
            (5, 0, 47): gre;
            default: accept;
        }
    }
    state gre {
        p.extract(hdr.gre);
        // No checksum, no sequence number, version 0.
        verify(hdr.gre.checksum ++ hdr.gre.sequence ++ hdr.gre.version == 0, error.NoMatch);
        transition select(hdr.gre.protocol, hdr.gre.key) {
            (0x0800, 0): ipv4;
            (0x0800, 1): key;
        }
    }
    state key {
        p.extract(hdr.gre_key);
        meta.key = hdr.gre_key.key;
        transition ipv4;
    }
    state ipv4 {
        p.extract(hdr.ipv4);
        transition accept;
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    action drop() { mark_to_drop(); }
    action unwrap() {
        // Congestion in the tunnel is propagated to the inner header (RFC 6040 section 4.2).
        if (hdr.outer.dscp[1:0] == 3 && hdr.ipv4.dscp[1:0] != 0) {
            bit<16> old = hdr.ipv4.version ++ hdr.ipv4.ihl ++ hdr.ipv4.dscp;
            hdr.ipv4.dscp[1:0] = 3;
            bit<16> new = hdr.ipv4.version ++ hdr.ipv4.ihl ++ hdr.ipv4.dscp;
            hdr.ipv4.checksum = csum_replace2(hdr.ipv4.checksum, old, new);
        }
        hdr.outer.setInvalid();
        hdr.gre.setInvalid();
        hdr.gre_key.setInvalid();
    }
    table ends {
        key = {
            hdr.outer.src: exact;
            hdr.outer.dst: exact;
            hdr.gre.isValid(): exact @name("is_gre");
            meta.key: exact;
        }
        actions = { unwrap; drop; }
        const default_action = drop();
    }
    apply { if (hdr.ipv4.isValid()) ends.apply(); }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
