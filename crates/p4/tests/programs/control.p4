control c(inout headers hdr, inout meta_t meta)() {
    Register<bit<32>, bit<32>>(16) reg; bit<8> x = 1;
    action drop() { mark_to_drop(); exit; }
    action set(in bit<8> a, bit<9> port) { meta.port = port; return; }
    table t {
        key = { hdr.ip.dst: lpm @name("dst"); hdr.ip.src & 3: exact; }
        actions = { @defaultonly drop; .NoAction; set(3); }
        const entries = { (1 &&& 3, _): set(1); const priority = 3: (0, 1): drop() @x("y"); }
        const default_action = drop(); size = 1024; @y implementation = h(4);
    }
    apply {
        if (t.apply().hit) { x = 1; } else if (x == 2) x = 2; else { ; }
        switch (t.apply().action_run) { drop: set: { x = 3; } default: { } }
        meta_t copy; bit<8> y = x[3:0] ++ 4w0; h[2] stack; stack[0] = copy.h;
        for (bit<8> i = 0; i < 4; i += 1, x -= 1) { if (i == 2) break; continue; }
        for (bit<8> j in 1 .. 3) { x >>= 1; x |+|= 2; }
        const bit<8> two = 2; c2.apply(hdr); reg.write(1, 2); f<bit<8>>(x);
    } }
    control empty() { apply { } } bit<8> twice(in bit<8> a) { return 2 * a; }
    top(p(), c(), empty()) main;
