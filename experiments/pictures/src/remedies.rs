//! The metric of each remedy.

use std::path::Path;

use anyhow::{Context, Result};
use eke_results::page::charts::charts;
use eke_results::report::groups::groups;

use crate::plot;
use crate::stored::Stored;
use crate::theme::Theme;

/// A remedy, its metric and its picture.
#[derive(Debug)]
pub struct Remedy {
    /// Its verb; its page is `docs/NAME.md`, its picture `docs/pictures/NAME-THEME.svg`.
    pub name: &'static str,
    /// The picture's title.
    pub title: &'static str,
    /// The stored result.
    pub stored: Stored,
    /// The variants in the remedy's own picture.
    pub shown: &'static [&'static str],
    /// What it gains, if the stored result shows a gain.
    pub gain: Option<Gain>,
}

/// A row of the README's table: three variants of the stored result.
#[derive(Debug)]
pub struct Gain {
    /// The metric, as in the table.
    pub measured: &'static str,
    /// The variant without any remedy.
    pub without: &'static str,
    /// The best existing tool, and its name in the table.
    pub peer: (&'static str, &'static str),
    /// eke's variant.
    pub ours: &'static str,
    /// Whether less is better.
    pub less_is_better: bool,
}

/// All remedies, in the order of the README's table.
pub const ALL: [Remedy; 5] = [SWAP, CACHE, PREFETCH, IO, LINK];

const SWAP: Remedy = Remedy {
    name: "swap",
    title: "Documents that a box of 124 MB holds",
    stored: Stored { file: "capacity.json", metric: "documents held", conditions: &[] },
    shown: &["nothing", "zram-generator", "Fedora", "zram-tools", "ChromeOS", "tuned zram", "eke"],
    gain: Some(Gain {
        measured: "PDFs open at once in 124 MB",
        without: "nothing",
        peer: ("tuned zram", "zram tuned by hand"),
        ours: "eke",
        less_is_better: false,
    }),
};

const CACHE: Remedy = Remedy {
    name: "cache",
    title: "Throughput of a web server: 1.7 GB of files, 400 MiB of memory, a disk of 44 MB/s",
    stored: Stored { file: "web-default.json", metric: "throughput", conditions: &[] },
    shown: &[
        "ext4",
        "btrfs zstd",
        "ext4, twice the memory",
        "EROFS lz4hc",
        "eke over btrfs",
        "eke over ext4",
    ],
    gain: Some(Gain {
        measured: "web server on a slow disk, one run",
        without: "ext4",
        peer: ("EROFS lz4hc", "EROFS with lz4hc"),
        ours: "eke over ext4",
        less_is_better: false,
    }),
};

const PREFETCH: Remedy = Remedy {
    name: "prefetch",
    title: "Seconds until headless Chromium has ended, on a disk of 120 seeks and 60 MB/s",
    stored: Stored {
        file: "startup.json",
        metric: "start",
        conditions: &[("disk", "laptop"), ("program", "chromium")],
    },
    shown: &["cold", "preload", "eke at exec", "eke ahead", "warm"],
    gain: Some(Gain {
        measured: "start of headless Chromium, the prediction given",
        without: "cold",
        peer: ("preload", "preload"),
        ours: "eke ahead",
        less_is_better: true,
    }),
};

const IO: Remedy = Remedy {
    name: "io",
    title: "Seconds until a cold program on an SD card has run, beside a buffered writer",
    stored: Stored { file: "io-stream.json", metric: "program start", conditions: &[] },
    shown: &[
        "kernel default",
        "wbt 10 ms",
        "kyber",
        "little dirty memory, bfq",
        "bfq",
        "bfq, strict_guarantees",
        "eke",
    ],
    gain: Some(Gain {
        measured: "start of a program beside a writer on an SD card",
        without: "kernel default",
        peer: ("bfq, strict_guarantees", "BFQ, one request at a time"),
        ours: "eke",
        less_is_better: true,
    }),
};

const LINK: Remedy = Remedy {
    name: "link",
    title: "ssh at 1 Gb/s with an Atom-like CPU; its own default is chacha20-poly1305",
    stored: Stored {
        file: "link.json",
        metric: "throughput",
        conditions: &[("cpu", "Atom-like"), ("link", "1 Gb/s")],
    },
    shown: &[
        "aes256-ctr + hmac-sha2-256-etm",
        "aes256-gcm",
        "aes128-gcm",
        "aes128-ctr + umac-64-etm, the study's",
        "chacha20-poly1305",
        "eke",
    ],
    // OpenSSH's own order begins with ChaCha20-Poly1305, eke's choice here.
    gain: None,
};

/// The plot of one remedy.
///
/// # Errors
/// The stored result cannot be read.
pub fn picture(results: &Path, remedy: &Remedy, theme: Theme) -> Result<String> {
    let report = remedy.stored.report(results, remedy.shown)?;
    let groups = groups(&report);
    let group = groups.first().context("no rows")?;
    let mut chart = charts(group).into_iter().next().context("no chart")?;
    remedy.title.clone_into(&mut chart.title);
    Ok(plot::file(&chart, theme))
}
