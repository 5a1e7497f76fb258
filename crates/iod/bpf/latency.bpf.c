/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Latencies of block requests, by device and class.
 *
 * The kernel stamps a request when it makes it (start_time_ns), on_issue when the driver gets it, and on_complete ends it. Time before
 * the request exists (waiting for a free tag, or in the writeback throttle) is not counted. The block layer makes a request of its own
 * for the flush of a write with REQ_PREFLUSH; the completion that then ends the write was never issued, and is not counted. The
 * arguments of the tracepoints are those since Linux 5.11. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "latency.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum attribution {
	BY_NONE = 0,
	BY_PROCESS = 1,
	BY_GROUP = 2,
};

/* Set before it is loaded */
const volatile u32 count_by = BY_NONE;
const volatile u32 only_device = 0; /* 0: all */

struct request_state {
	u64 issued_ns;
	u32 process;
	u32 pad;
	char name[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct request_state);
} requests SEC(".maps");

/* Requests in flight, in a slot by their tag: a lookup costs a tenth of one in a hash. A request whose slot is taken goes to the hash
 * above. Of two that take the same slot in the same nanoseconds, one is not counted. */
#define SLOTS 16384

struct slot {
	u64 request; /* 0: free */
	u64 issued_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, u32);
	__type(value, struct slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 128); /* more where there are more devices; set before it is loaded */
	__type(key, struct latency_key);
	__type(value, struct latency);
} latencies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct requester_key);
	__type(value, struct requester);
} requesters SEC(".maps");

/* not constant: constants are in a map of their own, whose offsets the loader relies on */
static struct latency no_latency;

/* The verifier knows the types of a BTF tracepoint's arguments. So plain accesses work: each is one load, and 0 for a bad pointer.
 * BPF_CORE_READ would call a helper for each. */
static __always_inline u32 device_of(struct request *rq)
{
	struct request___before_5_17 *older = (void *)rq;
	struct gendisk *disk;

	if (bpf_core_field_exists(rq->q->disk))
		disk = rq->q->disk;
	else
		disk = older->rq_disk;
	return (u32)disk->major << 20 | (u32)disk->first_minor;
}

static __always_inline bool has_flag(u32 flags, u32 bit)
{
	return flags & 1u << (bit & 31);
}

/* include/linux/blk_types.h: REQ_OP_*, the same in all versions */
static __always_inline u8 operation_of(u32 flags)
{
	u8 op = flags & 0xff;
	return op <= 1 ? op : op == 2 ? OP_FLUSH : op == 3 ? OP_DISCARD : OP_OTHER;
}

/* include/uapi/linux/ioprio.h: the class is in the highest three bits */
static __always_inline bool is_idle_class(struct request *rq)
{
	struct request___before_6_14 *older = (void *)rq;
	struct bio *bio = rq->bio;
	u16 ioprio = 0;

	if (bpf_core_field_exists(older->ioprio))
		ioprio = older->ioprio;
	else if (bio)
		ioprio = bio->bi_ioprio;
	return ioprio >> 13 == 3;
}

/* Does a process wait for it? Not for a read of the idle class, which asks to wait. Reads by the page cache have REQ_RAHEAD also where a
 * process waits: file systems set it on all that ->readahead submits. A write by the rule of op_is_sync() */
static __always_inline u8 mode_of(struct request *rq, u32 flags, u8 operation)
{
	if (operation == OP_READ && is_idle_class(rq))
		return MODE_IDLE;
	if (operation == OP_READ)
		return has_flag(flags, bpf_core_enum_value(enum req_flag_bits, __REQ_RAHEAD)) ? MODE_ASYNC : MODE_SYNC;
	if (operation == OP_FLUSH)
		return MODE_SYNC;
	return has_flag(flags, bpf_core_enum_value(enum req_flag_bits, __REQ_SYNC)) ||
	       has_flag(flags, bpf_core_enum_value(enum req_flag_bits, __REQ_FUA)) ||
	       has_flag(flags, bpf_core_enum_value(enum req_flag_bits, __REQ_PREFLUSH));
}

static __always_inline u32 log2_of(u64 value)
{
	u32 log = 0, shift;

	shift = (value > 0xffffffff) << 5, value >>= shift, log |= shift;
	shift = (value > 0xffff) << 4, value >>= shift, log |= shift;
	shift = (value > 0xff) << 3, value >>= shift, log |= shift;
	shift = (value > 0xf) << 2, value >>= shift, log |= shift;
	shift = (value > 0x3) << 1, value >>= shift, log |= shift;
	return log | value >> 1;
}

static __always_inline void record(struct histogram *histogram, u64 ns)
{
	u32 bucket = log2_of(ns);
	u64 us = ns / 1000;

	if (bucket >= BUCKETS)
		bucket = BUCKETS - 1;
	histogram->buckets[bucket]++;
	histogram->sum_ns += ns;
	histogram->squares_us += us * us;
}

static __always_inline void stamp_process(struct request_state *state)
{
	state->process = bpf_get_current_pid_tgid() >> 32;
	bpf_get_current_comm(state->name, sizeof(state->name));
}

