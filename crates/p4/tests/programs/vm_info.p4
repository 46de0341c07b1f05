// Values that the tenant's VM publishes: by name, with freshness and age.
//
// A value that is too large for its variable becomes the maximum.
#include <ubpf_model.p4>
#include <vm.p4>

#define LOAD "net.utilisation"

header h_t {
    bit<8>  which;
    bit<8>  fresh;
    bit<16> small;
    bit<64> large;
    bit<64> age;
    int<8>  sign;
    bit<72> wide;
}
struct headers { h_t h; }
struct meta_t { bit<16> load; bool is_fresh; }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        p.extract(hdr.h);
        // Parsers can read values, too.
        meta.is_fresh = vm_info(LOAD, meta.load);
        transition accept;
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        if (meta.is_fresh) {
            hdr.h.fresh = 1;
        }
        hdr.h.small = meta.load;
        if (hdr.h.which == 1) {
            if (!vm_info(LOAD, hdr.h.large)) {
                mark_to_drop();
            }
        } else {
            vm_info("app.queue", hdr.h.large);
        }
        hdr.h.age = vm_info_age(LOAD);
        vm_info("app.queue", hdr.h.sign);
        vm_info("app.queue", hdr.h.wide);
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr.h); } }
ubpf(prs(), c(), dprs()) main;
