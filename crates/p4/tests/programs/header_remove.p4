// setInvalid on a header removes it from the packet: tags are stripped.
#include <ubpf_model.p4>

header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header tag_t { bit<16> tag; bit<16> type; }
struct headers { eth_t eth; tag_t[2] tags; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x8100: tag; default: accept; } }
    state tag {
        p.extract(hdr.tags.next);
        transition select(hdr.tags.last.type) { 0x8100: tag; default: accept; }
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        if (hdr.tags[0].isValid()) {
            hdr.eth.type = hdr.tags[0].type;
            hdr.tags.pop_front(1);
        }
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
