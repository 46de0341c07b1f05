// A filter of IPv4 packets by source and by direction.
//
// Control planes fill the table: `kaido p4 table add sources ipv4.source=192.0.2.0/24 transmitted=0 refuse`.
#include <ubpf_model.p4>

header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }
header ipv4_t {
    bit<72> front;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}
struct headers { ethernet_t ethernet; ipv4_t ipv4; }
struct metadata { bit<8> transmitted; }

// Port numbers of packets that the client transmits begin here.
const bit<32> TRANSMITTED = 256;

parser parse_packet(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x0800: parse_ipv4; default: accept; }
    }
    state parse_ipv4 { packet.extract(hdr.ipv4); transition accept; }
}

control decide(inout headers hdr, inout metadata meta, inout standard_metadata std) {
    action refuse() { mark_to_drop(); }

    table sources {
        key = { hdr.ipv4.source: lpm; meta.transmitted: exact; }
        actions = { refuse; NoAction; }
        default_action = NoAction();
    }

    apply {
        if (std.input_port >= TRANSMITTED) { meta.transmitted = 1; }
        if (hdr.ipv4.isValid()) { sources.apply(); }
    }
}

control write_packet(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr.ethernet); packet.emit(hdr.ipv4); }
}

ubpf(parse_packet(), decide(), write_packet()) main;
