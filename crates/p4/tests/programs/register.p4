// Registers keep values across packets, by index; an index out of range reads as zeros.
#include <ubpf_model.p4>

struct pair_t { bit<8> packets; bit<8> last; }
header h_t { bit<8> index; bit<8> add; bit<16> sum; bit<8> all; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    Register<bit<16>, bit<32>>(4) sums;
    Register<pair_t, bit<8>>(1) pairs;
    apply {
        bit<32> at = (bit<32>)hdr.h.index;
        sums.write(at, sums.read(at) + (bit<16>)hdr.h.add);
        hdr.h.sum = sums.read(at);
        pair_t pair = pairs.read(0);
        pair.packets = pair.packets + 1;
        pair.last = hdr.h.add;
        pairs.write(0, pair);
        hdr.h.all = pair.packets;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
