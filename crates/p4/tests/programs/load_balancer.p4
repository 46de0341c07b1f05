// A load balancer: the hash of a flow selects a bucket, the bucket a backend.
//
// The service's address is replaced by the backend's, and the TCP checksum is updated. A flow keeps its backend.
#include <ubpf_model.p4>

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
header tcp_t {
    bit<16> src;
    bit<16> dst;
    bit<32> sequence;
    bit<32> acknowledgement;
    bit<4>  offset;
    bit<12> flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}
struct headers {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    tcp_t      tcp;
}
struct meta_t { bit<2> bucket; bit<32> service; }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        p.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 {
        p.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl ++ hdr.ipv4.protocol) { 4w5 ++ 8w6: tcp; default: accept; }
    }
    state tcp {
        p.extract(hdr.tcp);
        transition accept;
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    Register<bit<32>, bit<2>>(4) chosen;

    action drop() { mark_to_drop(); }
    action serve(bit<32> service) { meta.service = service; }
    table services {
        key = { hdr.ipv4.dst: exact; hdr.tcp.dst: exact; }
        actions = { serve; NoAction; }
    }
    action send(bit<32> address, bit<48> mac, bit<32> port) {
        hdr.ipv4.checksum = csum_replace4(hdr.ipv4.checksum, hdr.ipv4.dst, address);
        hdr.tcp.checksum = csum_replace4(hdr.tcp.checksum, hdr.ipv4.dst, address);
        hdr.ipv4.dst = address;
        hdr.ethernet.dst = mac;
        hdr.ethernet.src = 0x0200000000fe;
        std.output_action = ubpf_action.REDIRECT;
        std.output_port = port;
        chosen.write(meta.bucket, chosen.read(meta.bucket) + 1);
    }
    table backends {
        key = { meta.service: exact; meta.bucket: exact; }
        actions = { send; drop; }
        const default_action = drop();
    }
    apply {
        if (!hdr.tcp.isValid()) return;
        switch (services.apply().action_run) {
            serve: {
                // hash takes at most 64 bits; the destination is constant and left out.
                bit<32> flow;
                hash(flow, HashAlgorithm.lookup3, { hdr.ipv4.src, hdr.tcp.src, hdr.ipv4.protocol });
                meta.bucket = flow[1:0];
                backends.apply();
            }
        }
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
