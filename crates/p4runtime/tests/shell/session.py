"""What somebody does with p4runtime-shell, on a device that runs the firewall of
crates/p4/tests/programs. Arguments: the server's address, a p4info in text, a program."""

import sys
import tempfile

import grpc
from google.rpc import code_pb2, status_pb2
from p4.v1 import p4runtime_pb2 as p4rt
import p4runtime_sh.shell as sh
from p4runtime_sh.p4runtime import P4RuntimeClient, P4RuntimeWriteException

DEVICE = 7
address, p4info, program = sys.argv[1:]


def refused(do, code):
    """What is refused with a code, as the shell says it."""
    try:
        do()
    except P4RuntimeWriteException as error:
        found = [code_pb2.Code.Name(one.canonical_code) for _, one in error.errors]
        assert found == [code], f"{found} is not {code}: {error}"
        return error.errors[0][1].message
    raise AssertionError(f"not refused with {code}")


def rule(source, port=None, priority=10, action="c.allow"):
    entry = sh.TableEntry("c.rules")(action=action)
    entry.match["src"] = source
    if port:
        entry.match["dport"] = port
    entry.priority = priority
    return entry


def rules():
    return list(sh.TableEntry("c.rules").read())


sh.setup(
    device_id=DEVICE,
    grpc_addr=address,
    election_id=(0, 10),
    config=sh.FwdPipeConfig(p4info, program),
    verbose=False,
)
assert sh.APIVersion() == "1.5.0", sh.APIVersion()

# ---- entries ----
assert rules() == []
rule("10.0.0.0&&&255.0.0.0", "80..443").insert()
rule("10.1.0.0&&&255.255.0.0", priority=20, action="c.deny").insert()
assert "already" in refused(rule("10.1.0.0&&&255.255.0.0", priority=20).insert, "ALREADY_EXISTS")
assert "priority" in refused(rule("10.2.0.0&&&255.255.0.0", priority=0).insert, "INVALID_ARGUMENT")
found = rules()
assert len(found) == 2, found
first = next(entry for entry in found if entry.priority == 10)
assert first.action.action_name == "c.allow"
ports = first.match._mk["dport"].range
assert (ports.low, ports.high) == (b"\x50", b"\x01\xbb"), ports
sources = first.match._mk["src"].ternary
assert (sources.value, sources.mask) == (b"\x0a\0\0\0", b"\xff\0\0\0"), sources

rule("10.1.0.0&&&255.255.0.0", priority=20, action="c.allow").modify()
assert {entry.action.action_name for entry in rules()} == {"c.allow"}
refused(rule("10.9.0.0&&&255.255.0.0", priority=20).modify, "NOT_FOUND")
rule("10.1.0.0&&&255.255.0.0", priority=20).delete()
refused(rule("10.1.0.0&&&255.255.0.0", priority=20).delete, "NOT_FOUND")
assert [entry.priority for entry in rules()] == [10]

default = sh.TableEntry("c.rules")(action="c.allow", is_default=True)
assert "constant" in refused(default.modify, "PERMISSION_DENIED")
default = sh.TableEntry("c.rules")
default.is_default = True
assert [entry.action.action_name for entry in default.read()] == ["c.deny"]

# ---- counters and meters ----
counter = sh.CounterEntry("c.counted")
assert [one.data.packet_count for one in counter.read()] == [0] * 16
counter.index = 3
counter.packet_count = 5
counter.byte_count = 500
counter.modify()
found = [(one.index, one.packet_count, one.byte_count) for one in sh.CounterEntry("c.counted").read()]
assert len(found) == 16 and (3, 5, 500) in found, found
counter.index = 16
assert "16" in refused(counter.modify, "OUT_OF_RANGE")

direct = sh.DirectCounterEntry("c.entries_counted")
direct.table_entry = rule("10.0.0.0&&&255.0.0.0", "80..443")
direct.packet_count = 7
direct.modify()
found = [one.packet_count for one in sh.DirectCounterEntry("c.entries_counted").read()]
assert found == [7], found

meter = sh.MeterEntry("c.metered")
meter.index = 1
meter.cir, meter.cburst, meter.pir, meter.pburst = 1000, 100, 2000, 200
meter.modify()
found = [(one.index, one.cir, one.pburst) for one in sh.MeterEntry("c.metered").read()]
assert found == [(0, 0, 0), (1, 1000, 200), (2, 0, 0), (3, 0, 0)], found
meter.cir = -1
refused(meter.modify, "INVALID_ARGUMENT")

