/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Folios of the page cache: their number of pages, and the folio at an index. */
#pragma once

/* include/linux/xarray.h, without CONFIG_BASE_SMALL */
#define XA_SLOT_BITS 6
#define XA_SLOT_MASK 63
#define XA_LEVELS 11
#define XA_LAST_SIBLING (63 << 2 | 2)

extern int LINUX_KERNEL_VERSION __kconfig;

/* The number of pages, which only large folios store */
static __always_inline u64 pages_of(struct folio *folio)
{
	struct folio___before_6_14 *older = (void *)folio;
	u64 pages = 1, flags = 0;

	/* The flags are the first word in all versions, with different types */
	bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	if (!(flags & 1ull << bpf_core_enum_value(enum pageflags, PG_head)))
		return 1;
	if (bpf_core_field_exists(folio->_nr_pages))
		pages = BPF_CORE_READ(folio, _nr_pages);
	else if (bpf_core_field_exists(older->_folio_nr_pages))
		pages = BPF_CORE_READ(older, _folio_nr_pages);
	return pages ? pages : 1;
}

/* From Linux 6.18 a fault and a fault-around map a whole large folio (mm/memory.c, finish_fault; mm/filemap.c, filemap_map_pages), and no tracepoint
   reports it. Earlier kernels report each window of pages. */
static __always_inline bool maps_folios(void)
{
	return LINUX_KERNEL_VERSION >= KERNEL_VERSION(6, 18, 0);
}

/* The entry of the page cache at this index: the walk of xas_load() in lib/xarray.c. Entries with the low bits 10 are nodes if they are large, and
   otherwise siblings, which hold the number of another slot. Entries with the lowest bit set are no folios. */
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

/* Extends first and end to the large folio that is cached at this index, if any */
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
