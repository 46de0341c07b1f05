// Architecture of a tenant's program: a parser, a pipeline and a deparser. The interface is that of p4c's
// uBPF back end, so programs run with either compiler.

#ifndef _UBPF_MODEL_P4_
#define _UBPF_MODEL_P4_

#ifndef UBPF_MODEL_VERSION
#define UBPF_MODEL_VERSION 20200515
#endif

#include <core.p4>

const bit<32> __ubpf_model_version = UBPF_MODEL_VERSION;

match_kind {
    range,
    optional
}

/// Verdict on the packet.
enum ubpf_action {
    ABORT,    // the program failed
    DROP,
    PASS,
    REDIRECT  // to output_port
}

/// Metadata and verdict of a packet.
struct standard_metadata {
    bit<32>     input_port;     // ingress port
    bit<32>     packet_length;  // bytes
    ubpf_action output_action;  // PASS unless the program says otherwise
    bit<32>     output_port;    // for REDIRECT
    bool        clone;          // send a copy to clone_port
    bit<32>     clone_port;
}

/// Sets output_action.
extern void mark_to_drop();
extern void mark_to_pass();

/// Values that persist across packets, by index.
extern Register<T, S> {
    Register(bit<32> size);
    T read(in S index);
    void write(in S index, in T value);
}

/// Time since boot, in nanoseconds.
extern bit<48> ubpf_time_get_ns();

/// Limits the output packet to `len` bytes.
extern void truncate(in bit<32> len);

enum HashAlgorithm {
    lookup3
}

/// Computes a hash over up to 64 bits of data.
extern void hash<D>(out bit<32> result, in HashAlgorithm algo, in D data);

/// Updates a checksum after a change of one word (RFC 1624).
extern bit<16> csum_replace2(in bit<16> csum, in bit<16> old, in bit<16> new);
extern bit<16> csum_replace4(in bit<16> csum, in bit<32> old, in bit<32> new);

parser parse<H, M>(packet_in packet, out H headers, inout M meta, inout standard_metadata std);
control pipeline<H, M>(inout H headers, inout M meta, inout standard_metadata std);
@deparser
control deparser<H>(packet_out b, in H headers);

package ubpf<H, M>(parse<H, M> prs, pipeline<H, M> p, deparser<H> dprs);

#endif
