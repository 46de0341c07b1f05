// Passes all packets.
#include <ubpf_model.p4>

header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }
struct headers { ethernet_t ethernet; }
struct metadata {}

parser parse_packet(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata std) {
    state start { packet.extract(hdr.ethernet); transition accept; }
}

control decide(inout headers hdr, inout metadata meta, inout standard_metadata std) {
    apply { mark_to_pass(); }
}

control write_packet(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr.ethernet); }
}

ubpf(parse_packet(), decide(), write_packet()) main;
