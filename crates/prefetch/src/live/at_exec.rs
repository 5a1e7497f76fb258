//! Reading what is missing of a program that has just started.
//!
//! Most launches are warm. So of many files a few are looked at first, and the rest only if something of these was missing: to open
//! each file of each launch would cost every warm one.

use std::cmp::Reverse;
use std::io;
use std::time::Duration;

use super::say::Said;
use crate::fetch::{Fetch, Fetcher, Haste, Report, Want};
use crate::file_set::Kind;
use crate::program::ProgramId;

/// So few files are all looked at.
const FEW: usize = 64;
/// Of more files this many of the largest, and as many from all over the rest, are looked at first ...
const LOOKED_AT: usize = 8;
/// ... and this many where the file system's own pages are known, which are looked at too: if they are missing the launch is cold, and
/// to open files before they are there takes seeks for each.
const BESIDE_METADATA: usize = 2;
/// Launches whose files are read at once.
const MOST: usize = 4;
/// After this a launch is over, or its files are read by now.
const LONGEST: Duration = Duration::from_secs(60);
/// A program that is started again so soon has its files in memory.
const AGAIN: Duration = Duration::from_secs(10);
/// Programs whose last start is remembered.
const MOST_REMEMBERED: usize = 256;

/// One launch.
#[derive(Debug)]
struct Going {
    fetch: Fetch,
    pid: u32,
    name: String,
    began: Duration,
    /// What is read if the look finds something missing.
    rest: Vec<Want>,
    /// What the look read, and when it was over.
    looked: Option<(Report, Duration)>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct AtExec {
    going: Vec<Going>,
    last: Vec<(ProgramId, Duration)>,
}

impl AtExec {
    /// Is there room for another, and is it long enough ago that this program was looked at?
    pub fn may_begin(&mut self, program: ProgramId, now: Duration) -> bool {
        self.last.retain(|(_, at)| now.saturating_sub(*at) < AGAIN);
        self.going.len() < MOST
            && self.last.len() < MOST_REMEMBERED
            && !self.last.iter().any(|(id, _)| *id == program)
    }

    /// Begins with a look at what a process executed at `now`.
    ///
    /// # Errors
    /// The kernel's answer if there is no descriptor or thread for it.
    pub fn begin(
        &mut self,
        fetcher: &Fetcher,
        (program, name, pid): (ProgramId, String, u32),
        wants: Vec<Want>,
        now: Duration,
    ) -> io::Result<()> {
        self.last.push((program, now));
        let look = sample(&wants);
        let rest = if look.len() < wants.len() { wants } else { Vec::new() };
        let fetch = fetcher.start(look, Haste::AtExec)?;
        self.going.push(Going { fetch, pid, name, began: now, rest, looked: None });
        Ok(())
    }

    /// A process ended: nobody waits for its files.
    pub fn ended(&mut self, pid: u32) {
        self.going.iter().filter(|going| going.pid == pid).for_each(|going| going.fetch.stop());
    }

    /// Goes on with those whose look is over; what is done with those that are done: what was read at exec, with its line.
    pub fn turn(&mut self, fetcher: &Fetcher, now: Duration) -> Vec<(Report, Said)> {
        let mut done = Vec::new();
        let mut kept = Vec::new();
        for mut going in std::mem::take(&mut self.going) {
            if now.saturating_sub(going.began) > LONGEST {
                going.fetch.stop();
            }
            if !going.fetch.is_over() && !going.is_cold() {
                kept.push(going);
                continue;
            }
            match going.next(fetcher, now) {
                Some(next) => kept.push(next),
                None => done.extend(going.said(now)),
            }
        }
        self.going = kept;
        done
    }

    /// Is something under way?
    pub fn is_busy(&self) -> bool {
        !self.going.is_empty()
    }
}

impl Going {
    /// The look has found something missing: it need not go on.
    fn is_cold(&self) -> bool {
        !self.rest.is_empty() && self.fetch.report().fetched_bytes > 0
    }

    /// The rest, if the look found something missing and nobody stopped it.
    fn next(&mut self, fetcher: &Fetcher, now: Duration) -> Option<Self> {
        let report = self.fetch.report();
        let stopped = report.ended == Some(crate::fetch::Ended::Stopped);
        if self.rest.is_empty() || report.fetched_bytes == 0 || stopped {
            return None;
        }
        let rest = std::mem::take(&mut self.rest);
        let fetch = fetcher.start(rest, Haste::AtExec).ok()?;
        let (name, looked) = (std::mem::take(&mut self.name), Some((report, now)));
        Some(Self { fetch, pid: self.pid, name, began: self.began, rest: Vec::new(), looked })
    }

    /// What is said; nothing of a warm launch.
    fn said(self, now: Duration) -> Option<(Report, Said)> {
        let mut report = self.fetch.report();
        let (looked_bytes, looked) = self.looked.map_or((0, now), |(report, at)| (report.fetched_bytes, at));
        report.fetched_bytes += looked_bytes;
        let (bytes, there_bytes) = (report.fetched_bytes, report.there_bytes);
        let since = |at: Duration| at.saturating_sub(self.began).as_secs_f64();
        let (looked_s, took_s) = (since(looked), since(now));
        let said = Said::AtExec { program: self.name, bytes, there_bytes, looked_s, took_s };
        (bytes > 0).then_some((report, said))
    }
}

/// A few files: the largest, and others from all over the rest, after the file system's own pages. Few are all of them.
fn sample(wants: &[Want]) -> Vec<Want> {
    if wants.len() <= FEW {
        return wants.to_vec();
    }
    let of = |kind: Kind| wants.iter().filter(move |want| want.kind == kind);
    let metadata: Vec<&Want> = of(Kind::Device).collect();
    let looked_at = if metadata.is_empty() { LOOKED_AT } else { BESIDE_METADATA };
    let mut files: Vec<&Want> = of(Kind::File).collect();
    files.sort_by_key(|want| Reverse(want.pages.count()));
    let rest = files.split_off(files.len().min(looked_at));
    let step = rest.len().div_ceil(looked_at).max(1);
    metadata.into_iter().chain(files).chain(rest.into_iter().step_by(step)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_set::Stamp;
    use crate::pages::{Pages, Span};

    #[test]
    fn a_sample_is_a_few_files_from_all_over() {
        let want = |n: u64| Want {
            path: format!("/{n}").into(),
            kind: if n % 10 == 0 { Kind::Directory } else { Kind::File },
            stamp: Stamp { ino: n, ..Stamp::default() },
            pages: Span::new(0, n + 1).into_iter().collect::<Pages>(),
        };
        let mut wants: Vec<Want> = (0..400).map(want).collect();
        let inodes: Vec<u64> = sample(&wants).iter().map(|want| want.stamp.ino).collect();
        assert_eq!((inodes.len(), inodes[0]), (2 * LOOKED_AT, 399), "{inodes:?}");
        assert!(inodes[2 * LOOKED_AT - 1] < 60, "{inodes:?}");
        assert_eq!(sample(&wants[..3]), wants[..3]);
        wants[200].kind = Kind::Device;
        let with_metadata = sample(&wants);
        assert_eq!((with_metadata.len(), with_metadata[0].kind), (1 + 2 * BESIDE_METADATA, Kind::Device));
    }
}
