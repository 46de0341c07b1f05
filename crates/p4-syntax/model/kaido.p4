// Counters, meters and digests with the names of the Portable Switch Architecture (PSA 1.2, sections 7.7,
// 7.8 and 7.11), for programs of the model `ubpf`.

#ifndef _KAIDO_P4_
#define _KAIDO_P4_

#include <ubpf_model.p4>

/// Units of a counter.
enum PSA_CounterType_t {
    PACKETS,
    BYTES,
    PACKETS_AND_BYTES
}

/// Counts packets and their bytes at input, by index. W is a type of up to 64 bits, at whose width counts
/// wrap. An index out of range is ignored.
extern Counter<W, S> {
    Counter(bit<32> n_counters, PSA_CounterType_t type);
    void count(in S index);
}

/// Counter with one cell for each entry of a table, and one for the default action. The table has the
/// property `psa_direct_counter = name;`, and its actions call count().
extern DirectCounter<W> {
    DirectCounter(PSA_CounterType_t type);
    void count();
}

/// Units of a meter's rates.
enum PSA_MeterType_t {
    PACKETS,
    BYTES
}

/// Color of a packet: green conforms to both rates, yellow to the peak rate only, red to neither.
enum PSA_MeterColor_t {
    RED,
    GREEN,
    YELLOW
}

/// Two-rate three-color meters (RFC 2698), by index. The packet's previous color (by default green) is
/// kept or becomes worse. A meter without rates, and an index out of range, limit nothing.
extern Meter<S> {
    Meter(bit<32> n_meters, PSA_MeterType_t type);
    PSA_MeterColor_t execute(in S index, in PSA_MeterColor_t color);
    PSA_MeterColor_t execute(in S index);
}

/// Meter with one cell for each entry of a table. The table has the property `psa_direct_meter = name;`,
/// and its actions call execute().
extern DirectMeter {
    DirectMeter(PSA_MeterType_t type);
    PSA_MeterColor_t execute(in PSA_MeterColor_t color);
    PSA_MeterColor_t execute();
}

/// Sends values to the control plane. Values that it does not read in time are lost.
extern Digest<T> {
    Digest();
    void pack(in T data);
}

#endif
