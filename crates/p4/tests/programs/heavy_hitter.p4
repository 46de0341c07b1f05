// A heavy hitter detector: a count-min sketch of three rows.
//
// Each row counts under another hash; the minimum is an upper bound of a source's count. Packets of a source
// with more than four are marked, and the source is reported once through port 7.
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
struct headers {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        p.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 {
        p.extract(hdr.ipv4);
        transition accept;
    }
}

bit<32> least(in bit<32> x, in bit<32> y) { return x < y ? x : y; }

control row(in bit<32> source, out bit<32> count)(bit<8> seed) {
    Register<bit<32>, bit<32>>(16) counts;
    apply {
        bit<32> found;
        hash(found, HashAlgorithm.lookup3, { source, seed });
        bit<32> at = found & 0xf;
        count = counts.read(at) |+| 1;
        counts.write(at, count);
    }
}

control sketch(in bit<32> source, out bit<32> count) {
    row(1) first;
    row(2) second;
    row(3) third;
    apply {
        bit<32> other;
        first.apply(source, count);
        second.apply(source, other);
        count = least(count, other);
        third.apply(source, other);
        count = least(count, other);
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    const bit<32> MOST = 4;
    sketch() packets;

    apply {
        if (!hdr.ipv4.isValid()) return;
        bit<32> count;
        packets.apply(hdr.ipv4.src, count);
        if (count <= MOST) return;
        bit<16> old = hdr.ipv4.version ++ hdr.ipv4.ihl ++ hdr.ipv4.dscp;
        hdr.ipv4.dscp = 0x20;
        bit<16> new = hdr.ipv4.version ++ hdr.ipv4.ihl ++ hdr.ipv4.dscp;
        hdr.ipv4.checksum = csum_replace2(hdr.ipv4.checksum, old, new);
        if (count == MOST + 1) {
            std.clone = true;
            std.clone_port = 7;
        }
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
