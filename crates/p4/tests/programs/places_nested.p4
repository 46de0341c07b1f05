// Nested l-values: a field of a stack element in a struct, by index, slice, action and control.
#include <ubpf_model.p4>

header h_t { bit<8> a; bit<8> b; }
struct group_t { h_t[2] all; bit<8> at; }
struct headers { h_t[2] all; }
struct meta_t { group_t group; }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.all.next); p.extract(hdr.all.next); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    action add(inout bit<8> to) { to = to + 1; }
    action add_to(in bit<8> by, inout bit<8> to) { to = to + by; }
    action both(inout h_t[2] all) {
        all[0].a = all[0].a + 1;
        all[1].a = all[1].a + 1;
    }
    apply {
        meta.group.all = hdr.all;
        meta.group.at = 1;
        meta.group.all[meta.group.at].b[7:4] = 0xe;
        add(meta.group.all[meta.group.at - 1].a);
        add_to(meta.group.all[0].b[3:0] ++ 4w0, meta.group.all[1].a);
        group_t copy = meta.group;
        both(copy.all);
        hdr.all[0] = copy.all[1];
        hdr.all[1] = meta.group.all[0];
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
