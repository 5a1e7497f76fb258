// SPDX-License-Identifier: MIT OR GPL-2.0
/* Reports execs and exits always, notes forks after execs, and the page cache accesses of launches while they are recorded.
 * All programs are BTF tracepoints, so that no tracefs is needed. Those for pages are attached only while a launch is recorded, that for disks
 * only while a launch is read for. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "record.h"
#include "folio.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define RING_BYTES (256 * 1024)
#define PAGES_A_BLOCK 64
/* 4 MiB: the next call of the same read(2) starts where this one ended */
#define BLOCKS_A_CALL 16
#define LINKS 16
#define TMPFS_MAGIC 0x01021994
#define RAMFS_MAGIC 0x858458f6
#define S_IFMT 0170000
#define S_IFBLK 0060000
#define S_IFDIR 0040000
#define S_IFREG 0100000
#define MILLISECOND 1000000ull
#define FORK_WINDOW (1000 * MILLISECOND)
/* include/linux/sched.h */
#define PF_KTHREAD 0x00200000
/* include/linux/blk_types.h: a read is 0 */
#define REQ_OP_MASK 0xff
#define ANCESTORS 8

/* The entries of 8 bytes in a page */
#define PAGES_A_TABLE (1ull << (machine.page_shift - 3))
#define READ_CALLS 3

/* Set before loading */
const volatile struct {
	u32 page_shift;
	u32 read_calls[READ_CALLS]; /* the numbers of madvise(2), fadvise64(2) and readahead(2) */
	u32 registers_tell; /* whether a thread's registers have the number of its system call */
} machine = { .page_shift = 12 };

/* Execs, forks and exits. Pages cannot fill this one: a lost exit leaves a program running for ever */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} process_events SEC(".maps");

/* Files and pages */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} page_events SEC(".maps");

/* The recorded processes by tgid, with their launches; UNDECIDED after an exec. Pages of undecided processes are reported apart from those of
 * their launches, so that what both touch is reported for both */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, u32);
} processes SEC(".maps");

/* btrfs gives the inodes of each subvolume the same numbers, and all subvolumes the same device: their generations tell them apart */
struct inode_key {
	u32 launch;
	u32 dev;
	u64 ino;
	u32 generation;
	u32 pad;
};

struct block_key {
	struct inode_key inode;
	u64 block; /* twice its number; plus one for pages that were only added */
};

/* What was reported already. Evicted entries are reported again, which is harmless */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct inode_key);
	__type(value, u8);
} reported_inodes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct block_key);
	__type(value, u64);
} reported_pages SEC(".maps");

/* Threads in a system call that requests reads, where their registers do not tell */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, u8);
} in_read_call SEC(".maps");

struct missing_page {
	struct address_space *mapping;
	u64 index;
};

/* The page at which a thread faulted and that was not cached, until it is added */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, struct missing_page);
} faulting SEC(".maps");

struct origin {
	u32 pid;   /* the process that executed */
	u32 pad;
	u64 at_ns; /* when */
};

/* Processes that executed a program just now, and their children that did not. A program that forks at once and exits (a daemon) has no
 * parent in /proc when the reader decides to record it */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct origin);
} recent SEC(".maps");

/* The processes whose reads are not others': this one (0), and those that it reads for, with their children (1) */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, u8);
} not_others SEC(".maps");

/* Others' reads so far, by the number of the disk */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, u64);
} others_reads SEC(".maps");

struct scratch {
	struct exec_record exec;
	struct file_record file;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

struct losses {
	u64 events;    /* no room in a ring buffer */
	u64 processes; /* no room in `processes` */
	u64 woken_ns;  /* the reader's last wake-up for an exec */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct losses);
} counts SEC(".maps");

static __always_inline struct losses *counted(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&counts, &zero);
}

static __always_inline struct scratch *scratch(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&scratches, &zero);
}

