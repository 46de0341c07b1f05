"""What somebody does with p4runtime-shell on `kaido p4 run police_customers.p4`: counters, meters and
digests of a running program. Argument: the server's address."""

import struct
import sys
import time

import grpc
from p4.v1 import p4runtime_pb2 as p4rt
import p4runtime_sh.shell as sh
from p4runtime_sh.p4runtime import P4RuntimeWriteException

DEVICE = 1
SIZE = 34
(address,) = sys.argv[1:]


def ipv4(source, dscp=0):
    ethernet = b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0"
    source = bytes(source)
    ip = struct.pack(
        "!BBHHHBBH4s4s", 0x45, dscp << 2, 20, 1, 0, 64, 17, 0, source, b"\x0b\0\0\1"
    )
    return ethernet + ip


ARP = b"\xff" * 6 + b"\x02\0\0\0\0\x02\x08\x06" + b"\0" * 28


def send(payload):
    packet = p4rt.PacketOut(payload=payload)
    sh.client.stream_out_q.put(p4rt.StreamMessageRequest(packet=packet))


def heard():
    message = sh.client.get_stream_packet("packet", timeout=10)
    assert message is not None, "no packet within 10 s"
    return message.packet.payload


def color(source, dscp=0):
    """What becomes of a packet, by its color. ARP, which always comes back, is behind it."""
    send(ipv4(source, dscp))
    send(ARP)
    first = heard()
    if first == ARP:
        return "red"
    assert heard() == ARP
    return "yellow" if first[15] >> 2 == 8 else "green"


def customer(network, number, rates=None):
    entry = sh.TableEntry("c.customers")(action="c.customer")
    entry.match["src"] = network
    entry.action["number"] = str(number)
    if rates:
        config = entry.meter_config
        config.cir, config.cburst, config.pir, config.pburst = rates
    return entry


def counted(name):
    cells = sh.CounterEntry(name).read()
    return {one.index: (one.packet_count, one.byte_count) for one in cells if one.packet_count}


def directly():
    """What entries have counted, by their first byte; None for the default action."""
    found = {}
    for one in sh.DirectCounterEntry("c.all").read():
        entry = one.table_entry.msg()
        key = entry.match[0].lpm.value[0] if entry.match else None
        found[key] = (one.packet_count, one.byte_count)
    return found


sh.setup(device_id=DEVICE, grpc_addr=address, election_id=(0, 10), verbose=False)

# ---- counters of entries ----
assert color([10, 0, 0, 1]) == "red", "nobody's customer"
customer("10.0.0.0/8", 1).insert()
customer("20.0.0.0/8", 2).insert()
assert [color([10, 0, 0, 1]), color([10, 0, 0, 2]), color([20, 0, 0, 1])] == ["green"] * 3
assert directly() == {10: (2, 2 * SIZE), 20: (1, SIZE)}, directly()
# A client may set a count, which continues from there; another action keeps it.
cell = sh.DirectCounterEntry("c.all")
cell.table_entry.match["src"] = "10.0.0.0/8"
cell.packet_count, cell.byte_count = 100, 5000
cell.modify()
assert color([10, 0, 0, 1]) == "green"
customer("10.0.0.0/8", 3).modify()
assert directly()[10] == (101, 5000 + SIZE), directly()
# A read of entries can include their counts.
request = p4rt.ReadRequest(device_id=DEVICE)
entry = request.entities.add().table_entry
entry.CopyFrom(customer("10.0.0.0/8", 3).msg())
entry.ClearField("action")
entry.counter_data.SetInParent()
entry.meter_config.SetInParent()
answer = list(sh.client.stub.Read(request))
(entry,) = [one.table_entry for part in answer for one in part.entities]
assert entry.counter_data.packet_count == 101 and not entry.HasField("meter_config"), entry

# ---- rates of entries ----
# One byte per second: the time of the test adds no packet to the burst.
customer("10.0.0.0/8", 3, (1, 2 * SIZE, 1, 3 * SIZE)).modify()
said = [color([10, 0, 0, 1]) for _ in range(5)]
assert said == ["green", "green", "yellow", "red", "red"], said
assert color([20, 0, 0, 1]) == "green", "another customer"
assert counted("c.marked") == {3: (1, SIZE)}, counted("c.marked")
assert {at: packets for at, (packets, _) in counted("c.dropped").items()} == {3: 2}
rate = sh.DirectMeterEntry("c.rate")
rate.table_entry.match["src"] = "10.0.0.0/8"
rate.cir, rate.cburst, rate.pir, rate.pburst = 1, SIZE, 1, 2 * SIZE
rate.modify()
assert [(one.cburst, one.pburst) for one in sh.DirectMeterEntry("c.rate").read() if one.cburst] == [
    (SIZE, 2 * SIZE)
]
# A marked packet keeps its color, and consumes the peak burst.
said = [color([10, 0, 0, 1], dscp=8), color([10, 0, 0, 1]), color([10, 0, 0, 1])]
assert said == ["yellow", "green", "red"], said

