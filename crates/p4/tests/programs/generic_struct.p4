// Generic structs and headers: each list of type arguments makes a distinct type.
#include <ubpf_model.p4>

header h_t<T> { T value; }
struct pair_t<A, B> { A first; B last; }
struct headers { h_t<bit<8>> small; h_t<bit<16>> large; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.small); p.extract(hdr.large); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        pair_t<bit<8>, bit<16>> two = { hdr.small.value, hdr.large.value };
        pair_t<pair_t<bit<8>, bit<16>>, bool> nested = { two, true };
        hdr.small.value = nested.first.first + 1;
        hdr.large.value = nested.last ? nested.first.last + 2 : 0;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
