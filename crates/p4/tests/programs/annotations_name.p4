// @name sets the control-plane name of a table, a key field or an action; a leading dot makes it absolute.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> result; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    @name("set_it") action set(bit<8> to) { hdr.h.result = to; }
    @name(".elsewhere.add") action more(bit<8> n) { hdr.h.result = hdr.h.result + n; }
    @name("routes") table t {
        key = { hdr.h.a: exact @name("key_of_a"); }
        actions = { set; NoAction; }
    }
    @name(".elsewhere.u") table u {
        key = { hdr.h.b: exact; }
        actions = { more; NoAction; }
    }
    apply {
        t.apply();
        u.apply();
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
