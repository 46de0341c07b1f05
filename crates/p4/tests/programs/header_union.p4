// At most one header of a union is valid, and that header is emitted.
#include <ubpf_model.p4>

header result_t { bool any; bool four; bool six; bool same; bool changed; bit<3> rest; }
header h_t { bit<8> kind; }
header four_t { bit<32> address; }
header six_t { bit<64> address; }
header_union ip_t { four_t four; six_t six; }
struct headers { h_t h; ip_t ip; result_t result; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        p.extract(hdr.h);
        transition select(hdr.h.kind) {
            4: four;
            6 .. 7: six;
            default: accept;
        }
    }
    state four { p.extract(hdr.ip.four); transition accept; }
    state six { p.extract(hdr.ip.six); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        ip_t before = hdr.ip;
        hdr.result = { hdr.ip.isValid(), hdr.ip.four.isValid(), hdr.ip.six.isValid(), before == hdr.ip, false, 0 };
        if (hdr.h.kind == 4) {
            hdr.ip.six = { 0x20010db800000001 };
        } else if (hdr.h.kind == 6) {
            hdr.ip.six.setInvalid();
        } else if (hdr.h.kind == 7) {
            hdr.ip.four.setValid();
            hdr.ip.four.address = 0x7f000001;
        }
        hdr.result.changed = before != hdr.ip;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
