// setValid on a header adds it to the packet: a tag is inserted.
#include <ubpf_model.p4>

header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header tag_t { bit<3> priority; bit<1> eligible; bit<12> vlan; bit<16> type; }
struct headers { eth_t eth; tag_t tag; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x8100: tag; default: accept; } }
    state tag { p.extract(hdr.tag); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        if (!hdr.tag.isValid()) {
            hdr.tag = { 5, 0, 0x123, hdr.eth.type };
            hdr.eth.type = 0x8100;
        }
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
