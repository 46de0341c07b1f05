// Invalidating any header of a union invalidates the union (section 8.20).
#include <ubpf_model.p4>

header h_t { bit<8> kind; }
header other_t { bit<16> value; }
header_union u_t { h_t one; other_t other; }
struct headers { h_t h; u_t u; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.u.other = { 0x1234 };
        if (hdr.h.kind == 1) hdr.u.one.setInvalid();
        if (hdr.h.kind == 2) hdr.u.one = {#};
        if (hdr.h.kind == 3) { u_t none; hdr.u = none; }
        if (hdr.h.kind == 4) { u_t one; one.one = { 0x55 }; hdr.u = one; }
        // A write to an invalid header does not make it valid.
        if (hdr.h.kind == 5) hdr.u.one.kind = 0x66;
        if (hdr.u == (u_t){#}) hdr.h.kind = 0xee;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
