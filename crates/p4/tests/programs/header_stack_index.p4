// Stack elements by a run-time index: out of bounds, reads give zeros and writes are ignored.
#include <ubpf_model.p4>

bit<8> step(inout bit<8> at) {
    at = at + 1;
    return 7;
}
header inner_t { bit<8> at; bit<8> value; }
header h_t { bit<8> a; }
struct headers { inner_t inner; h_t[3] all; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.inner); p.extract(hdr.all.next); p.extract(hdr.all.next); p.extract(hdr.all.next); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.inner.value = hdr.all[hdr.inner.at].a;
        hdr.all[hdr.inner.at].a = 0xee;
        hdr.all[hdr.inner.at + 1].setValid();
        bit<8> at = 0;
        // The index is evaluated before the right side changes it.
        hdr.all[at].a = step(at);
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
