parser p(packet_in pkt, out headers hdr)(bit<8> n) {
    bit<8> left; const bit<8> one = 1; counter(3) c; value_set<bit<8>>(4) vs;
    state start { pkt.extract(hdr.eth); transition select(hdr.eth.type, left) {
        (0x800, _): ipv4; (0x86dd &&& 0xffff, 1 .. 3): ipv6; vs: other; (a): other; default: accept; } }
    @name("x") state ipv4 { left = 3; { left += 1; } transition accept; }
    state other { } }