direct = sh.DirectMeterEntry("c.entries_metered")
direct.table_entry = rule("10.0.0.0&&&255.0.0.0", "80..443")
direct.cir, direct.cburst, direct.pir, direct.pburst = 1, 2, 3, 4
direct.modify()
found = [(one.cir, one.pburst) for one in sh.DirectMeterEntry("c.entries_metered").read()]
assert found == [(1, 4)], found

# ---- a batch ----
request = p4rt.WriteRequest()
for network in range(1, 101):
    update = request.updates.add(type=p4rt.Update.INSERT)
    update.entity.table_entry.CopyFrom(rule(f"10.0.{network}.0&&&255.255.255.0").msg())
with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
    file.write(str(request))
    file.flush()
    sh.Write(file.name)
assert len(rules()) == 101

# Atomicity modes. The shell's own error parser loops forever if some updates succeed.
request = p4rt.WriteRequest(device_id=DEVICE, atomicity=p4rt.WriteRequest.CONTINUE_ON_ERROR)
request.election_id.low = 10
for network, kind in [(101, p4rt.Update.INSERT), (1, p4rt.Update.INSERT), (2, p4rt.Update.DELETE)]:
    update = request.updates.add(type=kind)
    update.entity.table_entry.CopyFrom(rule(f"10.0.{network}.0&&&255.255.255.0").msg())


def codes(request):
    try:
        sh.client.stub.Write(request)
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNKNOWN, error
        status = status_pb2.Status()
        details = dict(error.trailing_metadata())["grpc-status-details-bin"]
        status.ParseFromString(details)
        assert (status.code, status.message) == (code_pb2.UNKNOWN, error.details())
        errors = []
        for one in status.details:
            errors.append(p4rt.Error())
            assert one.Unpack(errors[-1])
        return [code_pb2.Code.Name(one.canonical_code) for one in errors]
    return []


request.atomicity = p4rt.WriteRequest.ROLLBACK_ON_ERROR
assert codes(request) == ["ABORTED", "ALREADY_EXISTS", "ABORTED"]
assert len(rules()) == 101
request.atomicity = p4rt.WriteRequest.CONTINUE_ON_ERROR
assert codes(request) == ["OK", "ALREADY_EXISTS", "OK"]
assert len(rules()) == 101

# ---- other clients ----
lower = P4RuntimeClient(DEVICE, address, (0, 5))
refused_by = []
for client in [lower]:
    try:
        update = p4rt.Update(type=p4rt.Update.INSERT)
        update.entity.table_entry.CopyFrom(rule("10.0.200.0&&&255.255.255.0").msg())
        client.write_update(update)
    except grpc.RpcError as error:
        refused_by.append(error.code())
assert refused_by == [grpc.StatusCode.PERMISSION_DENIED], refused_by
assert len(rules()) == 101

higher = P4RuntimeClient(DEVICE, address, (1, 0))
told = sh.client.get_stream_packet("arbitration", timeout=10)
assert told.arbitration.status.code == code_pb2.ALREADY_EXISTS, told
assert (told.arbitration.election_id.high, told.arbitration.election_id.low) == (1, 0)
try:
    rule("10.0.201.0&&&255.255.255.0").insert()
    raise AssertionError("a backup has written")
except grpc.RpcError as error:
    assert error.code() == grpc.StatusCode.PERMISSION_DENIED, error
higher.write_update(update)
assert len(rules()) == 102, "everybody reads"
higher.tear_down()
told = sh.client.get_stream_packet("arbitration", timeout=10)
assert told.arbitration.status.code == code_pb2.NOT_FOUND, told
lower.tear_down()
sh.teardown()

# ---- reconnect ----
sh.setup(device_id=DEVICE, grpc_addr=address, election_id=(1, 1), verbose=False)
assert len(rules()) == 102, "the program and its entries are there still"
sh.TableEntry("c.rules").read(function=lambda entry: entry.delete())
assert rules() == []
rule("10.0.0.0&&&255.0.0.0").insert()
sh.teardown()
print("all well")
