"""What somebody does with p4runtime-shell on `kaido p4 run firewall.p4`, and what packets meet then.
Arguments: the server's address, an object of another program."""

import struct
import sys

import grpc
from google.rpc import code_pb2
from p4.v1 import p4runtime_pb2 as p4rt
import p4runtime_sh.shell as sh
from p4runtime_sh.p4runtime import P4RuntimeClient, P4RuntimeWriteException

DEVICE = 1
address, other_object = sys.argv[1:]


def udp(source, port):
    """A packet to a port of 192.0.2.1."""
    ethernet = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x08\0"
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28, 0, 0, 64, 17, 0, bytes(source), b"\xc0\0\x02\x01")
    return ethernet + ip + struct.pack("!HHHH", 1000, port, 8, 0)


ARP = b"\xff" * 6 + b"\x02\0\0\0\0\x02\x08\x06" + b"\0" * 28


def send(payload):
    packet = p4rt.PacketOut(payload=payload)
    sh.client.stream_out_q.put(p4rt.StreamMessageRequest(packet=packet))


def heard():
    message = sh.client.get_stream_packet("packet", timeout=10)
    assert message is not None, "no packet within 10 s"
    return message.packet.payload


def passes(source, port):
    """Whether a packet comes back. ARP, which always does, is behind it."""
    packet = udp(source, port)
    send(packet)
    send(ARP)
    first = heard()
    if first == packet:
        assert heard() == ARP
        return True
    assert first == ARP, first
    return False


def rule(source, port=None, priority=10, action="c.allow"):
    entry = sh.TableEntry("c.rules")(action=action)
    entry.match["src"] = source
    if port:
        entry.match["dport"] = port
    entry.priority = priority
    return entry


def refused(do, code):
    try:
        do()
    except P4RuntimeWriteException as error:
        found = [code_pb2.Code.Name(one.canonical_code) for _, one in error.errors]
        assert found == [code], f"{found} is not {code}: {error}"
        return error.errors[0][1].message
    raise AssertionError(f"not refused with {code}")


def rules():
    return list(sh.TableEntry("c.rules").read())


sh.setup(device_id=DEVICE, grpc_addr=address, election_id=(0, 10), verbose=False)

# ---- one entry ----
assert not passes([10, 1, 1, 1], 80), "closed by default"
rule("10.0.0.0&&&255.0.0.0", "80..443").insert()
assert passes([10, 1, 1, 1], 80) and passes([10, 9, 9, 9], 443)
assert not passes([10, 1, 1, 1], 444) and not passes([11, 1, 1, 1], 80)
rule("10.1.0.0&&&255.255.0.0", priority=20, action="c.deny").insert()
assert not passes([10, 1, 1, 1], 80) and passes([10, 2, 1, 1], 80)
rule("10.1.0.0&&&255.255.0.0", priority=20, action="c.allow").modify()
assert passes([10, 1, 1, 1], 9999)
rule("10.1.0.0&&&255.255.0.0", priority=20).delete()
assert not passes([10, 1, 1, 1], 9999) and passes([10, 1, 1, 1], 80)

# ---- registers ----
info = sh.client.get_p4info()
register = info.registers[0].preamble.id


def counted():
    request = p4rt.ReadRequest(device_id=DEVICE)
    request.entities.add().register_entry.register_id = register
    answer = list(sh.client.stub.Read(request))
    cells = [one.register_entry for part in answer for one in part.entities]
    return {one.index.index: int.from_bytes(one.data.bitstring, "big") for one in cells}


before = counted()
assert before[0] > 0 and before[1] > 0, before
assert passes([10, 1, 1, 1], 80)
assert counted() == {0: before[0] + 1, 1: before[1]}
update = p4rt.Update(type=p4rt.Update.MODIFY)
update.entity.register_entry.register_id = register
update.entity.register_entry.index.index = 0
update.entity.register_entry.data.bitstring = b"\x07"
sh.client.write_update(update)
assert counted()[0] == 7

# ---- a batch, all or nothing ----
def batch(networks, atomicity=p4rt.WriteRequest.ROLLBACK_ON_ERROR):
    request = p4rt.WriteRequest(device_id=DEVICE, atomicity=atomicity)
    request.election_id.low = 10
    for network in networks:
        update = request.updates.add(type=p4rt.Update.INSERT)
        source = f"20.{network // 256}.{network % 256}.0&&&255.255.255.0"
        update.entity.table_entry.CopyFrom(rule(source).msg())
    sh.client.stub.Write(request)


