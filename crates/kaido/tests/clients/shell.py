"""A session of p4runtime-shell with a tenant's program. Arguments: address and device ID.

Adds an entry that drops IPv4 at port 1, says so, and waits for a line; then it deletes the entry.
"""

import sys

import p4runtime_sh.shell as sh

address, device = sys.argv[1:]
sh.setup(device_id=int(device), grpc_addr=address, election_id=(0, 100), verbose=False)
entry = sh.TableEntry("I.filter")(action="I.drop")
entry.match["s.input_port"] = "1"
entry.match["h.ethernet.type"] = "0x0800"
entry.insert()
assert len(list(sh.TableEntry("I.filter").read())) == 1
print("added", flush=True)
sys.stdin.readline()
entry.delete()
assert list(sh.TableEntry("I.filter").read()) == []
sh.teardown()
print("deleted", flush=True)