/* The reader polls; wake it only before the buffer gets full */
static __always_inline u64 wake_when_full(void *ring)
{
	return bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > RING_BYTES / 4 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* Wakes the reader at once for an exec, but during an exec storm only every few milliseconds */
static __always_inline u64 wake_at_once(u64 now)
{
	struct losses *counts = counted();
	if (!counts || now - counts->woken_ns < 4 * MILLISECOND)
		return wake_when_full(&process_events);
	counts->woken_ns = now;
	return BPF_RB_FORCE_WAKEUP;
}

static __always_inline long send(void *ring, void *record, u64 bytes, u64 wake)
{
	long failed = bpf_ringbuf_output(ring, record, bytes, wake);
	struct losses *counts;

	if (failed && (counts = counted()))
		__sync_fetch_and_add(&counts->events, 1);
	return failed;
}

static __always_inline u32 launch_of(u32 pid)
{
	u32 *launch = bpf_map_lookup_elem(&processes, &pid);
	return launch ? *launch : 0;
}

/* Reads the names from this entry up to the root of its file system; returns their bytes */
static __always_inline u32 walk(struct dentry *dentry, struct dentry *root, struct names *names, u8 *flags)
{
	u32 at = 0;

	*flags = PATH_CUT;
	for (int level = 0; level < PATH_LEVELS; level++) {
		if (dentry == root) {
			*flags = 0;
			break;
		}
		struct dentry *parent = BPF_CORE_READ(dentry, d_parent);
		if (!parent || parent == dentry || at >= PATH_BYTES)
			break;
		long bytes = bpf_probe_read_kernel_str(&names->text[at & (PATH_BYTES - 1)], NAME_BYTES, BPF_CORE_READ(dentry, d_name.name));
		if (bytes <= 1 || bytes > NAME_BYTES)
			break;
		at += bytes;
		dentry = parent;
	}
	return at;
}

/* The verifier needs a bound on the register in use, which the compiler might move elsewhere */
static __always_inline u64 at_most(u64 bytes, u64 most)
{
	asm volatile("" : "+r"(bytes));
	if (bytes > most)
		bytes = most;
	return bytes;
}

/* The record without the unused space for names */
static __always_inline u64 sent_bytes(u64 whole, u32 names)
{
	return whole - sizeof(struct names) + at_most(names, sizeof(struct names));
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	struct scratch *scratch_here = scratch();
	if (!scratch_here)
		return 0;
	struct exec_record *record = &scratch_here->exec;
	struct file *file = BPF_CORE_READ(bprm, file);
	u64 args = BPF_CORE_READ(task, mm, arg_start);
	u64 args_bytes = BPF_CORE_READ(task, mm, arg_end) - args;

	record->kind = KIND_EXEC;
	record->at_ns = bpf_ktime_get_ns();
	record->pid = bpf_get_current_pid_tgid() >> 32;
	record->launch = launch_of(record->pid);
	record->parent = BPF_CORE_READ(task, real_parent, tgid);
	record->uid = bpf_get_current_uid_gid();
	record->group = BPF_CORE_READ(task, signal, pids[PIDTYPE_PGID], numbers[0].nr);
	record->session = ~0u;
	if (bpf_core_field_exists(task->sessionid))
		record->session = BPF_CORE_READ(task, sessionid);
	record->ino = BPF_CORE_READ(file, f_inode, i_ino);
	record->dev = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	record->args_more = args_bytes > ARGS_BYTES;
	args_bytes = at_most(args_bytes, ARGS_BYTES);
	record->args_bytes = bpf_probe_read_user(record->args, args_bytes, (void *)args) ? 0 : args_bytes;
	struct dentry *root = BPF_CORE_READ(file, f_inode, i_sb, s_root);
	u32 names = walk(BPF_CORE_READ(file, f_path.dentry), root, &record->names, &record->flags);
	record->names_bytes = names;
	/* of a deleted file: another one may be at its path */
	if (!BPF_CORE_READ(file, f_inode, i_nlink))
		record->flags |= PATH_CUT;
	struct origin origin = { .pid = record->pid, .at_ns = record->at_ns };
	bpf_map_update_elem(&recent, &origin.pid, &origin, BPF_ANY);
	/* Before the reader knows of the exec and decides */
	if (record->launch) {
		u32 pid = record->pid, undecided = record->launch | UNDECIDED;
		bpf_map_update_elem(&processes, &pid, &undecided, BPF_EXIST);
	}
	send(&process_events, record, sent_bytes(sizeof(*record), names), wake_at_once(record->at_ns));
	return 0;
}

static __always_inline void send_process(u8 kind, u32 launch, u32 pid, u32 parent)
{
	struct process_record record = { .kind = kind, .launch = launch, .pid = pid, .parent = parent };
	record.at_ns = bpf_ktime_get_ns();
	send(&process_events, &record, sizeof(record), wake_when_full(&process_events));
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	/* the process's last thread: all kernel versions decrement this before the tracepoint */
	if (BPF_CORE_READ(task, signal, live.counter) != 0)
		return 0;
	u32 pid = bpf_get_current_pid_tgid() >> 32;
	u32 launch = launch_of(pid);

	if (launch)
		bpf_map_delete_elem(&processes, &pid);
	send_process(KIND_EXIT, launch, pid, 0);
	return 0;
}

/* Until a process is recorded, its children are remembered for a moment */
static __always_inline void note_child(u32 from, u32 pid)
{
	struct origin *known = bpf_map_lookup_elem(&recent, &from);
	struct origin origin;

	if (!known || bpf_ktime_get_ns() - known->at_ns > FORK_WINDOW)
		return;
	origin = *known;
	bpf_map_update_elem(&recent, &pid, &origin, BPF_ANY);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 from = BPF_CORE_READ(parent, tgid), pid = BPF_CORE_READ(child, tgid);
	u32 launch = launch_of(from);
	struct losses *counts;

	if (pid == from)
		return 0;
	if (!launch) {
		note_child(from, pid);
		return 0;
	}
	if (bpf_map_update_elem(&processes, &pid, &launch, BPF_ANY)) {
		if ((counts = counted()))
			__sync_fetch_and_add(&counts->processes, 1);
		return 0;
	}
	send_process(KIND_FORK, launch, pid, from);
	return 0;
}

/* The key of an inode; false for all but regular files, directories, and block devices, whose pages are their file system's metadata */
static __always_inline bool identify(struct inode *inode, u32 launch, struct inode_key *key)
{
	u16 type = inode->i_mode & S_IFMT;
	u64 magic;

	key->launch = launch;
	key->generation = 0;
	if (type == S_IFBLK) {
		key->dev = inode->i_rdev;
		key->ino = 0;
		return true;
	}
	if (type != S_IFREG && type != S_IFDIR)
		return false;
	magic = inode->i_sb->s_magic;
	key->dev = inode->i_sb->s_dev;
	key->ino = inode->i_ino;
	key->generation = inode->i_generation;
	return magic != TMPFS_MAGIC && magic != RAMFS_MAGIC;
}

static __always_inline void read_mtime(struct inode *inode, struct file_record *record)
{
	struct inode___before_6_11 *older = (void *)inode;
	struct inode___before_6_7 *oldest = (void *)inode;

	if (bpf_core_field_exists(inode->i_mtime_sec)) {
		record->mtime_s = BPF_CORE_READ(inode, i_mtime_sec);
		record->mtime_ns = BPF_CORE_READ(inode, i_mtime_nsec);
	} else if (bpf_core_field_exists(older->__i_mtime)) {
		record->mtime_s = BPF_CORE_READ(older, __i_mtime.tv_sec);
		record->mtime_ns = BPF_CORE_READ(older, __i_mtime.tv_nsec);
	} else {
		record->mtime_s = BPF_CORE_READ(oldest, i_mtime.tv_sec);
		record->mtime_ns = BPF_CORE_READ(oldest, i_mtime.tv_nsec);
	}
}

/* A name of the inode: with several hard links one in use, not one that was only looked up */
static __always_inline struct dentry *any_entry(struct inode *inode)
{
	struct hlist_node *alias = BPF_CORE_READ(inode, i_dentry.first);
	struct dentry *entry, *first = 0;

	for (int i = 0; i < LINKS && alias; i++) {
		entry = (void *)alias - __builtin_preserve_field_info(((struct dentry *)0)->d_u, 0);
		if (BPF_CORE_READ(entry, d_lockref.count) > 0)
			return entry;
		if (!first)
			first = entry;
		alias = BPF_CORE_READ(alias, next);
	}
	return first;
}

/* Reports an inode once per launch */
static __always_inline void report_inode(struct inode *inode, struct inode_key *key)
{
	struct scratch *scratch_here = scratch();
	u8 yes = 1;
	u32 names = 0;

	if (!scratch_here || bpf_map_update_elem(&reported_inodes, key, &yes, BPF_NOEXIST))
		return;
	struct file_record *record = &scratch_here->file;
	record->kind = KIND_FILE;
	record->at_ns = bpf_ktime_get_ns();
	record->launch = key->launch;
	record->pid = bpf_get_current_pid_tgid() >> 32;
	record->dev = key->dev;
	record->ino = key->ino;
	record->generation = key->generation;
	record->size = inode->i_size;
	record->nlink = inode->i_nlink;
	record->mode = inode->i_mode;
	record->owner = BPF_CORE_READ(inode, i_uid.val);
	record->flags = PATH_CUT;
	read_mtime(inode, record);
	struct dentry *entry = key->ino ? any_entry(inode) : 0;
	if (entry)
		names = walk(entry, BPF_CORE_READ(inode, i_sb, s_root), &record->names, &record->flags);
	record->names_bytes = names;
	if (send(&page_events, record, sent_bytes(sizeof(*record), names), wake_when_full(&page_events)))
		bpf_map_delete_elem(&reported_inodes, key);
}

static __always_inline u64 mask_of(u64 block, u64 first, u64 end)
{
	u64 from = block * PAGES_A_BLOCK, mask = ~0ull;

	if (first > from)
		mask &= ~0ull << ((first - from) & 63);
	if (end < from + PAGES_A_BLOCK)
		mask &= ~0ull >> ((from + PAGES_A_BLOCK - end) & 63);
	return mask;
}

/* Reports the pages of the mask that were not reported before */
static __always_inline void report_block(struct block_key *key, u64 mask, u8 how)
{
	u64 *reported = bpf_map_lookup_elem(&reported_pages, key);
	struct pages_record record = {
		.kind = KIND_PAGES, .how = how, .launch = key->inode.launch, .ino = key->inode.ino, .dev = key->inode.dev,
		.generation = key->inode.generation,
		.first = (key->block >> 1) * PAGES_A_BLOCK,
		.mask = reported ? mask & ~*reported : mask,
		.pid = bpf_get_current_pid_tgid() >> 32,
		.at_ns = bpf_ktime_get_ns(),
	};

	if (!record.mask || send(&page_events, &record, sizeof(record), wake_when_full(&page_events)))
		return;
	if (reported)
		*reported |= mask;
	else
		bpf_map_update_elem(&reported_pages, key, &mask, BPF_ANY);
}

/* Reports the pages [first, end) of this inode */
static __always_inline void report(struct inode *inode, u64 first, u64 end, u8 how)
{
	u32 launch = launch_of(bpf_get_current_pid_tgid() >> 32);
	struct block_key key = {};

	if (!launch || !inode || !identify(inode, launch, &key.inode))
		return;
	if (key.inode.ino) {
		u64 pages = (inode->i_size + (1ull << machine.page_shift) - 1) >> machine.page_shift;
		if (end > pages)
			end = pages;
	}
	if (first >= end)
		return;
	report_inode(inode, &key.inode);
	for (u32 i = 0; i < BLOCKS_A_CALL; i++) {
		u64 block = first / PAGES_A_BLOCK + i;
		if (block * PAGES_A_BLOCK >= end)
			break;
		key.block = block * 2 + (how == HOW_ADDED);
		report_block(&key, mask_of(block, first, end), how);
	}
}

struct pt_regs;

static __always_inline bool requests_reads(long number)
{
	bool requests = false;

	for (int i = 0; i < READ_CALLS; i++)
		requests |= number == machine.read_calls[i];
	return requests;
}

/* Whether this thread is in such a system call. It is -1 in a fault */
static __always_inline bool in_call(u64 thread)
{
	struct pt_regs___x86 *x86;
	struct pt_regs___arm64 *arm64;

	if (!machine.registers_tell)
		return bpf_map_lookup_elem(&in_read_call, &thread);
	x86 = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	arm64 = (void *)x86;
	if (bpf_core_field_exists(x86->orig_ax))
		return requests_reads(BPF_CORE_READ(x86, orig_ax));
	if (bpf_core_field_exists(arm64->syscallno))
		return requests_reads(BPF_CORE_READ(arm64, syscallno));
	return false;
}

/* These two run in all system calls of all threads: only where it must be */
SEC("tp_btf/sys_enter")
int BPF_PROG(on_call, struct pt_regs *regs, long number)
{
	u64 thread = bpf_get_current_pid_tgid();
	u8 yes = 1;

	if (requests_reads(number) && launch_of(thread >> 32))
		bpf_map_update_elem(&in_read_call, &thread, &yes, BPF_ANY);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_return, struct pt_regs *regs, long result)
{
	u64 thread = bpf_get_current_pid_tgid();

	/* A lookup takes no lock, a deletion does */
	if (bpf_map_lookup_elem(&in_read_call, &thread))
		bpf_map_delete_elem(&in_read_call, &thread);
	return 0;
}

/* The kernel maps all of a folio that fills a page table, and reports nothing (mm/filemap.c, filemap_map_pmd): only its arrival is
 * visible. Such large read-ahead happens only for sequential access.
 * Requested pages are read whether the program touches them or not, and a launch may wait for them: so they count as read */
SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(on_add, struct folio *folio)
{
	u64 index = BPF_CORE_READ(folio, index), thread = bpf_get_current_pid_tgid();
	struct inode *inode = folio->mapping->host;
	u64 end = index + pages_of(folio);
	struct missing_page *missing;

	report(inode, index, end, HOW_ADDED);
	if (launch_of(thread >> 32) && in_call(thread))
		report(inode, index, end, HOW_READ);
	missing = bpf_map_lookup_elem(&faulting, &thread);
	if (missing && (missing->mapping != folio->mapping || missing->index < index || missing->index >= end))
		missing = 0;
	if (missing || end - index >= PAGES_A_TABLE)
		report(inode, index, end, HOW_MAPPED);
	return 0;
}

SEC("tp_btf/mm_filemap_fault")
int BPF_PROG(on_fault, struct address_space *mapping, unsigned long index)
{
	u64 first = index, end = first + 1, thread = bpf_get_current_pid_tgid();
	struct missing_page missing = { .mapping = mapping, .index = index };

	report(mapping->host, first, end, HOW_FAULT);
	if (!maps_folios() || !launch_of(thread >> 32))
		return 0;
	if (widen(mapping, index, &first, &end))
		report(mapping->host, first, end, HOW_MAPPED);
	else
		bpf_map_update_elem(&faulting, &thread, &missing, BPF_ANY);
	return 0;
}

SEC("tp_btf/mm_filemap_map_pages")
int BPF_PROG(on_map, struct address_space *mapping, unsigned long first, unsigned long last)
{
	u64 begin = first, end = (u64)last + 1;

	if (maps_folios() && launch_of(bpf_get_current_pid_tgid() >> 32)) {
		widen(mapping, first, &begin, &end);
		widen(mapping, last, &begin, &end);
	}
	report(mapping->host, begin, end, HOW_MAPPED);
	return 0;
}

/* The last page is part of the read (mm/filemap.c, filemap_get_pages: `last_index - 1`). A read that finds its first pages in memory and
 * not a later one is reported only from that one on: the kernel skips this tracepoint before it waits. */
SEC("tp_btf/mm_filemap_get_pages")
int BPF_PROG(on_read, struct address_space *mapping, unsigned long first, unsigned long last)
{
	report(mapping->host, first, (u64)last + 1, HOW_READ);
	return 0;
}

static __always_inline bool is_other(struct task_struct *task)
{
	for (int i = 0; i < ANCESTORS && task; i++) {
		u32 tgid = BPF_CORE_READ(task, tgid);
		u8 *with_children = bpf_map_lookup_elem(&not_others, &tgid);
		if (with_children && (!i || *with_children))
			return false;
		if (tgid <= 1)
			break;
		task = BPF_CORE_READ(task, real_parent);
	}
	return true;
}

/* In the context of the submitting thread. What kernel threads submit was submitted before, to the device above. Before 5.12 a bio has its disk
 * elsewhere, and before 5.11 this tracepoint has other arguments: nothing is counted there */
SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_disk_read, struct bio *bio)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u64 one = 1, *reads;

	if (!bpf_core_field_exists(bio->bi_bdev))
		return 0;
	if (bio->bi_opf & REQ_OP_MASK || BPF_CORE_READ(task, flags) & PF_KTHREAD || !is_other(task))
		return 0;
	struct gendisk *disk = bio->bi_bdev->bd_disk;
	u32 dev = (u32)disk->major << 20 | (u32)disk->first_minor;
	reads = bpf_map_lookup_elem(&others_reads, &dev);
	if (reads)
		__sync_fetch_and_add(reads, 1);
	else
		bpf_map_update_elem(&others_reads, &dev, &one, BPF_ANY);
	return 0;
}
