// A stateless firewall: masked five-tuples, highest priority first, default deny.
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
header ports_t {
    bit<16> src;
    bit<16> dst;
}
header tcp_flags_t {
    bit<64> numbers;
    bit<4>  offset;
    bit<6>  reserved;
    bit<6>  flags;
}
struct headers {
    ethernet_t  ethernet;
    ipv4_t      ipv4;
    ports_t     ports;
    tcp_flags_t tcp;
}
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        p.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        p.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl == 5, error.ParserInvalidArgument);
        // Only the first fragment has ports.
        transition select(hdr.ipv4.offset, hdr.ipv4.protocol) {
            (0, 6): tcp;
            (0, 17): udp;
            (_, _): accept;
        }
    }
    state udp {
        p.extract(hdr.ports);
        transition accept;
    }
    state tcp {
        p.extract(hdr.ports);
        p.extract(hdr.tcp);
        transition accept;
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    Register<bit<32>, bit<32>>(2) packets;

    action count(in bit<32> index) { packets.write(index, packets.read(index) + 1); }
    action allow() { count(0); }
    action deny() {
        count(1);
        mark_to_drop();
        exit;
    }
    table rules {
        key = {
            hdr.ipv4.src: ternary @name("src");
            hdr.ipv4.dst: ternary @name("dst");
            hdr.ipv4.protocol: ternary @name("protocol");
            hdr.ports.src: range @name("sport");
            hdr.ports.dst: range @name("dport");
        }
        actions = { allow; deny; }
        const default_action = deny();
        size = 256;
    }
    apply {
        if (!hdr.ipv4.isValid()) {
            // Only ARP passes.
            if (hdr.ethernet.type != 0x0806) mark_to_drop();
            return;
        }
        if (hdr.ipv4.offset != 0) {
            mark_to_drop();
            return;
        }
        // No legitimate packet has both SYN and FIN.
        if (hdr.tcp.isValid() && hdr.tcp.flags & 3 == 3) deny();
        rules.apply();
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
