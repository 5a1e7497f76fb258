/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Folios of the page cache: how many pages they have, and which one is at an index. */
#pragma once

/* include/linux/xarray.h, without CONFIG_BASE_SMALL */
#define XA_SLOT_BITS 6
#define XA_SLOT_MASK 63
#define XA_LEVELS 11
#define XA_LAST_SIBLING (63 << 2 | 2)

extern int LINUX_KERNEL_VERSION __kconfig;

/* Large folios: the number of pages is kept where there is more than one */
static __always_inline u64 pages_of(struct folio *folio)
{
	struct folio___before_6_14 *older = (void *)folio;
	u64 pages = 1, flags = 0;

	/* the first word in all versions, of several types */
	bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	if (!(flags & 1ull << bpf_core_enum_value(enum pageflags, PG_head)))
		return 1;
	if (bpf_core_field_exists(folio->_nr_pages))
		pages = BPF_CORE_READ(folio, _nr_pages);
	else if (bpf_core_field_exists(older->_folio_nr_pages))
		pages = BPF_CORE_READ(older, _folio_nr_pages);
	return pages ? pages : 1;
}

/* From Linux 6.18 on a fault maps all of a large folio, and so do faults around (mm/memory.c, finish_fault; mm/filemap.c,
 * filemap_map_pages), and no tracepoint tells which. Before that each window of pages is told of. */
static __always_inline bool maps_folios(void)
{
	return LINUX_KERNEL_VERSION >= KERNEL_VERSION(6, 18, 0);
}

/* What is in the page cache at this index: the walk of lib/xarray.c, xas_load(). Entries of two low bits 10 are nodes if they are large
 * and else siblings, the number of another slot; those with the lowest bit are no folios. */
static __always_inline void *cached(struct address_space *mapping, u64 index)
{
	u64 entry = (u64)BPF_CORE_READ(mapping, i_pages.xa_head), at;
	u64 slots = bpf_core_field_offset(struct xa_node, slots);

	for (int level = 0; level < XA_LEVELS && (entry & 3) == 2 && entry > XA_LAST_SIBLING; level++) {
		u64 node = entry - 2;
		u8 shift = BPF_CORE_READ((struct xa_node *)node, shift);

		if (!level && index >> shift >> XA_SLOT_BITS)
			return 0;
		at = (index >> shift) & XA_SLOT_MASK;
		for (int sibling = 0; sibling < 2; sibling++) {
			if (bpf_probe_read_kernel(&entry, sizeof(entry), (void *)(node + slots + at * sizeof(entry))))
				return 0;
			if ((entry & 3) != 2 || entry > XA_LAST_SIBLING)
				break;
			at = (entry >> 2) & XA_SLOT_MASK;
		}
	}
	return entry & 3 ? 0 : (void *)entry;
}

/* The begin and the end of the large folio that is cached at this index; without one both are as they are */
static __always_inline bool widen(struct address_space *mapping, u64 index, u64 *first, u64 *end)
{
	struct folio *folio = cached(mapping, index);
	u64 begin, pages;

	if (!folio)
		return false;
	begin = BPF_CORE_READ(folio, index);
	pages = pages_of(folio);
	/* it may be another one by now */
	if (BPF_CORE_READ(folio, mapping) != mapping || index < begin || index - begin >= pages)
		return true;
	if (begin < *first)
		*first = begin;
	if (begin + pages > *end)
		*end = begin + pages;
	return true;
}
