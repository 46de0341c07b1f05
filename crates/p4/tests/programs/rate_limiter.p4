// A token bucket for each class of packets: a byte rate and a burst.
//
// A packet without enough tokens is dropped; a packet without a class passes.
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
struct headers {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}
struct meta_t { }

// State of a class: tokens in bytes, and the time of the last refill.
struct bucket_t {
    bit<32> tokens;
    bit<48> at;
    bool    used;
}

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start {
        p.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 {
        p.extract(hdr.ipv4);
        transition accept;
    }
}

control limit(in bit<32> length, inout bool passes)(bit<32> classes) {
    Register<bucket_t, bit<32>>(classes) buckets;
    Register<bit<32>, bit<32>>(classes) dropped;

    // A millisecond is approximated as 2^20 ns.
    action take(in bit<32> bytes, bit<32> class, bit<32> bytes_per_ms, bit<32> most) {
        bit<48> now = ubpf_time_get_ns();
        bucket_t bucket = buckets.read(class);
        if (!bucket.used) bucket = { most, now, true };
        bit<48> ms = (now - bucket.at) >> 20;
        // After a long time the bucket is full; the product of many milliseconds would overflow.
        bit<32> more = ms > 0xffff ? most : (bit<32>)ms * bytes_per_ms;
        bucket.tokens = bucket.tokens |+| more;
        if (bucket.tokens > most) bucket.tokens = most;
        bucket.at = bucket.at + (ms << 20);
        if (bucket.tokens < bytes) {
            passes = false;
            dropped.write(class, dropped.read(class) + 1);
        } else {
            bucket.tokens = bucket.tokens - bytes;
        }
        buckets.write(class, bucket);
    }
    table classes_of {
        key = { length: range; }
        actions = { take(length); NoAction; }
        default_action = NoAction();
    }
    apply { classes_of.apply(); }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    limit(4) limiter;
    action color(bit<6> class) {
        bit<16> old = hdr.ipv4.version ++ hdr.ipv4.ihl ++ hdr.ipv4.dscp;
        hdr.ipv4.dscp[7:2] = class;
        bit<16> new = hdr.ipv4.version ++ hdr.ipv4.ihl ++ hdr.ipv4.dscp;
        hdr.ipv4.checksum = csum_replace2(hdr.ipv4.checksum, old, new);
    }
    action drop() { mark_to_drop(); }
    table excess {
        key = { hdr.ipv4.src: lpm; }
        actions = { color; drop; }
        default_action = drop();
    }
    apply {
        if (!hdr.ipv4.isValid()) return;
        bool passes = true;
        limiter.apply(std.packet_length, passes);
        if (!passes) excess.apply();
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
