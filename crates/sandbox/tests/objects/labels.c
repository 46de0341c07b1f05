// A label switch in the style of p4c's uBPF back end: headers are bytes on the stack, tables have a
// tagged union of actions and an array for the default action, and the deparser moves the head.
// clang -O2 -target bpf -c labels.c -o labels.o
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct ubpf_map_def {
    unsigned type, key_size, value_size, max_entries, nb_hash_functions;
};

struct standard_metadata {
    u32 input_port, packet_length, output_action, output_port;
    u8 clone;
    u32 clone_port;
};

enum { ABORT, DROP, PASS, REDIRECT };

struct action {
    u32 action; // 0: none, 1: push, 2: pop, 3: drop
    union {
        struct {
            u16 label;
            u32 port;
        } push;
        struct {
            u32 port;
        } pop;
    } u;
};

#define MAP __attribute__((section("maps"), used)) struct ubpf_map_def

MAP routes = {5, 8, sizeof(struct action), 16, 0};
MAP routes_defaultAction = {1, 4, sizeof(struct action), 1, 0};
MAP labels = {4, 2, sizeof(struct action), 16, 0};
MAP counters = {1, 4, 8, 64, 0};

static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static int (*map_update)(void *map, const void *key, const void *value) = (void *)2;
static u32 (*hash)(const void *bytes, u64 length) = (void *)6;
static u8 *(*adjust_head)(void *context, int by) = (void *)8;
static u8 *(*packet_data)(void *context) = (void *)9;

// Ethernet header of 14 bytes and optional headers: type 0x88b5 has a label and the next type.
struct headers {
    u8 ethernet[14];
    u16 label, type;
    u8 has_label, has_ipv4;
};

__attribute__((noinline)) static void count(const u8 *ipv4)
{
    u32 key = hash(ipv4 + 12, 8) & 63;
    u64 *seen = map_lookup(&counters, &key);
    u64 next = seen ? *seen + 1 : 1;
    map_update(&counters, &key, &next);
}

__attribute__((noinline)) static int push(struct headers *headers, struct action *action)
{
    headers->label = action->u.push.label;
    headers->has_label = 1;
    return 4;
}

u64 entry(void *context, struct standard_metadata *metadata)
{
    struct headers headers = {0};
    u8 *packet = packet_data(context);
    u32 length = metadata->packet_length;
    u32 at = 14;
    int by = 0;
    struct action *action = 0;

    if (length < at)
        return 0;
    for (int i = 0; i < 14; i++)
        headers.ethernet[i] = packet[i];
    headers.type = packet[12] << 8 | packet[13];
    if (headers.type == 0x88b5) {
        if (length < at + 4)
            return 0;
        headers.label = packet[at] << 8 | packet[at + 1];
        headers.type = packet[at + 2] << 8 | packet[at + 3];
        headers.has_label = 1;
        at += 4;
    }
    headers.has_ipv4 = headers.type == 0x0800 && length >= at + 20;

    if (headers.has_label) {
        action = map_lookup(&labels, &headers.label);
    } else if (headers.has_ipv4) {
        struct {
            u32 length, address;
        } key = {32, *(u32 *)(packet + at + 16)};
        action = map_lookup(&routes, &key);
        if (!action) {
            u32 zero = 0;
            action = map_lookup(&routes_defaultAction, &zero);
        }
        count(packet + at);
    }
    switch (action ? action->action : 0) {
    case 1:
        by = push(&headers, action);
        metadata->output_action = REDIRECT;
        metadata->output_port = action->u.push.port;
        break;
    case 2:
        headers.has_label = 0;
        by = -4;
        metadata->output_action = REDIRECT;
        metadata->output_port = action->u.pop.port;
        break;
    case 3:
        return 0;
    }

    packet = adjust_head(context, by);
    for (int i = 0; i < 12; i++)
        packet[i] = headers.ethernet[i];
    at = 12;
    if (headers.has_label) {
        packet[12] = 0x88;
        packet[13] = 0xb5;
        packet[14] = headers.label >> 8;
        packet[15] = headers.label;
        at = 16;
    }
    packet[at] = headers.type >> 8;
    packet[at + 1] = headers.type;
    return 1;
}
