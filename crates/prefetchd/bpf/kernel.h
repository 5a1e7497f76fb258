/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The fields of kernel structures that the programs read. libbpf relocates each access by the running kernel's BTF (CO-RE). A name with ___ is the
   structure of another kernel version. */
#pragma once

#include "types.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct qstr {
	const unsigned char *name;
};

struct lockref {
	int count;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct lockref d_lockref;
	union {
		struct hlist_node d_alias;
	} d_u;
};

struct super_block {
	u32 s_dev;
	unsigned long s_magic;
	struct dentry *s_root;
};

struct timespec64 {
	__s64 tv_sec;
	long tv_nsec;
};

/* uidgid_types.h: a kernel user id is that of the first user namespace */
typedef struct {
	u32 val;
} kuid_t;

struct inode {
	u16 i_mode;
	kuid_t i_uid;
	struct super_block *i_sb;
	unsigned long i_ino;
	unsigned int i_nlink;
	u32 i_generation;
	u32 i_rdev;
	__s64 i_size;
	__s64 i_mtime_sec; /* 6.11 */
	u32 i_mtime_nsec;
	struct hlist_head i_dentry;
};

struct inode___before_6_11 {
	struct timespec64 __i_mtime; /* 6.7 */
};

struct inode___before_6_7 {
	struct timespec64 i_mtime;
};

struct xarray {
	void *xa_head;
};

struct xa_node {
	unsigned char shift;
	void *slots[64];
};

struct address_space {
	struct inode *host;
	struct xarray i_pages;
};

struct folio {
	struct address_space *mapping;
	unsigned long index;
	unsigned int _nr_pages; /* 6.14 */
};

struct folio___before_6_14 {
	unsigned int _folio_nr_pages;
};

struct vfsmount;

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	struct path f_path;
	struct inode *f_inode;
};

struct linux_binprm {
	struct file *file;
};

struct mm_struct {
	unsigned long arg_start;
	unsigned long arg_end;
};

typedef struct {
	int counter;
} atomic_t;

struct upid {
	int nr;
};

struct pid {
	struct upid numbers[1]; /* the first one is that of the first pid namespace */
};

/* pid.h: enum pid_type */
#define PIDTYPE_PGID 2

struct signal_struct {
	atomic_t live;
	struct pid *pids[4];
};

struct task_struct {
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct mm_struct *mm;
	struct signal_struct *signal;
	unsigned int sessionid; /* with CONFIG_AUDIT */
	unsigned int flags;
};

struct gendisk {
	int major;
	int first_minor;
};

struct block_device {
	struct gendisk *bd_disk;
};

struct bio {
	struct block_device *bi_bdev; /* 5.12, and before 4.14 */
	unsigned int bi_opf;
};

struct pt_regs___x86 {
	unsigned long orig_ax;
};

struct pt_regs___arm64 {
	int syscallno;
};

#pragma clang attribute pop

enum pageflags {
	PG_head = 6,
};
