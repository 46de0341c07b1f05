"""AF_XDP sockets (linux/if_xdp.h), with system calls alone."""
import ctypes, json, mmap, os, select, socket, struct, subprocess, sys, time

SOL_XDP, SHARED_UMEM, COPY, USE_NEED_WAKEUP, USE_SG = 283, 1, 2, 8, 16
OFFSETS, RX_RING, TX_RING, UMEM_REG, FILL_RING, COMPLETION_RING = 1, 2, 3, 4, 5, 6
RX_PLACE, TX_PLACE, FILL_PLACE, COMPLETION_PLACE = 0, 0x80000000, 0x100000000, 0x180000000
SIZE, CHUNK = 128, 4096
c = ctypes.CDLL(None, use_errno=True)


def new():
    return socket.socket(44, socket.SOCK_RAW, 0)


def bind(xsk, interface, flags, shared=0):
    name = struct.pack('=HHIII', 44, flags, socket.if_nametoindex(interface), 0, shared)
    return 0 if c.bind(xsk.fileno(), name, len(name)) == 0 else ctypes.get_errno()


def bpf(command, attributes):
    """The system call of x86-64 (linux/bpf.h)."""
    result = c.syscall(321, command, attributes, len(attributes))
    if result < 0:
        sys.exit(f'bpf({command}): {os.strerror(ctypes.get_errno())}')
    return result


def redirect(xsk, interface):
    """Redirects the frames that the interface receives on queue 0 to a socket."""
    places = bpf(0, struct.pack('=IIII', 17, 4, 4, 1))  # BPF_MAP_TYPE_XSKMAP
    key, value = ctypes.c_uint(0), ctypes.c_int(xsk.fileno())
    update = struct.pack('=IIQQQ', places, 0, ctypes.addressof(key), ctypes.addressof(value), 0)
    bpf(2, update)
    code = bytes.fromhex('6112100000000000')  # r2 = rx_queue_index
    code += struct.pack('=BBHIQ', 0x18, 0x11, 0, places, 0)  # r1 = places
    code += bytes.fromhex('b703000002000000 8500000033000000 9500000000000000')  # redirect or pass
    code, licence = ctypes.create_string_buffer(code, len(code)), ctypes.c_char_p(b'GPL')
    licence_at = ctypes.cast(licence, ctypes.c_void_p).value
    load = struct.pack('=IIQQ', 6, len(code) // 8, ctypes.addressof(code), licence_at)
    # BPF_F_XDP_HAS_FRAGS
    program = bpf(5, load.ljust(44, b'\0') + struct.pack('=I', 32).ljust(28, b'\0'))
    bpf(28, struct.pack('=IIII', program, socket.if_nametoindex(interface), 37, 4))  # native XDP


memory = mmap.mmap(-1, 3 * SIZE * CHUNK)
base = ctypes.addressof(ctypes.c_char.from_buffer(memory))


class Port:
    """A socket with rings of its own, and the chunks from `first` on."""

    def __init__(self, interface, first, shared=None, flags=0):
        self.first, self.sent, self.xsk = first, 0, new()
        if shared is None:
            umem = struct.pack('=QQIIII', base, len(memory), CHUNK, 0, 0, 0)
            self.xsk.setsockopt(SOL_XDP, UMEM_REG, umem)
        for ring in (FILL_RING, COMPLETION_RING, RX_RING, TX_RING):
            self.xsk.setsockopt(SOL_XDP, ring, SIZE)
        offsets = struct.unpack('=16Q', self.xsk.getsockopt(SOL_XDP, OFFSETS, 128))
        self.rx_at, self.tx_at, self.fill_at, self.completion_at = (
            offsets[at:at + 4] for at in range(0, 16, 4))
        if shared is None:
            error = bind(self.xsk, interface, COPY | USE_NEED_WAKEUP | flags)
        else:
            error = bind(self.xsk, interface, SHARED_UMEM, shared.xsk.fileno())
        if error:
            sys.exit(f'{interface}: {os.strerror(error)}')
        # Rings may be mapped before or after the socket is bound.
        fd = self.xsk.fileno()
        self.tx = mmap.mmap(fd, self.tx_at[2] + SIZE * 16, offset=TX_PLACE)
        self.completion = mmap.mmap(fd, self.completion_at[2] + SIZE * 8, offset=COMPLETION_PLACE)
        self.rx = mmap.mmap(fd, self.rx_at[2] + SIZE * 16, offset=RX_PLACE)
        self.fill = mmap.mmap(fd, self.fill_at[2] + SIZE * 8, offset=FILL_PLACE)

    def send(self, kind):
        """Sends 100 frames of an EtherType; returns how many chunks have returned after that."""
        frame = bytes.fromhex('ffffffffffff020000000009') + struct.pack('!H', kind) + bytes(50)
        return self.send_parts(100 * [(frame, 0)])

    def send_parts(self, parts):
        """Sends descriptors with their options; returns how many chunks have returned after that."""
        for number, (part, options) in enumerate(parts, self.sent):
            at = (self.first + number % SIZE) * CHUNK
            memory[at:at + len(part)] = part
            place = self.tx_at[2] + number % SIZE * 16
            struct.pack_into('=QII', self.tx, place, at, len(part), options)
        before, end = self.completed(), time.monotonic() + 20
        self.sent += len(parts)
        struct.pack_into('=I', self.tx, self.tx_at[0], self.sent)
        while self.completed() < before + len(parts) and time.monotonic() < end:
            c.sendto(self.xsk.fileno(), None, 0, socket.MSG_DONTWAIT, None, 0)
        struct.pack_into('=I', self.completion, self.completion_at[1], self.completed())
        return self.completed() - before

    def completed(self):
        return struct.unpack_from('=I', self.completion, self.completion_at[0])[0]

    def receive(self):
        """Gives the socket chunks to receive into. Waits by select(2); returns the EtherTypes."""
        for number in range(SIZE):
            at = (2 * SIZE + number) * CHUNK
            struct.pack_into('=Q', self.fill, self.fill_at[2] + number * 8, at)
        struct.pack_into('=I', self.fill, self.fill_at[0], SIZE)
        taken, kinds, end = 0, set(), time.monotonic() + 20
        while 0x88b7 not in kinds and time.monotonic() < end:
            if self.xsk not in select.select([self.xsk], [], [], 20)[0]:
                continue
            received = struct.unpack_from('=I', self.rx, self.rx_at[0])[0]
            if taken == received:
                return 'readable without a packet'
            while taken != received and taken < SIZE:
                at = struct.unpack_from('=Q', self.rx, self.rx_at[2] + taken * 16)[0]
                kinds.add(struct.unpack_from('!H', memory, at + 12)[0])
                taken += 1
            struct.pack_into('=I', self.rx, self.rx_at[1], taken)
        return 0x88b7 in kinds, 0x88b6 in kinds


def kaido(*words):
    """Runs a command of `kaido`, which has started this program."""
    words = [os.readlink(f'/proc/{os.getppid()}/exe'), *words]
    return subprocess.run(words, env=environment, check=True, capture_output=True).stdout


environment = {name: value for name, value in os.environ.items() if name != 'LD_PRELOAD'}
# The library must not depend on what the client does with its environment.
os.environ.clear()
address = f'unix:{environment["KAIDO_RUN"]}/xsk/default/p4runtime.sock'

