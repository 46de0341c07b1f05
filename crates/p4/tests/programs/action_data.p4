// Entries pass arguments to their actions: numbers of any width, bool, and types of the program.
#include <ubpf_model.p4>

type bit<16> port_t;
header h_t { bit<8> key; bit<48> address; bit<8> flags; bit<16> port; }
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    action set(bit<48> address, bool on, port_t port) {
        hdr.h.address = address;
        hdr.h.flags[7:7] = (bit<1>)on;
        hdr.h.port = (bit<16>)port;
    }
    action both(bit<8> flags, port_t port) {
        hdr.h.flags = flags;
        hdr.h.port = (bit<16>)port;
    }
    table t {
        key = { hdr.h.key: exact; }
        actions = { set; both; NoAction; }
    }
    apply { t.apply(); }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
