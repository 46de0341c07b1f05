// Source of an object with the conventions of p4c's uBPF back end: maps, helpers, a local function.
// clang -O2 -target bpf -c by_clang.c -o by_clang.o
struct ubpf_map_def {
    unsigned type, key_size, value_size, max_entries, nb_hash_functions;
};

#define MAP __attribute__((section("maps"), used)) struct ubpf_map_def

MAP exact = {4, 4, 8, 16, 0};
MAP exact_defaultAction = {1, 4, 8, 1, 0};
MAP prefixes = {5, 8, 8, 16, 0};

static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static unsigned char *(*packet_data)(void *context) = (void *)9;

__attribute__((noinline)) static int third(int x) { return x * 3; }

unsigned long long entry(void *context, void *metadata)
{
    unsigned key[2] = {3, 0};
    unsigned char *packet = packet_data(context);
    unsigned *value = map_lookup(&exact_defaultAction, key);
    if (!value)
        value = map_lookup(&exact, key);
    if (!value)
        value = map_lookup(&prefixes, key);
    return value ? *value + third(packet[3]) : 1;
}
