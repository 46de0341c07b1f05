// What every P4_16 program has (P4_16 specification, appendix D).

#ifndef _CORE_P4_
#define _CORE_P4_

/// Why a parser stops.
error {
    NoError,
    PacketTooShort,        // extract: the packet has fewer bits
    NoMatch,               // select: no case is met
    StackOutOfBounds,      // an element that a header stack does not have
    HeaderTooShort,        // extract: more bits than a varbit has room for
    ParserTimeout,         // the parser took too long
    ParserInvalidArgument  // a value that the parser cannot do with
}

/// The packet that a parser reads.
extern packet_in {
    /// Reads a header of one size, and makes it valid.
    void extract<T>(out T headerLvalue);
    /// The same with one varbit field, of so many bits.
    void extract<T>(out T variableSizeHeader, in bit<32> varFieldSizeBits);
    /// What extract would read next, without reading it.
    T lookahead<T>();
    /// Goes on by so many bits.
    void advance(in bit<32> bits);
    /// The packet's bytes.
    bit<32> length();
}

/// The packet that a deparser writes.
extern packet_out {
    /// Writes a header if it is valid; of a stack, a struct or a union each one that is.
    void emit<T>(in T hdr);
}

/// Stops the parser with an error where the condition does not hold.
extern void verify(in bool condition, in error err);

/// Does nothing.
@noWarn("unused")
action NoAction() {}

/// How a table's key is compared.
match_kind {
    exact,
    ternary,
    lpm
}

/// Refuses the program where a condition does not hold that is known when it is compiled.
extern bool static_assert(bool check, string message);
extern bool static_assert(bool check);

#endif
