port = Port('p1', 0)
for number in range(SIZE):
    struct.pack_into('=Q', port.fill, port.fill_at[2] + number * 8, (2 * SIZE + number) * CHUNK)
struct.pack_into('=I', port.fill, port.fill_at[0], SIZE)
redirect(port.xsk, 'p1')
# The first packets have been judged and copied back.
end = time.monotonic() + 20
while struct.unpack_from('=I', port.rx, port.rx_at[0])[0] < 4 and time.monotonic() < end:
    select.select([port.xsk], [], [], 0.01)
print('received:', struct.unpack_from('=I', port.rx, port.rx_at[0])[0] >= 4, flush=True)
# The kernel keeps the memory, and goes on receiving.
place = ctypes.c_void_p(base), ctypes.c_size_t(len(memory))
if sys.argv[1] == 'munmap':
    c.munmap(*place)
else:
    c.mmap(*place, 0, 0x32, -1, ctypes.c_long(0))  # MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS
time.sleep(1)
print('alive', flush=True)
os._exit(0)
