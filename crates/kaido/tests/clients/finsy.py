"""A session of finsy with a tenant's program. Arguments: address and device ID.

Adds an entry that drops IPv4 at port 1, says so, and waits for a line; then it deletes the entry.
"""

import asyncio
import sys

import finsy as fy

address, device = sys.argv[1:]
MATCH = {"s.input_port": 1, "h.ethernet.type": 0x0800}


def drop():
    match = fy.P4TableMatch(MATCH)
    return fy.P4TableEntry("I.filter", match=match, action=fy.P4TableAction("I.drop"))


async def entries(switch):
    found = [entry async for entry in switch.read(fy.P4TableEntry("I.filter"))]
    return [entry for entry in found if not entry.is_default_action]


async def main():
    options = fy.SwitchOptions(device_id=int(device), initial_election_id=100)
    async with fy.Switch("bench", address, options) as switch:
        assert switch.is_primary, "another client is the primary one"
        assert await entries(switch) == []
        await switch.write([+drop()])
        (entry,) = await entries(switch)
        assert entry.action.name.endswith("drop"), entry
        try:
            await switch.write([+drop()])
            raise AssertionError("an entry is added twice")
        except fy.P4ClientError as error:
            assert error.details[0].canonical_code == fy.GRPCStatusCode.ALREADY_EXISTS, error
        print("added", flush=True)
        sys.stdin.readline()
        await switch.write([-drop()])
        assert await entries(switch) == []
    print("deleted", flush=True)


asyncio.run(main())
