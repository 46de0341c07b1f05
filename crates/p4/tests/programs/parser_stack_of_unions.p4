// A stack of unions: a sequence of options of different kinds.
#include <ubpf_model.p4>

header end_t { bit<8> kind; }
header short_t { bit<8> kind; bit<8> value; }
header long_t { bit<8> kind; bit<24> value; }
header_union option_t { end_t end; short_t short; long_t long; }
struct headers { option_t[3] options; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        transition select(p.lookahead<bit<8>>()) {
            0: end;
            1: short;
            2: long;
        }
    }
    state end { p.extract(hdr.options.next.end); transition accept; }
    state short {
        p.extract(hdr.options.next.short);
        transition select(hdr.options.lastIndex) { 2: accept; default: start; }
    }
    state long { p.extract(hdr.options.next.long); transition start; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        if (hdr.options[0].short.isValid()) hdr.options[0].short.value = 0xee;
        if (hdr.options[1].isValid() && !hdr.options[1].end.isValid()) hdr.options[1].end = { 9 };
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
