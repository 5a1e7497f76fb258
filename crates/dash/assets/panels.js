// The plots: the lines of each, its note, and the sentence shown without data.

export const PANELS = [
  {
    id: "memory", title: "Memory", unit: "bytes", stacked: true, wide: true,
    note: "How RAM is used, from the bottom: programs, the compressed pool, the kernel, reclaimable files, free.",
    lines: [["anonymous", "programs (anonymous)"], ["shared", "shared, tmpfs"], ["pool", "compressed pool"], ["other", "kernel and other"], ["file_cache", "file cache"], ["free", "free"]],
    end: view => view.snapshot.machine.memory.total,
  },
  {
    id: "pressure", title: "Waiting", unit: "percent",
    note: "Share of the time in which some task (or all of them) waited, over 10 s each.",
    lines: [["memory_some", "for memory"], ["memory_full", "all, for memory"], ["io_some", "for reads and writes"], ["cpu_some", "for a CPU"]],
    none: "This kernel does not count how tasks wait (CONFIG_PSI, or psi=1 on its command line).",
  },
  {
    id: "compressed", title: "Held compressed", unit: "bytes",
    note: "The size of the compressed pages before compression, and the RAM that they take. The space between is the gain.",
    lines: [["held", "before compression"], ["pool", "in RAM"]],
  },
  {
    id: "pages", title: "Pages in and out", unit: "perSecond",
    note: "Pages read from swap and written to it, compressed or on a disk; faults that had to wait.",
    lines: [["pages_in", "in"], ["pages_out", "out"], ["major_faults", "major faults"]],
  },
  {
    id: "cpu", title: "What it costs", unit: "percent",
    note: "CPU time of the kernel's reclaim threads, most compression in it, as a share of one CPU.",
    lines: [["kswapd", "kswapd"]],
  },
  {
    id: "tiers", title: "Cache tiers", unit: "bytesPerSecond",
    note: "Reads of your mounted caches that missed the kernel's page cache: from compressed memory, or from the disk.",
    lines: [["from_store", "from compressed memory"], ["from_backing", "from the disk"]],
    none: "No compressed page cache of yours is mounted: eke cache mount DIRECTORY.",
  },
  {
    id: "launches", title: "Launches", unit: "perMinute",
    note: "Program starts, and those that were predicted.",
    lines: [["launches", "seen"], ["predicted", "predicted"]],
    none: "Prefetch is off: eke plan says why. To run it in any case: enabled = \"on\" under [prefetch] in /etc/eke/eke.toml, then sudo eke up.",
  },
  {
    id: "prefetch", title: "Prefetched", unit: "bytesPerSecond",
    note: "Bytes read ahead of starts, bytes chosen for programs that then started, and bytes read at the moment of a start.",
    lines: [["ahead", "read ahead"], ["used", "used"], ["at_exec", "at starts"]],
    // the panel before it shows the reason
    none: "",
  },
];
