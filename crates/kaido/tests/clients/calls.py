one = Port('p1', 0)
print('p1:', one.send(0x88b5), 'completed', flush=True)
other = Port('p2', SIZE, one)
print('p2:', other.send(0x88b5), 'completed', flush=True)

# Transmitted packets have a port number of their own: 256 plus the port's.
entry = ['input_port=257', 'type=0x88b6', 'drop()']
kaido('p4', 'table', 'add', '--address', address, 'filter', *entry)
print('drop:', one.send(0x88b6), 'completed', flush=True)
end, dropped = time.monotonic() + 20, 0
while dropped != 100 and time.monotonic() < end:
    sockets = json.loads(kaido('--json', 'xsk', 'stats'))['sockets']
    dropped = sum(socket['dropped'] for socket in sockets)
unjudged = sum(socket['without_program'] for socket in sockets)
print(f'dropped: {dropped}, without a program: {unjudged}', flush=True)

# Frames of both types arrive, one of which the program drops.
redirect(one.xsk, 'p1')
print('not readable:', select.select([one.xsk], [], [], 0)[0], flush=True)
print('writable:', select.select([], [one.xsk], [], 20)[1] == [one.xsk], flush=True)
kaido('p4', 'table', 'add', '--address', address, 'filter', 'input_port=1', 'type=0x88b6', 'drop()')
print('received, dropped type:', one.receive(), flush=True)

# A socket that shares the rings of the first one's queue.
third = new()
third.setsockopt(SOL_XDP, TX_RING, SIZE)
error = bind(third, 'p1', SHARED_UMEM, one.xsk.fileno())
print('same queue:', os.strerror(error), flush=True)


def attempt(name, function):
    try:
        function()
        print(name, 'done', flush=True)
    except OSError as why:
        print(name, os.strerror(why.errno), flush=True)


# Rings of the kernel's by another descriptor, or in another process.
def ring(fd):
    return mmap.mmap(fd, one.tx_at[2] + SIZE * 16, offset=TX_PLACE)


copy = os.dup(one.xsk.fileno())
attempt('mapped by a copy:', lambda: ring(copy))
fourth = new()
by_copy = socket.socket(44, socket.SOCK_RAW, 0, os.dup(fourth.fileno()))
attempt('sized by a copy:', lambda: by_copy.setsockopt(SOL_XDP, TX_RING, SIZE))

child = os.fork()
if child == 0:
    print('child:', os.strerror(bind(new(), 'p1', COPY)), flush=True)
    attempt('mapped by a child:', lambda: ring(one.xsk.fileno()))
    os._exit(0)
os.waitpid(child, 0)

# The number of a socket that was closed by other means is used again.
number = other.xsk.fileno()
os.closerange(number, number + 1)
again = new()
print('used again:', again.fileno() == number, one.send(0x88b5), 'completed', flush=True)
