// Tables with every match kind, without keys, and with constant entries; registers.
#include <ubpf_model.p4>

header h_t {
    bit<16> e;
    bit<32> l;
    bit<9>  t;
    bit<7>  rest;
    bit<12> r;
    bit<4>  rest2;
    bit<8>  o;
}
struct headers { h_t h; }
struct meta_t { }

parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    value_set<bit<16>>(4) known;
    state start {
        p.extract(hdr.h);
        transition select(hdr.h.e) { known: accept; default: accept; }
    }
}

control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    Register<bit<12>, bit<32>>(8) seen;
    Register<int<12>, bit<32>>(2) balance;

    action set(bit<9> t, bit<16> e) {
        hdr.h.t = t;
        hdr.h.e = e;
    }
    action drop() { mark_to_drop(); }
    action count() { seen.write(0, 1); balance.write(0, -1); }
    table all {
        key = {
            hdr.h.e: exact @name("e");
            hdr.h.l: lpm @name("l");
            hdr.h.t: ternary @name("t");
            hdr.h.r: range @name("r");
            hdr.h.o: optional @name("o");
        }
        actions = { set; drop; @defaultonly NoAction; @tableonly count; }
        default_action = drop();
        size = 8;
    }
    table route {
        key = { hdr.h.l: lpm @name("l"); }
        actions = { set; drop; }
        default_action = drop();
        size = 200000;
    }
    table nothing {
        actions = { set; drop; }
        default_action = drop();
    }
    table fixed {
        key = { hdr.h.e: exact @name("e"); }
        actions = { drop; set; }
        const default_action = drop();
        const entries = { 1: drop(); }
    }
    apply { all.apply(); route.apply(); nothing.apply(); fixed.apply(); }
}

control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr.h); } }

ubpf(prs(), c(), dprs()) main;
