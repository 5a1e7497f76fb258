/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Layouts of the maps; src/bpf/decode.rs has the same. */
#pragma once

/* Bucket i is [2^i, 2^(i+1)) ns: up to 18 minutes */
#define BUCKETS 40

enum operation {
	OP_READ = 0,
	OP_WRITE = 1,
	OP_DISCARD = 2,
	OP_FLUSH = 3,
	OP_OTHER = 4,
};

enum mode {
	MODE_ASYNC = 0,
	MODE_SYNC = 1,
	MODE_IDLE = 2,
};

/* A device (major << 20 | minor), an operation, and whether a process waits for the request */
struct latency_key {
	u32 device;
	u8 operation;
	u8 mode;
	u16 pad;
};

struct histogram {
	u64 sum_ns;
	u64 squares_us; /* of microseconds */
	u64 buckets[BUCKETS];
};

struct latency {
	u64 bytes;
	u64 errors;
	u64 unstamped; /* requests that the kernel did not stamp: queue/iostats is 0 */
	struct histogram whole; /* from making the request to its completion */
	struct histogram queue; /* until the driver gets it */
	struct histogram device; /* in the driver and the device */
};

/* By process or by group */
struct requester_key {
	u64 id;
	u32 device;
	u8 operation;
	u8 pad[3];
};

struct requester {
	u64 count;
	u64 bytes;
	u64 sum_ns;
	u64 most_ns;
	char name[16];
};

_Static_assert(sizeof(struct latency_key) == 8 && sizeof(struct requester_key) == 16 && sizeof(struct requester) == 48, "as in decode.rs");
_Static_assert(sizeof(struct latency) == 3 * 8 + 3 * 42 * 8, "as in decode.rs");
