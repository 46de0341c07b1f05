CONTINUED = 1
macs = bytes.fromhex('ffffffffffff020000000009')


def packet(kind, *lengths):
    """The descriptors of a packet, each with its byte in all places but the header."""
    parts = [bytes([1 + at]) * length for at, length in enumerate(lengths)]
    parts[0] = macs + struct.pack('!H', kind) + parts[0][14:]
    return [(part, CONTINUED if at + 1 < len(parts) else 0) for at, part in enumerate(parts)]


def received(port, wanted):
    """Waits for a packet of a type; returns the lengths of its descriptors, and if none was of 0x88b6."""
    for number in range(SIZE):
        struct.pack_into('=Q', port.fill, port.fill_at[2] + number * 8, (2 * SIZE + number) * CHUNK)
    struct.pack_into('=I', port.fill, port.fill_at[0], SIZE)
    taken, kinds, lengths, end = 0, set(), [], time.monotonic() + 20
    while time.monotonic() < end:
        select.select([port.xsk], [], [], 1)
        while taken != struct.unpack_from('=I', port.rx, port.rx_at[0])[0] and taken < SIZE:
            at, length, options = struct.unpack_from('=QII', port.rx, port.rx_at[2] + taken * 16)
            if not lengths:
                kinds.add(struct.unpack_from('!H', memory, at + 12)[0])
            lengths.append(length)
            taken += 1
            if not options & CONTINUED:
                if wanted in kinds:
                    return lengths, 0x88b6 not in kinds
                lengths = []
        struct.pack_into('=I', port.rx, port.rx_at[1], taken)
    return 'no packet', kinds


port = Port('p1', 0, flags=USE_SG)
# A packet of three descriptors, one that is longer than a frame, and a plain one.
sent = packet(0x88b5, 3000, 3000, 2500) + packet(0x88b5, 4000, 4000, 4000) + packet(0x88b5, 60)
print('completed:', port.send_parts(sent), 'of', len(sent), flush=True)
kaido('p4', 'table', 'add', '--address', address, 'filter', 'input_port=257', 'type=0x88b6', 'drop()')
print('dropped:', port.send_parts(packet(0x88b6, 3000, 3000)), 'of 2', flush=True)
kaido('p4', 'table', 'add', '--address', address, 'filter', 'input_port=1', 'type=0x88b6', 'drop()')
redirect(port.xsk, 'p1')
print('received:', *received(port, 0x88b7), flush=True)
# Counters are up to a second old.
names, counts, end = ('submitted', 'passed', 'dropped', 'unfit'), {}, time.monotonic() + 20
while (counts.get('submitted'), counts.get('unfit')) != (3, 1) and time.monotonic() < end:
    sockets = json.loads(kaido('--json', 'xsk', 'stats'))['sockets']
    transmitted, = (socket for socket in sockets if socket['direction'] == 'transmit')
    counts = {name: transmitted[name] for name in names}
print('transmitted:', counts, flush=True)
