// A program of many language constructs, which tests and the fuzzer change at random.
#include <ubpf_model.p4>

#define WIDE(n) bit<n>
typedef WIDE(48) mac_t;
type bit<9> port_t;
enum bit<16> Ether { IPV4 = 0x800, VLAN = 0x8100 }
enum Color { Red, Green }
const bit<8> ONE = 1;
error { Odd }

header eth_t { mac_t dst; mac_t src; bit<16> type; }
header tag_t { bit<3> pcp; bool cfi; bit<12> vid; bit<16> type; }
header ip_t { bit<4> version; bit<4> ihl; bit<8> ttl; bit<8> proto; bit<16> sum; bit<32> src; bit<32> dst; }
header opt_t { bit<8> len; varbit<320> data; }
header_union l4_t { ip_t inner; opt_t opt; }
struct pair<T> { T a; T b; }
struct headers { eth_t eth; tag_t[3] tags; ip_t ip; opt_t opt; l4_t l4; }
struct meta_t { bit<16> port; bool ok; int<8> sign; pair<bit<8>> two; tuple<bit<8>, bool> some; }

bit<8> larger(in bit<8> x, in bit<8> y) { if (x > y) { return x; } return y; }

parser tags(packet_in p, inout headers hdr)(bit<16> wanted) {
    state start {
        p.extract(hdr.tags.next);
        transition select(hdr.tags.last.type, hdr.tags.lastIndex) { (0x8100 &&& 0xfff0, 0 .. 1): start; (wanted, _): accept; default: accept; }
    }
}

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    tags(16w0x800) sub; value_set<bit<16>>(4) known; bit<8> left = 0;
    state start {
        p.extract(hdr.eth);
        transition select(hdr.eth.type) { Ether.VLAN: tagged; Ether.IPV4: ip; known: skip; default: accept; }
    }
    state tagged { sub.apply(p, hdr); transition ip; }
    state ip {
        p.extract(hdr.ip);
        verify(hdr.ip.version == 4 && hdr.ip.ihl >= 3, error.Odd);
        left = p.lookahead<bit<8>>();
        p.extract(hdr.opt, (bit<32>)left[3:0] * 8);
        transition select(hdr.ip.proto) { 4: inner; _: accept; }
    }
    state inner { p.extract(hdr.l4.inner); transition accept; }
    state skip { p.advance(8); transition reject; }
}

control count(inout bit<8> v)(bit<8> by) {
    Register<bit<32>, bit<32>>(16) seen;
    apply { v = v |+| by; seen.write(0, seen.read(0) + 1); }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    count(1) first; count(by = 2) second; bit<128> wide = 128w1 << 100;
    action drop() { mark_to_drop(); exit; }
    action forward(bit<32> port) { std.output_port = port; std.output_action = ubpf_action.REDIRECT; }
    action add(inout bit<8> to, in bit<8> by, bit<8> more) { to = to + by ^ more; }
    table routes {
        key = { hdr.ip.dst: lpm; hdr.ip.isValid(): exact; hdr.eth.type: ternary @name("type"); hdr.ip.ttl: range; }
        actions = { forward; @defaultonly drop; add(hdr.ip.ttl, 2); }
        const default_action = drop();
        const entries = {
            (0x0a000000 &&& 0xff000000, true, _, 1 .. 9): forward(1);
            (_, true, 0x800 &&& 0xff00, _): add(3);
        }
        size = 100;
    }
    table plain { actions = { NoAction; } }
    apply {
        if (routes.apply().hit) { first.apply(hdr.ip.ttl); } else if (plain.apply().miss) return;
        switch (routes.apply().action_run) { drop: { return; } forward: add: { second.apply(v = hdr.ip.ttl); } default: { } }
        meta.two = { larger(ONE, hdr.ip.ttl), 2 }; meta.some = { meta.two.a, meta.ok };
        for (bit<8> i = 0; i < 4; i += 1) { if (i == 2) break; meta.sign = -meta.sign - (int<8>)i; }
        for (bit<8> j in 0 .. 3) { hdr.ip.sum[7:0] = j ++ 4w0 == 0 ? 8w1 : meta.two.b; continue; }
        hdr.tags.push_front(1); hdr.tags[0] = { 1, true, 3, ... }; hdr.tags[meta.port].vid = 12w1 << meta.two.a;
        wide = ~wide + 128w3; hdr.ip.src = (bit<32>)wide; hdr.l4.opt.setInvalid(); hdr.opt = {#};
        bit<32> r; hash(r, HashAlgorithm.lookup3, { hdr.ip.src, hdr.ip.dst }); Color k = Color.Red;
        if (k != Color.Green || hdr.tags[1].cfi) truncate(r); hdr.ip.sum = csum_replace2(hdr.ip.sum, 1, 2);
        switch (hdr.ip.proto) { 6: 17: { exit; } default: { mark_to_pass(); } }
    }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr.eth); b.emit(hdr.tags); b.emit(hdr); } }

ubpf(prs(), c(), dprs()) main;
