// A filter by the load of the tenant's VM, with hysteresis.
//
// Above 30 % use of its network, packets to port 9000 are dropped until it is below 10 %. Packets to port 8000
// always pass. The VM may publish other limits.
#include <ubpf_model.p4>
#include <vm.p4>

// Per mille.
#define ON_ABOVE 300
#define OFF_BELOW 100

const bit<16> PROTECTED = 8000;
const bit<16> LOAD = 9000;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}
header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  dscp;
    bit<16> length;
    bit<16> id;
    bit<3>  flags;
    bit<13> offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}
header udp_t {
    bit<16> src;
    bit<16> dst;
    bit<16> length;
    bit<16> checksum;
}
struct headers {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
}
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        p.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 {
        p.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.offset, hdr.ipv4.protocol) {
            (5, 0, 17): udp;
            default: accept;
        }
    }
    state udp {
        p.extract(hdr.udp);
        transition accept;
    }
}

control filter(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    // State of the filter: on or off.
    Register<bool, bit<32>>(1) state;

    apply {
        bool on = state.read(0);
        bit<32> used;
        // A VM that is too busy to publish must not open the filter: an unknown value changes
        // nothing.
        if (vm_info("net.utilisation", used)) {
            bit<32> on_above;
            bit<32> off_below;
            if (!vm_info("filter.on", on_above)) {
                on_above = ON_ABOVE;
            }
            if (!vm_info("filter.off", off_below)) {
                off_below = OFF_BELOW;
            }
            if (used > on_above) {
                on = true;
            } else if (used < off_below) {
                on = false;
            }
            state.write(0, on);
        }
        if (on && hdr.udp.isValid() && hdr.udp.dst == LOAD) {
            mark_to_drop();
        }
    }
}

control dprs(packet_out b, in headers hdr) {
    apply {
        b.emit(hdr.ethernet);
        b.emit(hdr.ipv4);
        b.emit(hdr.udp);
    }
}

ubpf(prs(), filter(), dprs()) main;
