/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consumes the netfilter queues 1 and 2 like a firewall (libnetfilter_queue): holds packets until
 * there are COUNT, then accepts them, the last first. Usage: hold COUNT. Prints "held" and waits
 * for a line before it accepts them. With a COUNT of 0 it accepts each packet immediately.
 */
#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <libnetfilter_queue/libnetfilter_queue.h>
#include <sys/socket.h>

/* The kernel limits a queue to 65,536 packets. */
enum { BUFFER = 256 << 20, QUEUE = 1 << 16, MOST = 2 * QUEUE };

static struct {
	struct nfq_q_handle *queue;
	uint32_t id;
} held[MOST];
static unsigned count, wanted;

static int take(struct nfq_q_handle *queue, struct nfgenmsg *message, struct nfq_data *data, void *none)
{
	uint32_t id = ntohl(nfq_get_msg_packet_hdr(data)->packet_id);

	if (!wanted)
		return nfq_set_verdict(queue, id, NF_ACCEPT, 0, NULL);
	if (count < MOST) {
		held[count].queue = queue;
		held[count++].id = id;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static char bytes[1 << 17] __attribute__((aligned(8)));
	struct nfq_handle *handle = nfq_open();
	int size = BUFFER;

	if (argc != 2 || !handle)
		return 2;
	wanted = atoi(argv[1]);
	for (int number = 1; number <= 2; number++) {
		struct nfq_q_handle *queue = nfq_create_queue(handle, number, take, NULL);

		if (!queue || nfq_set_mode(queue, NFQNL_COPY_PACKET, 0xffff) < 0 ||
		    nfq_set_queue_maxlen(queue, QUEUE) < 0)
			return 3;
	}
	if (setsockopt(nfq_fd(handle), SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		return 3;
	puts("ready");
	fflush(stdout);
	while (!wanted || count < wanted) {
		int length = recv(nfq_fd(handle), bytes, sizeof(bytes), 0);

		if (length < 0)
			return 4;
		nfq_handle_packet(handle, bytes, length);
	}
	puts("held");
	fflush(stdout);
	getchar();
	while (count--)
		if (nfq_set_verdict(held[count].queue, held[count].id, NF_ACCEPT, 0, NULL) < 0)
			return 5;
	puts("gone");
	return 0;
}
