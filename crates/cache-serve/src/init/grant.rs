//! Decides what to agree on, from what the kernel offers. Pure.

use eke_cachefs::fs::MOST_ELSEWHERE;
use eke_model::units::PageSize;
use fuser::InitFlags;
use thiserror::Error;

use super::bytes::{Grant, Offer};

/// The oldest protocol: Linux 5.4 (`FUSE_EXPLICIT_INVAL_DATA` came with 7.30, `FUSE_INTERRUPT` races ended with 7.31).
const OLDEST_MINOR: u32 = 31;
/// The newest that fuser 0.18 knows.
const NEWEST_MINOR: u32 = 40;
/// The longest write, in bytes. Each session has memory for one (see `prefault`).
pub const LONGEST_WRITE: u32 = 256 << 10;
/// The longest read, in bytes: with pages of 4 KiB the default of `fs.fuse.max_pages_limit`, 256. The kernel's limit is in pages, so
/// with larger pages it would request 16 MiB at once.
const LONGEST_READ: u64 = 1 << 20;
/// Readahead requests in flight, at most: 64 keep a fast disk busy, which the kernel's default of 12 leaves idle, and as many more may be
/// left unanswered by a file system inside the directory that hangs.
const BACKGROUND: u16 = 64 + MOST_ELSEWHERE as u16;

/// The kernel lacks what every mount needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the kernel's FUSE is version 7.{0}; eke-cache needs 7.31 (Linux 5.4)")]
pub struct TooOld(pub u32);

/// The flags that the device itself needs, whatever the file system requests.
fn always() -> InitFlags {
    InitFlags::FUSE_ASYNC_READ
        | InitFlags::FUSE_BIG_WRITES
        | InitFlags::FUSE_MAX_PAGES
        | InitFlags::FUSE_INIT_EXT
        | InitFlags::FUSE_HAS_RESEND
}

/// Agrees on what is both offered and in `requested` (`FUSE_*` of fuser's `InitFlags`), on a machine with pages of this size.
/// Without `passes` no passthrough; only root can use it (`FUSE_DEV_IOC_BACKING_OPEN` needs CAP_SYS_ADMIN).
///
/// # Errors
/// The kernel is too old.
pub fn grant(offer: &Offer, requested: u64, passes: bool, page: PageSize) -> Result<Grant, TooOld> {
    if offer.minor < OLDEST_MINOR {
        return Err(TooOld(offer.minor));
    }
    let passthrough = InitFlags::FUSE_PASSTHROUGH.bits();
    let refused = if passes { 0 } else { passthrough };
    let flags = offer.flags & (requested | always().bits()) & !refused;
    Ok(Grant {
        minor: offer.minor.min(NEWEST_MINOR),
        max_readahead: offer.max_readahead,
        flags,
        max_background: BACKGROUND,
        congestion_threshold: BACKGROUND / 4 * 3,
        max_write: LONGEST_WRITE,
        max_pages: u16::try_from(LONGEST_READ / page.bytes()).unwrap_or(u16::MAX).max(1),
        max_stack_depth: u32::from(flags & passthrough != 0),
    })
}

impl Grant {
    /// Can the kernel resend a dead worker's unanswered requests (Linux 6.9)?
    pub fn resends(&self) -> bool {
        self.flags & InitFlags::FUSE_HAS_RESEND.bits() != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: PageSize = PageSize::SMALLEST;
    const OFFER: Offer = Offer { unique: 2, minor: 45, max_readahead: 131_072, flags: u64::MAX };

    #[test]
    fn only_what_is_requested_and_offered_is_agreed_on() {
        let requested = InitFlags::FUSE_PARALLEL_DIROPS | InitFlags::FUSE_PASSTHROUGH;
        let flags = grant(&OFFER, requested.bits(), true, PAGE).unwrap().flags;
        assert_eq!(flags, (requested | always()).bits());
        let poor = Offer { flags: InitFlags::FUSE_ASYNC_READ.bits(), ..OFFER };
        let grant = grant(&poor, requested.bits(), true, PAGE).unwrap();
        assert_eq!((grant.flags, grant.max_stack_depth, grant.resends()), (1, 0, false));
    }

    #[test]
    fn the_longest_read_does_not_depend_on_the_page_size() {
        for kib in [4, 16, 64] {
            let page = PageSize::new(kib << 10).unwrap();
            let grant = grant(&OFFER, 0, true, page).unwrap();
            assert_eq!(page.of(grant.max_pages.into()).0, 1 << 20);
        }
    }

    #[test]
    fn only_root_gets_passthrough() {
        let requested = InitFlags::FUSE_PASSTHROUGH.bits();
        assert_eq!(grant(&OFFER, requested, true, PAGE).unwrap().max_stack_depth, 1);
        let user = grant(&OFFER, requested, false, PAGE).unwrap();
        assert_eq!((user.max_stack_depth, user.flags & requested, user.resends()), (0, 0, true));
    }

    #[test]
    fn the_version_is_the_older_of_both() {
        assert_eq!(grant(&OFFER, 0, true, PAGE).unwrap().minor, NEWEST_MINOR);
        assert_eq!(grant(&Offer { minor: 35, ..OFFER }, 0, true, PAGE).unwrap().minor, 35);
        assert_eq!(grant(&Offer { minor: 30, ..OFFER }, 0, true, PAGE), Err(TooOld(30)));
    }
}
