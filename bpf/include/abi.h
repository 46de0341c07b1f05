/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The single definition of map keys, map values and events, by subject in abi/. User space reads
 * these types from the BTF of the objects, so it follows every change made here.
 *
 * In the SRv6 data plane, VLAN tags are in host byte order, 0 for none. Lengths are in bytes. A
 * zeroed entry is empty. IPv6 addresses are pairs of 64-bit words in wire byte order: each word
 * needs a single load, without assembly from two 32-bit halves.
 */
#ifndef KAIDO_ABI_H
#define KAIDO_ABI_H

#include "abi/control.h"
#include "abi/counters.h"
#include "abi/function.h"
#include "abi/limits.h"
#include "abi/meter.h"
#include "abi/ports.h"
#include "abi/prefixes.h"
#include "abi/route.h"
#include "abi/sid.h"
#include "abi/trace.h"

#endif
