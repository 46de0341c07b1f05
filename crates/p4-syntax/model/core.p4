// Core library of P4_16 (P4_16 specification, appendix D).

#ifndef _CORE_P4_
#define _CORE_P4_

/// Parser errors.
error {
    NoError,
    PacketTooShort,        // extract: the packet is too short
    NoMatch,               // select: no case matches
    StackOutOfBounds,      // index past the end of a header stack
    HeaderTooShort,        // extract: longer than the varbit's maximum
    ParserTimeout,         // the parser took too long
    ParserInvalidArgument  // unsupported value
}

/// Input packet of a parser.
extern packet_in {
    /// Reads a fixed-size header and makes it valid.
    void extract<T>(out T headerLvalue);
    /// Reads a header whose varbit field has the given number of bits.
    void extract<T>(out T variableSizeHeader, in bit<32> varFieldSizeBits);
    /// Returns the next data without consuming it.
    T lookahead<T>();
    /// Skips the given number of bits.
    void advance(in bit<32> bits);
    /// Length of the packet in bytes.
    bit<32> length();
}

/// Output packet of a deparser.
extern packet_out {
    /// Writes a header if it is valid, or each valid header of a stack, a struct or a union.
    void emit<T>(in T hdr);
}

/// Stops the parser with an error if the condition is false.
extern void verify(in bool condition, in error err);

/// Does nothing.
@noWarn("unused")
action NoAction() {}

/// Match kinds of table keys.
match_kind {
    exact,
    ternary,
    lpm
}

/// Rejects the program if a compile-time condition is false.
extern bool static_assert(bool check, string message);
extern bool static_assert(bool check);

#endif
