"""The mobile user plane, written from the pseudocode of RFC 9433 section 6. Packets are read and written
by scapy, with its GTP-U.

A line of input: the behavior, its arguments as name=value, and a packet in hexadecimal digits. A line of
output: `forward` and the packet, `kernel` for signalling, or `drop`. For `make`, a destination and a number:
`forward` and a packet with GTP-U.
"""
import ipaddress
import random
import struct
import sys

from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrSegmentRouting
from scapy.packet import Raw

GTP = 2152
G_PDU = 255


class Drop(Exception):
    pass


class Kernel(Exception):
    pass


def number(address):
    return int(ipaddress.ip_address(address))


def ipv6(value):
    return str(ipaddress.IPv6Address(value))


def insert(address, value, at, bits):
    """Replaces `bits` bits of an address from position `at` on."""
    shift = 128 - at - bits
    mask = (1 << bits) - 1 << shift
    return ipv6(number(address) & ~mask | value << shift)


def extract(address, at, bits):
    return number(address) >> 128 - at - bits & (1 << bits) - 1


def srh_of(packet):
    """Returns Segments Left, the segment list, and the next header and payload of an IPv6 packet."""
    raw = bytes(packet)
    if raw[6] != 43:
        return None, [], raw[6], raw[40:]
    srh = raw[40:]
    length = 8 * (srh[1] + 1)
    if srh[2] != 4:
        raise Drop
    left, last = srh[3], srh[4]
    if length != 8 + 16 * (last + 1) or left > last + 1 or len(srh) < length:
        raise Drop
    segments = [ipv6(int.from_bytes(srh[8 + 16 * n:24 + 16 * n], "big")) for n in range(last + 1)]
    return left, segments, srh[0], srh[length:]


def read_gtp(payload):
    """Returns the T-PDU and Args.Mob.Session (section 6.1) of a UDP datagram."""
    if len(payload) < 16:
        raise Drop
    udp = UDP(payload)
    if udp.dport != GTP or udp.len != len(payload):
        raise Drop
    flags, kind, length, teid = struct.unpack("!BBHI", payload[8:16])
    if flags >> 5 != 1 or not flags & 0x10 or length + 16 != len(payload):
        raise Drop
    if kind != G_PDU:
        raise Kernel
    size, qfi, rqi, containers = 16, 0, 0, 0
    if flags & 7:
        size += 4
        if len(payload) < size:
            raise Drop
        following = payload[size - 1] if flags & 4 else 0
        count = 0
        while following:
            count += 1
            if count > 4 or len(payload) < size + 4:
                raise Drop
            length = 4 * payload[size]
            if not length or len(payload) < size + length:
                raise Drop
            if following == 0x85:
                containers += 1
                if containers > 1:
                    raise Drop
                # 3GPP TS 38.415 section 5.5.2: RQI is in downlinks.
                qfi = payload[size + 2] & 0x3f
                rqi = payload[size + 2] >> 6 & 1 if payload[size + 1] >> 4 == 0 else 0
            following = payload[size + length - 1]
            size += length
    if size >= len(payload):
        raise Drop
    return payload[size:], (qfi << 2 | rqi << 1) << 32 | teid


def next_header_of(pdu):
    if len(pdu) < 20:
        raise Drop
    version = pdu[0] >> 4
    if version not in (4, 6):
        raise Drop
    return 4 if version == 4 else 41


def encapsulate(arguments, pdu, source, segments, hop_limit, traffic_class):
    """H.Encaps or H.Encaps.Red with these segments, in path order."""
    following = next_header_of(pdu)
    path = list(segments)
    in_list = path[1:] if arguments["form"] == "reduced" else path
    outer = IPv6(src=source, dst=path[0], hlim=hop_limit, tc=traffic_class)
    if not in_list:
        outer.nh = following
        return bytes(outer / Raw(pdu))
    srh = IPv6ExtHdrSegmentRouting(addresses=in_list[::-1], segleft=len(path) - 1,
                                   lastentry=len(in_list) - 1, nh=following)
    return bytes(outer / srh / Raw(pdu))


