"""A base station or a UPF with GTP-U by scapy, on the kernel's UDP sockets.

    mobile.py upf                  answers G-PDUs and echo requests
    mobile.py gnb UPF COUNT        sends G-PDUs in turn and prints what comes back, a JSON line
"""
import json
import select
import socket
import sys

from scapy.contrib.gtp import GTP_U_Header, GTPEchoRequest, GTPEchoResponse, GTPPDUSessionContainer
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Raw

PORT = 2152


def opened(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_DGRAM)
    listening.bind((address, PORT))
    listening.settimeout(5)
    return listening


def session(message):
    """Returns the fields of a G-PDU that the network has to keep."""
    container = message[GTPPDUSessionContainer]
    inner = message[IPv6] if IPv6 in message else message[IP]
    return {
        "teid": message.teid, "type": container.type, "qfi": container.QFI,
        "rqi": container.RQI if container.type == 0 else 0,
        "payload": bytes(inner[Raw].load).decode(), "family": inner.version,
    }


def upf():
    sockets = [opened("10.0.9.2"), opened("fd00:b::2")]
    for listening in sockets:
        listening.setblocking(False)
    print("ready", flush=True)
    while True:
        for ready in select.select(sockets, [], [])[0]:
            data, peer = ready.recvfrom(65535)
            message = GTP_U_Header(data)
            if message.gtp_type == 1:
                answer = GTP_U_Header(gtp_type=2, teid=0, S=1, seq=message.seq) / GTPEchoResponse()
                ready.sendto(bytes(answer), peer[:2])
                continue
            got = session(message)
            # Downlink packets of the same session, with reflective QoS.
            inner = IP if got["family"] == 4 else IPv6
            answer = (GTP_U_Header(teid=got["teid"] ^ 0xffffffff, gtp_type=255)
                      / GTPPDUSessionContainer(type=0, QFI=got["qfi"], RQI=1)
                      / inner() / UDP(sport=2, dport=1) / Raw(json.dumps(got)))
            # The address of the base station is known from signalling: End.M.GTP6.E has its own source.
            to = "fd00:a::2" if ":" in peer[0] else peer[0]
            ready.sendto(bytes(answer), (to, PORT))


def gnb(to, count):
    socket_ = opened("fd00:a::2" if ":" in to else "10.0.1.2")
    for number in range(count):
        inner = IP if number % 2 else IPv6
        text = f"packet {number} " + "x" * (number * 37 % 1200)
        message = (GTP_U_Header(teid=0x80000000 + number, gtp_type=255)
                   / GTPPDUSessionContainer(type=1, QFI=number % 64)
                   / inner() / UDP(sport=1, dport=2) / Raw(text))
        # The first packets may be lost while neighbors are unknown.
        for _ in range(10):
            socket_.sendto(bytes(message), (to, PORT))
            try:
                data, peer = socket_.recvfrom(65535)
                break
            except TimeoutError:
                continue
        else:
            sys.exit(f"no answer to packet {number}")
        answer = session(GTP_U_Header(data))
        print(json.dumps({"sent": text, "peer": peer[0], "answer": answer}), flush=True)
    echo = GTP_U_Header(gtp_type=1, teid=0, S=1, seq=7) / GTPEchoRequest()
    for _ in range(10):
        socket_.sendto(bytes(echo), (to, PORT))
        try:
            answer = GTP_U_Header(socket_.recvfrom(65535)[0])
            print(json.dumps({"echo": answer.gtp_type, "seq": answer.seq}), flush=True)
            return
        except TimeoutError:
            continue
    sys.exit("no answer to the echo request")


if sys.argv[1] == "upf":
    upf()
else:
    gnb(sys.argv[2], int(sys.argv[3]))