# ---- a meter and counters by index ----
uplink = sh.MeterEntry("c.uplink")
uplink.index = 0
uplink.cir, uplink.cburst, uplink.pir, uplink.pburst = 0, 1, 0, 1
uplink.modify()
assert [color([20, 0, 0, 1]), color([20, 0, 0, 1])] == ["green", "red"]
(found,) = sh.MeterEntry("c.uplink").read()
assert (found.cburst, found.pburst) == (1, 1), found
uplink.clear_config()
uplink.modify()
assert color([20, 0, 0, 1]) == "green"
dropped = sh.CounterEntry("c.dropped")
dropped.index = 3
dropped.packet_count = 7
dropped.modify()
assert counted("c.dropped")[3][0] == 7
try:
    dropped.index = 512
    dropped.modify()
    raise AssertionError("there are 512 cells")
except P4RuntimeWriteException as error:
    assert "512" in str(error), error

# ---- digests ----
(digest,) = sh.client.get_p4info().digests


def list_of_digests():
    message = sh.client.get_stream_packet("digest", timeout=10)
    assert message is not None, "no digest within 10 s"
    return message.digest


def strangers(lists):
    return [tuple(b.bitstring for b in one.struct.members) for one in lists.data]


def acknowledge(lists):
    ack = p4rt.StreamMessageRequest()
    ack.digest_ack.digest_id, ack.digest_ack.list_id = lists.digest_id, lists.list_id
    sh.client.stream_out_q.put(ack)


wanted = sh.DigestEntry(digest.preamble.name)
wanted.max_timeout_ns = 0
wanted.max_list_size = 0
wanted.ack_timeout_ns = 60_000_000_000
wanted.insert()
assert color([30, 0, 0, 1]) == "red"
first = list_of_digests()
assert first.digest_id == digest.preamble.id
assert strangers(first) == [(b"\xff", b"\x1e\0\0\x01")], first
# The same value is not sent again before the first list is acknowledged; another value is.
assert color([30, 0, 0, 1]) == "red" and color([30, 0, 0, 2]) == "red"
assert strangers(list_of_digests()) == [(b"\xff", b"\x1e\0\0\x02")]
acknowledge(first)
assert color([30, 0, 0, 1]) == "red"
again = list_of_digests()
assert strangers(again) == [(b"\xff", b"\x1e\0\0\x01")] and again.list_id > first.list_id
# Lists of three values, or a shorter one after a timeout.
wanted.max_timeout_ns = 60_000_000_000
wanted.max_list_size = 3
wanted.modify()
for last in range(10, 13):
    assert color([30, 0, 0, last]) == "red"
assert [one[1][3] for one in strangers(list_of_digests())] == [10, 11, 12]
wanted.max_timeout_ns = 50_000_000
wanted.max_list_size = 1000
wanted.modify()
began = time.monotonic()
assert color([30, 0, 0, 20]) == "red"
assert [one[1][3] for one in strangers(list_of_digests())] == [20]
assert time.monotonic() - began >= 0.05
wanted.delete()
assert color([30, 0, 0, 30]) == "red"
assert sh.client.stream_in_q["digest"].empty(), "nobody asks for them any more"

# ---- another version takes over ----
request = p4rt.GetForwardingPipelineConfigRequest(device_id=DEVICE)
config = sh.client.stub.GetForwardingPipelineConfig(request).config
before = directly(), counted("c.dropped"), counted("c.marked")
request = p4rt.SetForwardingPipelineConfigRequest(device_id=DEVICE)
request.action = request.RECONCILE_AND_COMMIT
request.election_id.low = 10
request.config.CopyFrom(config)
sh.client.stub.SetForwardingPipelineConfig(request)
assert (directly(), counted("c.dropped"), counted("c.marked")) == before
(found,) = [one for one in sh.DirectMeterEntry("c.rate").read() if one.cburst]
assert found.pburst == 2 * SIZE
request.action = request.VERIFY_AND_COMMIT
sh.client.stub.SetForwardingPipelineConfig(request)
assert directly() == {} and counted("c.dropped") == {}
sh.teardown()
print("all well")
