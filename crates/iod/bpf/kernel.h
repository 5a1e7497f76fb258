/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The fields of kernel structures that the programs read. libbpf replaces each offset by the running kernel's, from its BTF (CO-RE). A
 * name with ___ is the same structure in another version. */
#pragma once

#include "types.h"

/* Only the names count: libbpf fills in the running kernel's values (include/linux/blk_types.h) */
enum req_flag_bits {
	__REQ_SYNC = 11,
	__REQ_FUA = 17,
	__REQ_PREFLUSH = 18,
	__REQ_RAHEAD = 19,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct blkcg {
	struct cgroup_subsys_state css;
};

struct blkcg_gq {
	struct blkcg *blkcg;
};

struct bio {
	struct blkcg_gq *bi_blkg;
	unsigned short bi_ioprio;
};

struct gendisk {
	int major;
	int first_minor;
};

struct request_queue {
	struct gendisk *disk; /* since 5.15 */
	int id;
};

struct blk_mq_hw_ctx {
	unsigned int queue_num;
};

struct request {
	struct request_queue *q;
	struct blk_mq_hw_ctx *mq_hctx;
	unsigned int cmd_flags;
	int tag;
	unsigned int __data_len;
	struct bio *bio;
	u64 start_time_ns;
};

struct request___before_5_17 {
	struct gendisk *rq_disk;
};

struct request___before_6_14 {
	unsigned short ioprio;
};

#pragma clang attribute pop
