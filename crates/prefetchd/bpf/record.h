/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The records in the ring buffers; src/trace/record.rs has the same layouts. All have their time at the same place. */
#pragma once

enum kind {
	KIND_EXEC = 1,
	KIND_EXIT = 2,
	KIND_FORK = 3,
	KIND_FILE = 4,
	KIND_PAGES = 5,
};

enum how {
	HOW_ADDED = 0,  /* a page entered the page cache for this process, perhaps only by read-ahead */
	HOW_FAULT = 1,  /* a fault at this page */
	HOW_MAPPED = 2, /* mapped together with the pages around a fault */
	HOW_READ = 3,   /* requested by read(2) and similar calls, or by madvise(2) or readahead(2) */
};

/* In a launch: its process has executed another program since, and the reader has not decided yet whether that belongs to the launch */
#define UNDECIDED (1u << 31)

/* The path is incomplete: too long, or without a name */
#define PATH_CUT 1

#define ARGS_BYTES 256
#define PATH_BYTES 1024
#define NAME_BYTES 256
#define PATH_LEVELS 32

/* The names of a path up to the root of its file system, last first, each followed by a zero byte */
struct names {
	char text[PATH_BYTES + NAME_BYTES];
};

struct exec_record {
	u8 kind;
	u8 flags;
	u16 names_bytes;
	u32 launch; /* 0: none */
	u64 at_ns;  /* CLOCK_MONOTONIC */
	u64 ino;
	u32 dev;
	u32 pid;
	u32 parent;
	u32 uid;
	u16 args_bytes;
	u16 args_more; /* there are more arguments */
	u32 group;
	u32 session; /* of audit; ~0: none */
	u32 pad;
	char args[ARGS_BYTES];
	struct names names;
};

struct process_record {
	u8 kind;
	u8 pad[3];
	u32 launch;
	u64 at_ns;
	u32 pid;
	u32 parent;
};

struct file_record {
	u8 kind;
	u8 flags;
	u16 names_bytes;
	u32 launch;
	u64 at_ns;
	u64 ino;
	u64 size;
	__s64 mtime_s;
	u32 mtime_ns;
	u32 dev;
	u32 nlink;
	u16 mode;
	u16 pad;
	u32 pid;
	u32 owner;
	u32 generation; /* of the inode */
	u32 pad2;
	struct names names;
};

struct pages_record {
	u8 kind;
	u8 how;
	u16 pad;
	u32 launch;
	u64 at_ns;
	u64 ino;
	u64 first; /* the page of bit 0, a multiple of 64 */
	u64 mask;
	u32 dev;
	u32 pid;
	u32 generation; /* of the inode */
	u32 pad2;
};

_Static_assert(__builtin_offsetof(struct exec_record, names) == 312, "as in record.rs");
_Static_assert(__builtin_offsetof(struct file_record, names) == 72, "as in record.rs");
_Static_assert(sizeof(struct pages_record) == 56 && sizeof(struct process_record) == 24, "as in record.rs");
