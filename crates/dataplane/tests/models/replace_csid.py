"""End with REPLACE-C-SID, written from the pseudocode of RFC 9800 section 4.2.1 and appendix A.

A line of input: the lengths LBL and LNFL in bits, 1 or 0 for PSP, and an IPv6 packet with an SRH in
hexadecimal digits. A line of output: `forward` and the packet, `upper` for the upper-layer header, or
`error`.
"""
import sys

IPV6 = 40


def process(lbl, lnfl, psp, packet):
    srh = packet[IPV6:]
    hdr_ext_len, segments_left, last_entry = srh[1], srh[3], srh[4]
    positions = 128 // lnfl
    index_bits = (positions - 1).bit_length()

    def segment(entry):
        return int.from_bytes(srh[8 + 16 * entry:24 + 16 * entry], "big")

    def csid(entry, index):
        # Bits [index*LNFL..(index+1)*LNFL-1], where bit 0 is the most significant.
        return segment(entry) >> (128 - (index + 1) * lnfl) & (1 << lnfl) - 1

    address = int.from_bytes(packet[24:40], "big")
    index = address & (1 << index_bits) - 1
    hop_limit = packet[7]

    def ends(left, index):
        return left == 0 and (index == 0 or csid(0, index - 1) == 0)

    if ends(segments_left, index):  # S02
        return "upper", b""
    if hop_limit <= 1:  # S05
        return "error", b""
    max_le = hdr_ext_len // 2 - 1  # S08
    if index != 0:  # S09
        if last_entry > max_le or segments_left > last_entry:  # S10
            return "error", b""
        index -= 1  # S13
        if csid(segments_left, index) == 0:  # S14
            segments_left -= 1
            return "forward", leave(packet, segments_left, segment(segments_left), psp and segments_left == 0)
    else:
        if last_entry > max_le or segments_left > last_entry + 1:  # S21
            return "error", b""
        segments_left -= 1  # S24
        index = positions - 1  # S25
    # S27: bits [LBL..LBL+LNFL-1] of the destination address.
    shift = 128 - lbl - lnfl
    ones = (1 << lnfl) - 1 << shift
    address = address & ~ones | csid(segments_left, index) << shift
    address = address & ~((1 << index_bits) - 1) | index
    return "forward", leave(packet, segments_left, address, psp and ends(segments_left, index))


def leave(packet, segments_left, address, pops):
    """Returns the packet with these values; without its SRH if it pops (RFC 8986 section 4.16.1.2)."""
    header, srh = bytearray(packet[:IPV6]), bytearray(packet[IPV6:])
    header[7] -= 1
    header[24:40] = address.to_bytes(16, "big")
    srh[3] = segments_left
    if not pops:
        return bytes(header + srh)
    length = 8 * (srh[1] + 1)
    header[6] = srh[0]
    header[4:6] = (int.from_bytes(header[4:6], "big") - length).to_bytes(2, "big")
    return bytes(header + srh[length:])


for line in sys.stdin:
    lbl, lnfl, psp, packet = line.split()
    verdict, out = process(int(lbl), int(lnfl), psp == "1", bytes.fromhex(packet))
    print(verdict, out.hex(), flush=True)