def decapsulate_gtp(behavior, arguments, raw):
    """End.M.GTP6.D (section 6.3), End.M.GTP6.D.Di (section 6.4) and H.M.GTP4.D (section 6.7)."""
    segments = arguments["segments"].split(",")
    args = int(arguments.get("args", 0))
    source = arguments["source"]
    if behavior == "H.M.GTP4.D":
        outer = IP(raw)
        if outer.proto != 17 or outer.frag or outer.flags.MF:
            raise Drop
        pdu, session = read_gtp(raw[20:outer.len])
        if outer.ttl <= 1:
            raise Drop
        # S02, S03: the IPv4 addresses, and the session.
        segments[-1] = insert(segments[-1], number(outer.dst) << 40 | session, args, 72)
        source = insert(source, number(outer.src), int(arguments["source_args"]), 32)
        return encapsulate(arguments, pdu, source, segments, outer.ttl - 1, outer.tos)
    outer = IPv6(raw)
    left, _, protocol, payload = srh_of(outer)
    if left or protocol != 17:
        raise Drop
    pdu, session = read_gtp(payload)
    if outer.hlim <= 1:
        raise Drop
    if behavior == "End.M.GTP6.D.Di":
        segments[-1] = outer.dst  # S08
        if args:
            segments[-2] = insert(segments[-2], session, args, 40)
    else:
        segments[-1] = insert(segments[-1], session, args, 40)  # S08
    return encapsulate(arguments, pdu, source, segments, outer.hlim - 1, outer.tc)


def encapsulate_gtp(behavior, arguments, raw):
    """End.M.GTP4.E (section 6.6) and End.M.GTP6.E (section 6.5)."""
    outer = IPv6(raw)
    left, segments, protocol, pdu = srh_of(outer)
    is_ipv4 = behavior == "End.M.GTP4.E"
    if is_ipv4 and left or not is_ipv4 and left != 1:
        raise Drop
    if protocol not in (4, 41) or len(pdu) < 20 or outer.hlim <= 1:
        raise Drop
    at = int(arguments["length"])
    if is_ipv4:
        destination = str(ipaddress.IPv4Address(extract(outer.dst, at, 32)))
        source = str(ipaddress.IPv4Address(extract(outer.src, int(arguments["source_args"]), 32)))
        for address in (destination, source):
            if address.split(".")[0] in ["0", "127"] or int(address.split(".")[0]) >= 224:
                raise Drop
        at += 32
        packet = IP(src=source, dst=destination, ttl=outer.hlim - 1, tos=outer.tc, flags="DF", id=0)
    else:
        first = ipaddress.ip_address(segments[0])
        if first.is_multicast or first.is_link_local or number(first) >> 64 == 0:
            raise Drop
        packet = IPv6(src=arguments["source"], dst=segments[0], hlim=outer.hlim - 1, tc=outer.tc)
    session = extract(outer.dst, at, 40)
    qfi, rqi, teid = session >> 34, session >> 33 & 1, session & 0xffffffff
    tunnel = GTP_U_Header(teid=teid, gtp_type=G_PDU)
    direction = arguments.get("pdu_session")
    if direction == "downlink":
        tunnel = tunnel / GTPPDUSessionContainer(type=0, RQI=rqi, QFI=qfi)
    elif direction == "uplink":
        tunnel = tunnel / GTPPDUSessionContainer(type=1, QFI=qfi)
    # The source port is a hash of the flow, and the caller's to check.
    udp = UDP(sport=0, dport=GTP, chksum=0) if is_ipv4 else UDP(sport=0, dport=GTP)
    return bytes(packet / udp / tunnel / Raw(pdu))


def make(destination, seed):
    """Returns a packet of a GTP-U peer."""
    chosen = random.Random(seed)
    teid, ttl, tc = chosen.randrange(1 << 32), chosen.randrange(2, 256), chosen.randrange(256)
    header = GTP_U_Header(teid=teid, gtp_type=G_PDU)
    if chosen.random() < 0.3:
        header.S, header.seq = 1, chosen.randrange(1 << 16)
    if chosen.random() < 0.7:
        kind = chosen.randrange(2)
        container = GTPPDUSessionContainer(type=kind, QFI=chosen.randrange(64))
        if kind == 0:
            container.RQI = chosen.randrange(2)
        header = header / container
    payload = UDP(sport=1, dport=2) / Raw(chosen.randbytes(chosen.randrange(1200)))
    if chosen.random() < 0.5:
        inner = IP(src="192.0.2.1", dst="198.51.100.2") / payload
    else:
        inner = IPv6(src="2001:db8::1", dst="2001:db8::2") / payload
    if ":" in destination:
        outer = IPv6(src="fd00:a::2", dst=destination, hlim=ttl, tc=tc)
    else:
        outer = IP(src="10.0.1.2", dst=destination, ttl=ttl, tos=tc)
    return bytes(outer / UDP(sport=GTP, dport=GTP) / header / inner)


for line in sys.stdin:
    behavior, *arguments, packet = line.split()
    if behavior == "make":
        print("forward", make(arguments[0], int(packet)).hex(), flush=True)
        continue
    arguments = dict(argument.split("=") for argument in arguments)
    packet = bytes.fromhex(packet)
    process = encapsulate_gtp if behavior.endswith(".E") else decapsulate_gtp
    try:
        print("forward", process(behavior, arguments, packet).hex(), flush=True)
    except Drop:
        print("drop", flush=True)
    except Kernel:
        print("kernel", flush=True)
