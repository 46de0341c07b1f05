// A DNS filter by name; refused queries are answered.
//
// The parser reads labels byte by byte, ignores case, and keeps the last three labels, of each the last 15
// bytes.
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
header udp_t {
    bit<16> src;
    bit<16> dst;
    bit<16> length;
    bit<16> checksum;
}
header dns_t {
    bit<16> id;
    bit<1>  response;
    bit<4>  opcode;
    bit<7>  flags;
    bit<4>  rcode;
    bit<16> questions;
    bit<16> answers;
    bit<16> authorities;
    bit<16> additionals;
}
header byte_t { bit<8> value; }
header question_t {
    bit<8>  root;
    bit<16> type;
    bit<16> class;
}
struct headers {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    dns_t      dns;
    byte_t[64] name;
    question_t question;
}
typedef bit<120> label_t;
struct meta_t {
    label_t top;
    label_t second;
    label_t third;
}

error { NoQuestion }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    bit<8> left = 0;

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
        transition select(hdr.udp.dst) { 53: dns; default: accept; }
    }
    state dns {
        p.extract(hdr.dns);
        verify(hdr.dns.response == 0 && hdr.dns.questions == 1, error.NoQuestion);
        transition name;
    }
    state name {
        transition select(p.lookahead<bit<8>>()) {
            0: question;
            1 .. 63: label;
            // A question contains no pointers (RFC 1035 section 4.1.4).
            default: reject;
        }
    }
    state label {
        p.extract(hdr.name.next);
        left = hdr.name.last.value;
        meta.third = meta.second;
        meta.second = meta.top;
        meta.top = 0;
        transition letters;
    }
    state letters { transition select(left) { 0: name; default: letter; } }
    state letter {
        p.extract(hdr.name.next);
        bit<8> letter = hdr.name.last.value;
        if (letter >= 0x41 && letter <= 0x5a) { letter = letter | 0x20; }
        meta.top = meta.top[111:0] ++ letter;
        left = left - 1;
        transition letters;
    }
    state question {
        p.extract(hdr.question);
        transition accept;
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    action allow() { }
    action drop() { mark_to_drop(); }
    // Turns the question into its own answer.
    action refuse() {
        bit<16> old = hdr.dns.response ++ hdr.dns.opcode ++ hdr.dns.flags ++ hdr.dns.rcode;
        hdr.dns.response = 1;
        hdr.dns.rcode = 5;
        bit<16> new = hdr.dns.response ++ hdr.dns.opcode ++ hdr.dns.flags ++ hdr.dns.rcode;
        if (hdr.udp.checksum != 0) {
            bit<16> sum = csum_replace2(hdr.udp.checksum, old, new);
            hdr.udp.checksum = sum == 0 ? 16w0xffff : sum;
        }
        bit<48> mac = hdr.ethernet.dst;
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = mac;
        bit<32> address = hdr.ipv4.dst;
        hdr.ipv4.dst = hdr.ipv4.src;
        hdr.ipv4.src = address;
        bit<16> port = hdr.udp.dst;
        hdr.udp.dst = hdr.udp.src;
        hdr.udp.src = port;
    }
    table names {
        key = {
            meta.top: ternary @name("top");
            meta.second: ternary @name("second");
            meta.third: ternary @name("third");
            hdr.question.type: ternary @name("type");
        }
        actions = { allow; refuse; drop; }
        default_action = allow();
    }
    apply { if (hdr.question.isValid()) names.apply(); }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
