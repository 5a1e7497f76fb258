//! What to agree to, from what the kernel offers. Pure.

use eke_model::units::PageSize;
use fuser::InitFlags;
use thiserror::Error;

use super::bytes::{Grant, Offer};

/// The oldest protocol: Linux 5.4 (`FUSE_EXPLICIT_INVAL_DATA` came with 7.30, `FUSE_INTERRUPT` races ended with 7.31).
const OLDEST_MINOR: u32 = 31;
/// The newest that fuser 0.18 knows.
const NEWEST_MINOR: u32 = 40;
/// A write's bytes: each session has memory for so many (see `touched`).
pub const LONGEST_WRITE: u32 = 256 << 10;
/// A read's bytes, as far as whole pages go: with pages of 4 KiB the default of `fs.fuse.max_pages_limit`, 256. The kernel takes that limit in
/// pages; with larger ones it would ask for 16 MiB at once.
const LONGEST_READ: u64 = 1 << 20;
/// Readahead under way at a time. A slow disk below is busy with fewer; the kernel's 12 leaves a fast one idle.
const BACKGROUND: u16 = 64;

/// A kernel without what every mount needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the kernel's FUSE is version 7.{0}; eke-cache needs 7.31 (Linux 5.4)")]
pub struct TooOld(pub u32);

/// What the device needs itself, whatever the file system asks for.
fn always() -> InitFlags {
    InitFlags::FUSE_ASYNC_READ
        | InitFlags::FUSE_BIG_WRITES
        | InitFlags::FUSE_MAX_PAGES
        | InitFlags::FUSE_INIT_EXT
        | InitFlags::FUSE_HAS_RESEND
}

/// What is agreed on of `wanted` (`FUSE_*` of fuser's `InitFlags`), on a machine with pages of this size. Passthrough is root's alone
/// (`FUSE_DEV_IOC_BACKING_OPEN` needs CAP_SYS_ADMIN).
///
/// # Errors
/// A kernel that is too old.
pub fn grant(offer: &Offer, wanted: u64, root: bool, page: PageSize) -> Result<Grant, TooOld> {
    if offer.minor < OLDEST_MINOR {
        return Err(TooOld(offer.minor));
    }
    let passthrough = InitFlags::FUSE_PASSTHROUGH.bits();
    let refused = if root { 0 } else { passthrough };
    let flags = offer.flags & (wanted | always().bits()) & !refused;
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
    /// Can what a dead worker left unanswered be sent again (Linux 6.9)?
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
    fn only_what_is_wanted_and_offered_is_agreed_on() {
        let wanted = InitFlags::FUSE_PARALLEL_DIROPS | InitFlags::FUSE_PASSTHROUGH;
        let flags = grant(&OFFER, wanted.bits(), true, PAGE).unwrap().flags;
        assert_eq!(flags, (wanted | always()).bits());
        let poor = Offer { flags: InitFlags::FUSE_ASYNC_READ.bits(), ..OFFER };
        let grant = grant(&poor, wanted.bits(), true, PAGE).unwrap();
        assert_eq!((grant.flags, grant.max_stack_depth, grant.resends()), (1, 0, false));
    }

    #[test]
    fn a_read_is_as_long_with_pages_of_any_size() {
        for kib in [4, 16, 64] {
            let page = PageSize::new(kib << 10).unwrap();
            let grant = grant(&OFFER, 0, true, page).unwrap();
            assert_eq!(page.of(grant.max_pages.into()).0, 1 << 20);
        }
    }

    #[test]
    fn passthrough_is_roots() {
        let wanted = InitFlags::FUSE_PASSTHROUGH.bits();
        assert_eq!(grant(&OFFER, wanted, true, PAGE).unwrap().max_stack_depth, 1);
        let user = grant(&OFFER, wanted, false, PAGE).unwrap();
        assert_eq!((user.max_stack_depth, user.flags & wanted, user.resends()), (0, 0, true));
    }

    #[test]
    fn the_version_is_the_older_of_both() {
        assert_eq!(grant(&OFFER, 0, true, PAGE).unwrap().minor, NEWEST_MINOR);
        assert_eq!(grant(&Offer { minor: 35, ..OFFER }, 0, true, PAGE).unwrap().minor, 35);
        assert_eq!(grant(&Offer { minor: 30, ..OFFER }, 0, true, PAGE), Err(TooOld(30)));
    }
}
