// {#} is an invalid header: assigned, compared, passed as an argument.
#include <ubpf_model.p4>

header h_t { bit<8> a; }

bool is_there(in h_t h) { return h.isValid(); }

struct headers { h_t one; h_t two; h_t three; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.one); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        if (hdr.two == {#}) hdr.three = { 0x55 };
        if (hdr.one.a == 1) hdr.one = {#};
        if (hdr.one != {#}) { hdr.one.a = 0x77; }
        if (is_there({#})) hdr.three.a = 0;
        if (is_there((h_t){#})) hdr.three.a = 0;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
