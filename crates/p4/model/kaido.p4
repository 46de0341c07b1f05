// Counters, meters and digests, as the Portable Switch Architecture names them (PSA 1.2, sections 7.7,
// 7.8 and 7.11), for programs of the model `ubpf`.

#ifndef _KAIDO_P4_
#define _KAIDO_P4_

#include <ubpf_model.p4>

/// What a counter counts.
enum PSA_CounterType_t {
    PACKETS,
    BYTES,
    PACKETS_AND_BYTES
}

/// Packets and their bytes as they came, by index. W is a number of up to 64 bits, beyond which counts
/// begin anew; nothing is counted under an index that is not there.
extern Counter<W, S> {
    Counter(bit<32> n_counters, PSA_CounterType_t type);
    void count(in S index);
}

/// The same, one for each entry of a table, and one for what the table does by default:
/// `psa_direct_counter = name;` is the table's property. Counted in the table's actions.
extern DirectCounter<W> {
    DirectCounter(PSA_CounterType_t type);
    void count();
}

/// What a meter's rates are in.
enum PSA_MeterType_t {
    PACKETS,
    BYTES
}

/// How a packet fits the rates: both, the peak rate only, none.
enum PSA_MeterColor_t {
    RED,
    GREEN,
    YELLOW
}

/// Meters of two rates and three colours (RFC 2698), by index. The colour that a packet has already, or
/// green, is kept or becomes worse. Where nobody has set a meter's rates nothing is too much, and under an
/// index that is not there.
extern Meter<S> {
    Meter(bit<32> n_meters, PSA_MeterType_t type);
    PSA_MeterColor_t execute(in S index, in PSA_MeterColor_t color);
    PSA_MeterColor_t execute(in S index);
}

/// The same, one for each entry of a table: `psa_direct_meter = name;`. Executed in the table's actions.
extern DirectMeter {
    DirectMeter(PSA_MeterType_t type);
    PSA_MeterColor_t execute(in PSA_MeterColor_t color);
    PSA_MeterColor_t execute();
}

/// Values for the control plane. What it does not take in time is lost.
extern Digest<T> {
    Digest();
    void pack(in T data);
}

#endif
