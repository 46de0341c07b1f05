// Varbits are equal if their contents are equal, regardless of their source.
#include <ubpf_model.p4>

header option_t {
    bit<8>     bytes;
    varbit<64> data;
}
header answer_t { bit<8> value; }
struct headers {
    answer_t answer;
    option_t first;
    option_t second;
}
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        p.extract(hdr.first, (bit<32>)p.lookahead<bit<8>>() << 3);
        p.extract(hdr.second, (bit<32>)p.lookahead<bit<8>>() << 3);
        transition accept;
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.answer.setValid();
        hdr.answer.value = 0;
        if (hdr.first.data == hdr.second.data) hdr.answer.value = 1;
        if (hdr.first != hdr.second) hdr.answer.value = hdr.answer.value + 2;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr.answer); } }

ubpf(prs(), c(), dprs()) main;