def fails(do, code):
    try:
        do()
    except grpc.RpcError as error:
        assert error.code() == code, error
        return error.details()
    raise AssertionError(f"not refused with {code}")


batch(range(100))
assert len(rules()) == 101 and passes([20, 0, 99, 1], 1) and not passes([20, 0, 100, 1], 1)
fails(lambda: batch([150, 99, 151]), grpc.StatusCode.UNKNOWN)
assert len(rules()) == 101 and not passes([20, 0, 150, 1], 1)

# ---- a full table ----
fails(lambda: batch(range(100, 257)), grpc.StatusCode.UNKNOWN)
assert len(rules()) == 101 and not passes([20, 0, 100, 1], 1)
batch(range(100, 255))
assert len(rules()) == 256 and passes([20, 0, 254, 1], 1)
refused(rule("30.0.0.0&&&255.0.0.0").insert, "RESOURCE_EXHAUSTED")
assert len(rules()) == 256 and not passes([30, 1, 1, 1], 1) and passes([10, 1, 1, 1], 80)

# ---- keys of the wrong width ----
wide = rule("20.0.0.0&&&255.255.255.0").msg()
for field in wide.match:
    if field.ternary.value:
        field.ternary.value = b"\x01" + field.ternary.value[-4:].rjust(4, b"\0")
update = p4rt.Update(type=p4rt.Update.MODIFY)
update.entity.table_entry.CopyFrom(wide)
message = refused(lambda: sh.client.write_update(update), "OUT_OF_RANGE")
assert "src" in message and "32" in message, message

# ---- invalid programs ----
request = p4rt.GetForwardingPipelineConfigRequest(device_id=DEVICE)
config = sh.client.stub.GetForwardingPipelineConfig(request).config
good = config.p4_device_config


def try_program(program, *says):
    request = p4rt.SetForwardingPipelineConfigRequest(device_id=DEVICE)
    request.action = request.VERIFY_AND_COMMIT
    request.election_id.low = 10
    request.config.p4info.CopyFrom(config.p4info)
    request.config.p4_device_config = program
    message = fails(
        lambda: sh.client.stub.SetForwardingPipelineConfig(request),
        grpc.StatusCode.INVALID_ARGUMENT,
    )
    for text in says:
        assert text in message, f"{text}: {message}"
    assert len(rules()) == 256 and passes([10, 1, 1, 1], 80) and not passes([30, 1, 1, 1], 1)


try_program(b"no ELF file", "not a valid ELF file")
try_program(good[:18] + struct.pack("<H", 62) + good[20:], "not for eBPF")
call = good.index(b"\x85\0\0\0\x01\0\0\0")
try_program(good[: call + 4] + struct.pack("<i", 99) + good[call + 8 :], "no helper 99")
with open(other_object, "rb") as file:
    try_program(file.read(), "p4info leaves out table `c.t`", "another program's")

other = type(config)()
other.CopyFrom(config)
other.p4info.tables[0].match_fields[0].bitwidth = 128
keep, config = config, other
try_program(good, "c.rules", "a key of 40 bytes", "48 bytes")
other.CopyFrom(keep)
more = other.p4info.tables.add()
more.CopyFrom(other.p4info.tables[0])
more.preamble.id, more.preamble.name, more.preamble.alias = 0x02ABCDEF, "c.more", "more"
try_program(good, "c.more", "has no map", "not the one that p4info describes")
other.CopyFrom(keep)
other.p4info.pkg_info.arch = "v1model"
try_program(good, "v1model", "ubpf")
config = keep

# ---- a second controller ----
backup = P4RuntimeClient(DEVICE, address, (0, 5))
update = p4rt.Update(type=p4rt.Update.DELETE)
update.entity.table_entry.CopyFrom(rule("10.0.0.0&&&255.0.0.0", "80..443").msg())
fails(lambda: backup.write_update(update), grpc.StatusCode.PERMISSION_DENIED)
assert passes([10, 1, 1, 1], 80)
backup.tear_down()

# ---- another program takes over ----
request = p4rt.SetForwardingPipelineConfigRequest(device_id=DEVICE)
request.action = request.RECONCILE_AND_COMMIT
request.election_id.low = 10
request.config.CopyFrom(config)
sh.client.stub.SetForwardingPipelineConfig(request)
assert len(rules()) == 256 and passes([10, 1, 1, 1], 80) and counted()[0] > 7
request.action = request.VERIFY_AND_COMMIT
sh.client.stub.SetForwardingPipelineConfig(request)
assert rules() == [] and not passes([10, 1, 1, 1], 80)
assert counted() == {0: 0, 1: 1}, counted()
sh.teardown()
print("all well")
