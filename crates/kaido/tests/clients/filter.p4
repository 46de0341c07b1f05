#include <core.p4>
#include <ubpf_model.p4>
header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }
struct headers { ethernet_t ethernet; }
struct metadata {}
parser P(packet_in packet, out headers h, inout metadata m, inout standard_metadata s) {
    state start { packet.extract(h.ethernet); transition accept; }
}
control I(inout headers h, inout metadata m, inout standard_metadata s) {
    action drop() { mark_to_drop(); }
    action pass() { mark_to_pass(); }
    table filter {
        key = { s.input_port: exact; h.ethernet.type: exact; }
        actions = { pass; drop; }
        default_action = pass();
        size = 16;
    }
    apply { filter.apply(); }
}
control D(packet_out packet, in headers h) { apply { packet.emit(h.ethernet); } }
ubpf(P(), I(), D()) main;
