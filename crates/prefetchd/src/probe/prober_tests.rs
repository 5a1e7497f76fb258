#![expect(clippy::disallowed_methods, reason = "test code")]

use std::os::unix::fs::MetadataExt;

use super::*;
use crate::file::resident::tests::{CALLS, refusing};
use eke_prefetch_model::file_set::{Kind, Stamp};

/// A file of one page, which was just written, and who may read it.
fn request(dir: &Path, user: u32) -> ReadRequest {
    std::fs::write(dir.join("file"), [7; 4096]).unwrap();
    let meta = std::fs::metadata(dir.join("file")).unwrap();
    let mtime_ns = meta.mtime() * 1_000_000_000 + meta.mtime_nsec();
    let stamp = Stamp { dev: meta.dev(), ino: meta.ino(), size: meta.len(), mtime_ns };
    let pages = Pages::from_iter(Span::new(0, 1));
    ReadRequest { path: "/file".into(), kind: Kind::File, stamp, pages, user, is_own: false }
}

#[test]
fn what_the_kernel_does_not_tell_is_not_resident() {
    let dir = tempfile::tempdir().unwrap();
    let (top, page) = (top(dir.path()).unwrap(), Root::host().page_size());
    let owner = rustix::process::getuid().as_raw();
    let requests = [request(dir.path(), owner)];
    assert_eq!(residency(&top, page, &requests), Some(Residency::Resident));
    assert_eq!(refusing(&CALLS, || residency(&top, page, &requests)), None);
    assert_eq!(refusing(&CALLS[..1], || residency(&top, page, &requests)), Some(Residency::Resident));
    assert_eq!(residency(&top, page, &[]), Some(Residency::Resident), "nothing to prefetch");
}

#[test]
fn files_that_cannot_be_opened_are_not_resident() {
    let dir = tempfile::tempdir().unwrap();
    let (top, page) = (top(dir.path()).unwrap(), Root::host().page_size());
    if rustix::process::getuid().is_root() {
        let of_root = request(dir.path(), 1000);
        rustix::fs::chown(dir.path().join("file"), Some(rustix::fs::Uid::from_raw(1001)), None).unwrap();
        assert_eq!(residency(&top, page, &[of_root]), None);
    }
}
