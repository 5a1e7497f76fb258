// The plots: what each shows, and what it says where there is nothing to show.

export const PANELS = [
  {
    id: "memory", title: "Memory", unit: "bytes", stacked: true, wide: true,
    note: "How RAM is used, from the bottom: what programs hold, what eke compressed, the kernel's own, files that may go, free.",
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
    note: "What left RAM and is held compressed, and the RAM that holding it takes. The space between is what is gained.",
    lines: [["held", "held, uncompressed"], ["pool", "RAM it takes"]],
  },
  {
    id: "pages", title: "Pages in and out", unit: "perSecond",
    note: "Pages that came back from swap, compressed or on a disk, and went there; faults that had to wait.",
    lines: [["pages_in", "in"], ["pages_out", "out"], ["major_faults", "major faults"]],
  },
  {
    id: "cpu", title: "What it costs", unit: "percent",
    note: "CPU time of the kernel's reclaim threads, most compression in it, as a share of one CPU.",
    lines: [["kswapd", "kswapd"]],
  },
  {
    id: "tiers", title: "Cache tiers", unit: "bytesPerSecond",
    note: "Reads of your mounted caches that the kernel's page cache did not have: answered from compressed memory, or read from the disk.",
    lines: [["from_store", "from compressed memory"], ["from_backing", "from the disk"]],
    none: "No compressed page cache of yours is mounted: eke cache mount DIRECTORY.",
  },
  {
    id: "launches", title: "Launches", unit: "perMinute",
    note: "Starts of programs, and those of programs whose files had been read before.",
    lines: [["launches", "seen"], ["predicted", "predicted"]],
    none: "Prefetch is off: enabled = true below [prefetch] in /etc/eke/eke.toml, then sudo eke up.",
  },
  {
    id: "prefetch", title: "Read before it is asked for", unit: "bytesPerSecond",
    note: "What was read ahead of starts, what of that a start used, and what was read at the moment of a start.",
    lines: [["ahead", "read ahead"], ["used", "used"], ["at_exec", "at starts"]],
    // the panel before it says why there is nothing
    none: "",
  },
];
