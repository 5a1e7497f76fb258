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
    /// The metric, as in the README's table.
    pub measured: &'static str,
    /// The picture's title.
    pub title: &'static str,
    /// The stored result.
    pub stored: Stored,
    /// The variant without any remedy.
    pub without: &'static str,
    /// The best existing tool, and its name in the table.
    pub peer: (&'static str, &'static str),
    /// eke's variant.
    pub ours: &'static str,
    /// Whether less is better.
    pub less_is_better: bool,
    /// The variants in the remedy's own picture.
    pub shown: &'static [&'static str],
}

/// All remedies, in the order of the README's table.
pub const ALL: [Remedy; 5] = [SWAP, CACHE, PREFETCH, IO, LINK];

const SWAP: Remedy = Remedy {
    name: "swap",
    measured: "documents held by 124 MB",
    title: "Documents that a box of 124 MB holds",
    stored: Stored { file: "capacity.json", metric: "documents held", conditions: &[] },
    without: "nothing",
    peer: ("tuned zram", "zram tuned by hand"),
    ours: "eke",
    less_is_better: false,
    shown: &["nothing", "zram-generator", "Fedora", "zram-tools", "ChromeOS", "tuned zram", "eke"],
};

const CACHE: Remedy = Remedy {
    name: "cache",
    measured: "web server on a slow disk",
    title: "Throughput of a web server: 1.7 GB of files, 400 MiB of memory, a disk of 44 MB/s",
    stored: Stored { file: "web-default.json", metric: "throughput", conditions: &[] },
    without: "ext4",
    peer: ("EROFS lz4hc", "EROFS with lz4hc"),
    ours: "eke over ext4",
    less_is_better: false,
    shown: &[
        "ext4",
        "btrfs zstd",
        "ext4, twice the memory",
        "EROFS lz4hc",
        "eke over btrfs",
        "eke over ext4",
    ],
};

const PREFETCH: Remedy = Remedy {
    name: "prefetch",
    measured: "cold start of Chromium",
    title: "Seconds until Chromium is ready, on a disk of 120 seeks and 60 MB/s",
    stored: Stored {
        file: "startup.json",
        metric: "start",
        conditions: &[("disk", "laptop"), ("program", "chromium")],
    },
    without: "cold",
    peer: ("preload", "preload"),
    ours: "eke ahead",
    less_is_better: true,
    shown: &["cold", "preload", "eke at exec", "eke ahead", "warm"],
};

const IO: Remedy = Remedy {
    name: "io",
    measured: "p99 of reads beside a writer",
    title: "p99 of reads on an SD card beside a buffered writer",
    stored: Stored { file: "io-stream.json", metric: "read p99", conditions: &[] },
    without: "kernel default",
    peer: ("kernel default", "the kernel's default"),
    ours: "eke",
    less_is_better: true,
    shown: &["kernel default", "eke"],
};

const LINK: Remedy = Remedy {
    name: "link",
    measured: "ssh to an Atom-like CPU at 1 Gb/s",
    title: "Throughput of ssh at 1 Gb/s with an Atom-like CPU",
    stored: Stored {
        file: "link.json",
        metric: "throughput",
        conditions: &[("cpu", "Atom-like"), ("link", "1 Gb/s")],
    },
    without: "aes128-ctr + umac-64-etm, the study's",
    peer: ("aes128-ctr + umac-64-etm, the study's", "AES128-CTR"),
    ours: "eke",
    less_is_better: false,
    shown: &[
        "aes256-ctr + hmac-sha2-256-etm",
        "aes256-gcm",
        "aes128-gcm",
        "aes128-ctr + umac-64-etm, the study's",
        "chacha20-poly1305",
        "eke",
    ],
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
