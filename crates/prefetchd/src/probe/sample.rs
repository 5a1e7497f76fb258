//! Samples a program's files to check whether they are in memory. Pure.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ffi::OsStr;

use crate::request::ReadRequest;
use eke_prefetch_model::file_set::{FileSet, Kind, Touched};
use eke_prefetch_model::pages::{Pages, Span};

/// This many of the largest files, and as many evenly from the rest.
const PROBED: usize = 6;
/// Files that fewer launches use may never be resident.
const LEAST_WEIGHT: f32 = 0.5;
/// Spans per file, and pages per span. Devices get more spans, because theirs have few pages each.
const SPANS: usize = 3;
const SPANS_OF_DEVICE: usize = 12;
const PAGES_OF_SPAN: u64 = 64;

/// Requests by their files. Names are compared as bytes: a path is compared part by part.
pub(crate) type Requested<'a> = HashMap<(&'a OsStr, Kind), &'a ReadRequest>;

/// Indexes the requests of a choice.
pub(crate) fn requested(requests: &[ReadRequest]) -> Requested<'_> {
    requests.iter().map(|request| ((request.path.as_os_str(), request.kind), request)).collect()
}

/// Samples the requested files, devices first because probing them needs no path lookup on a disk. Only pages that launches use count: holes are
/// evicted sooner. Directories cannot be probed.
pub(crate) fn sample(set: &FileSet, requested: &Requested<'_>) -> Vec<ReadRequest> {
    let usual = set.files.iter().filter(|file| file.weight >= LEAST_WEIGHT);
    let both = usual.filter_map(|file| Some((*requested.get(&(file.path.as_os_str(), file.kind))?, file)));
    let (devices, files): (Vec<_>, Vec<_>) = both
        .filter(|(request, _)| request.kind != Kind::Directory)
        .partition(|(request, _)| request.kind == Kind::Device);
    let devices = devices.into_iter().map(|(request, file)| part(request, file, SPANS_OF_DEVICE));
    let files = few(files).into_iter().map(|(request, file)| part(request, file, SPANS));
    devices.chain(files).filter(|request| !request.pages.is_empty()).collect()
}

fn few<'a>(mut files: Vec<(&'a ReadRequest, &'a Touched)>) -> Vec<(&'a ReadRequest, &'a Touched)> {
    if files.len() <= 2 * PROBED {
        return files;
    }
    // A stable sort: files of one size stay in order of first use.
    files.sort_by_key(|(_, file)| Reverse(file.pages.count()));
    let rest = files.split_off(PROBED);
    files.extend(rest.iter().step_by(rest.len().div_ceil(PROBED)));
    files
}

fn part(request: &ReadRequest, file: &Touched, spans: usize) -> ReadRequest {
    let used = file.pages.without(&file.stale);
    let all = used.spans();
    let from_all_over = all.iter().step_by(all.len().div_ceil(spans).max(1));
    let begins =
        from_all_over.filter_map(|span| Span::new(span.first, span.end.min(span.first + PAGES_OF_SPAN)));
    let pages: Pages = begins.collect();
    ReadRequest { pages, ..request.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_prefetch_model::file_set::{Stamp, UsedBy};

    fn file(n: u64, kind: Kind, weight: f32) -> Touched {
        let pages: Pages = Span::new(0, 10 * n + 1).into_iter().collect();
        let (stamp, used_by) = (Stamp { ino: n, ..Stamp::default() }, UsedBy::Unknown);
        Touched { path: format!("/{n}").into(), kind, stamp, pages, stale: Pages::default(), weight, used_by }
    }

    fn requests(set: &FileSet) -> Vec<ReadRequest> {
        let request = |f: &Touched| ReadRequest {
            path: f.path.clone(),
            kind: f.kind,
            stamp: f.stamp,
            // with a hole that nobody uses
            pages: f
                .pages
                .union(&Span::new(10 * f.stamp.ino + 1, 10 * f.stamp.ino + 9).into_iter().collect()),
            user: 0,
            is_own: false,
        };
        set.files.iter().map(request).collect()
    }

    #[test]
    fn it_has_the_largest_files_and_evenly_chosen_others_and_only_used_pages() {
        let mut files: Vec<Touched> = (0..400).map(|n| file(n, Kind::File, 1.0)).collect();
        files.push(file(500, Kind::Directory, 1.0));
        files.push(file(600, Kind::Device, 1.0));
        files.push(file(700, Kind::File, 0.2));
        let set = FileSet { files };
        let requests = requests(&set);
        let sample = sample(&set, &requested(&requests));
        let inodes: Vec<u64> = sample.iter().map(|request| request.stamp.ino).collect();
        assert_eq!((inodes.len(), inodes[0], inodes[1]), (1 + 2 * PROBED, 600, 399), "{inodes:?}");
        assert!(inodes[2 * PROBED] < 100, "{inodes:?}");
        for request in &sample {
            let used = &set.files.iter().find(|f| f.stamp == request.stamp).unwrap().pages;
            assert!(
                request.pages.without(used).is_empty() && request.pages.count() <= PAGES_OF_SPAN,
                "{request:?}"
            );
        }
    }

    #[test]
    fn stale_and_unchosen_pages_are_left_out() {
        let mut set = FileSet { files: vec![file(1, Kind::File, 1.0), file(2, Kind::File, 1.0)] };
        set.files[0].stale = Span::new(0, 5).into_iter().collect();
        let requests = requests(&set);
        let sample = sample(&set, &requested(&requests[..1]));
        assert_eq!(sample.len(), 1);
        assert_eq!(sample[0].pages.spans(), [Span { first: 5, end: 11 }]);
    }
}
