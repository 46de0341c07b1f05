// Extern functions of a program: helpers by number, and values that the tenant's VM publishes.
//
// A value has the key of the function's name, or another one.
#include <ubpf_model.p4>

/// The machine's clock, which the model has as well.
@helper(5)
extern bit<48> clock();

extern bool connections(out bit<32> count);

@vm_info("app.queue/depth")
extern bool depth(out bit<8> packets);

header h_t {
    bit<8>  now;
    bit<8>  fresh;
    bit<32> count;
    bit<8>  depth;
}
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        p.extract(hdr.h);
        transition accept;
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    apply {
        hdr.h.now = clock() == ubpf_time_get_ns() ? 8w1 : 0;
        bit<32> count;
        if (connections(count) && depth(hdr.h.depth)) {
            hdr.h.fresh = 1;
        }
        hdr.h.count = count;
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr.h); } }
ubpf(prs(), c(), dprs()) main;
