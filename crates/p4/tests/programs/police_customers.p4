// A policer with rates for each customer's prefix.
//
// Excess packets are marked yellow or dropped, and counted by color. The control plane is notified of sources
// that are not a customer's.
#include <kaido.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<6>  dscp;
    bit<2>  ecn;
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
struct headers { ethernet_t ethernet; ipv4_t ipv4; }
struct meta_t { bit<16> customer; PSA_MeterColor_t color; }
struct stranger_t { bit<32> port; bit<32> source; }

const bit<32> CUSTOMERS = 512;
const bit<6> LOW = 8;

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        p.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 { p.extract(hdr.ipv4); transition accept; }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    DirectMeter(PSA_MeterType_t.BYTES) rate;
    DirectCounter<bit<64>>(PSA_CounterType_t.PACKETS_AND_BYTES) all;
    Counter<bit<64>, bit<16>>(CUSTOMERS, PSA_CounterType_t.PACKETS_AND_BYTES) marked;
    Counter<bit<64>, bit<16>>(CUSTOMERS, PSA_CounterType_t.PACKETS) dropped;
    Meter<bit<1>>(1, PSA_MeterType_t.PACKETS) uplink;
    Digest<stranger_t>() strangers;

    action customer(bit<16> number) {
        meta.customer = number;
        all.count();
        // A packet that the customer has marked low starts as yellow.
        meta.color = rate.execute(hdr.ipv4.dscp == LOW ? PSA_MeterColor_t.YELLOW
                                                       : PSA_MeterColor_t.GREEN);
    }
    action stranger() {
        strangers.pack({ std.input_port, hdr.ipv4.src });
        meta.color = PSA_MeterColor_t.RED;
    }
    table customers {
        key = { hdr.ipv4.src: lpm; }
        actions = { customer; stranger; }
        default_action = stranger();
        psa_direct_meter = rate;
        psa_direct_counter = all;
        size = 512;
    }
    apply {
        if (!hdr.ipv4.isValid()) return;
        if (!customers.apply().hit) { mark_to_drop(); return; }
        // The uplink's limit applies regardless of the customer's rates.
        PSA_MeterColor_t color = uplink.execute(0, meta.color);
        if (color == PSA_MeterColor_t.RED) {
            dropped.count(meta.customer);
            mark_to_drop();
        } else if (color == PSA_MeterColor_t.YELLOW && hdr.ipv4.dscp != LOW) {
            marked.count(meta.customer);
            bit<16> old = hdr.ipv4.version ++ hdr.ipv4.ihl ++ hdr.ipv4.dscp ++ hdr.ipv4.ecn;
            hdr.ipv4.dscp = LOW;
            bit<16> new = hdr.ipv4.version ++ hdr.ipv4.ihl ++ hdr.ipv4.dscp ++ hdr.ipv4.ecn;
            hdr.ipv4.checksum = csum_replace2(hdr.ipv4.checksum, old, new);
        }
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