/* In the context of the submitting process (since 6.5): loaded only to count by process */
SEC("tp_btf/block_io_start")
int BPF_PROG(on_start, struct request *rq)
{
	struct request_state state = {};
	u64 key = (u64)rq;

	stamp_process(&state);
	bpf_map_update_elem(&requests, &key, &state, BPF_ANY);
	return 0;
}

/* A request in the driver keeps its tag until it is complete. The tags of a hardware queue are few and consecutive; Fibonacci hashing
 * (Knuth, The Art of Computer Programming 3, 6.4) gives each queue its first slot */
static __always_inline struct slot *slot_of(struct request *rq)
{
	u32 queue = (u32)rq->q->id << 8 ^ rq->mq_hctx->queue_num;
	u32 at = ((queue * 0x9e3779b9) + (u32)rq->tag) & (SLOTS - 1);
	return bpf_map_lookup_elem(&slots, &at);
}

_Static_assert((SLOTS & (SLOTS - 1)) == 0, "as slot_of");

/* A requeued request is issued again: the last issue counts */
SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_issue, struct request *rq)
{
	u64 key = (u64)rq;

	if (only_device && device_of(rq) != only_device)
		return 0;
	if (count_by == BY_PROCESS) {
		struct request_state *known = bpf_map_lookup_elem(&requests, &key);
		if (known) {
			known->issued_ns = bpf_ktime_get_ns();
			return 0;
		}
	} else {
		struct slot *slot = slot_of(rq);
		if (slot && (!slot->request || slot->request == key)) {
			slot->issued_ns = bpf_ktime_get_ns();
			slot->request = key;
			return 0;
		}
	}
	struct request_state state = { .issued_ns = bpf_ktime_get_ns() };
	if (count_by == BY_PROCESS)
		stamp_process(&state);
	bpf_map_update_elem(&requests, &key, &state, BPF_ANY);
	return 0;
}

/* Removes a request and returns the time of its issue, 0 if that is unknown */
static __always_inline u64 take(struct request *rq, struct request_state *was)
{
	u64 request = (u64)rq;

	if (count_by != BY_PROCESS) {
		struct slot *slot = slot_of(rq);
		if (slot && slot->request == request) {
			u64 issued_ns = slot->issued_ns;
			slot->request = 0;
			return issued_ns;
		}
	}
	struct request_state *state = bpf_map_lookup_elem(&requests, &request);
	if (!state)
		return 0;
	*was = *state;
	bpf_map_delete_elem(&requests, &request);
	return was->issued_ns;
}

static __always_inline struct latency *latency_of(struct latency_key *key)
{
	struct latency *latency = bpf_map_lookup_elem(&latencies, key);

	if (latency)
		return latency;
	bpf_map_update_elem(&latencies, key, &no_latency, BPF_NOEXIST);
	return bpf_map_lookup_elem(&latencies, key);
}

/* The group that the request's first bio is charged to: on cgroup v1 that of the blkio hierarchy */
static __always_inline u64 group_of(struct request *rq)
{
	struct bio *bio = rq->bio;
	return bio ? BPF_CORE_READ(bio, bi_blkg, blkcg, css.cgroup, kn, id) : 0;
}

static __always_inline void count_requester(struct requester_key *key, struct request_state *state, u32 bytes, u64 whole_ns)
{
	struct requester *counters = bpf_map_lookup_elem(&requesters, key);

	if (!counters) {
		struct requester first = { .count = 1, .bytes = bytes, .sum_ns = whole_ns, .most_ns = whole_ns };
		__builtin_memcpy(first.name, state->name, sizeof(first.name));
		bpf_map_update_elem(&requesters, key, &first, BPF_NOEXIST);
		return;
	}
	__sync_fetch_and_add(&counters->count, 1);
	__sync_fetch_and_add(&counters->bytes, bytes);
	__sync_fetch_and_add(&counters->sum_ns, whole_ns);
	/* not atomic: of two at the same time the smaller may win, so this is the longest or nearly */
	if (whole_ns > counters->most_ns)
		counters->most_ns = whole_ns;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete, struct request *rq, int error, unsigned int bytes)
{
	u64 now_ns = bpf_ktime_get_ns(), made_ns = rq->start_time_ns;
	struct request_state was = {};
	u64 issued_ns = take(rq, &was);

	if (!issued_ns)
		return 0;
	u32 flags = rq->cmd_flags;
	struct latency_key key = { .device = device_of(rq), .operation = operation_of(flags) };
	if (only_device && key.device != only_device)
		return 0;
	key.mode = mode_of(rq, flags, key.operation);
	struct latency *latency = latency_of(&key);
	if (!latency)
		return 0;
	/* the kernel takes start_time_ns once for a whole plug; 0 if it does not stamp requests */
	u64 from_ns = made_ns && made_ns < issued_ns ? made_ns : issued_ns;
	latency->bytes += bytes;
	latency->errors += error != 0;
	latency->unstamped += made_ns == 0;
	record(&latency->whole, now_ns - from_ns);
	record(&latency->queue, issued_ns - from_ns);
	record(&latency->device, now_ns - issued_ns);
	if (count_by != BY_NONE) {
		struct requester_key requester = { .device = key.device, .operation = key.operation };
		requester.id = count_by == BY_PROCESS ? was.process : group_of(rq);
		count_requester(&requester, &was, bytes, now_ns - from_ns);
	}
	return 0;
}
