/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The fields of the kernel's packets that are read. CO-RE relocates them to their offsets in the
 * running kernel.
 */
#ifndef KAIDO_SRV6_SK_BUFF_H
#define KAIDO_SRV6_SK_BUFF_H

#include <bpf/bpf_core_read.h>

/* Value of ip_summed: the device that sends the packet computes its checksum. */
#define CHECKSUM_PARTIAL 3

struct net_device;

struct sk_buff {
	struct net_device *dev;
	__s64 tstamp;
	unsigned long _skb_refdst;
	unsigned char *head;
	unsigned char *data;
	__u8 ip_summed : 2;
	__u16 csum_start;
	__u16 mac_len;
} __attribute__((preserve_access_index));

#endif
