// Standard metadata has the packet's length in bytes and its input port.
#include <ubpf_model.p4>

header known_t { bit<32> length; bit<32> port; bit<32> parsed; }
header h_t { bit<8> a; }
struct headers { h_t h; known_t known; }
struct meta_t { bit<32> length; }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); meta.length = std.packet_length; transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.known.setValid();
        hdr.known.length = std.packet_length;
        hdr.known.port = std.input_port;
        hdr.known.parsed = meta.length;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
