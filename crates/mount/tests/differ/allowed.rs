//! How a mount differs on purpose: the table in `docs/cache-coherence.md`, in code. Each entry is one operation, under one
//! condition, with one answer.

use rustix::fs::{FallocateFlags, OFlags, RenameFlags};
use rustix::io::Errno;

use super::op::Op;
use super::perform::Answered;

/// What is asked instead, so that the trees stay the same. Without `set_id` no file has bits that a write takes away: through
/// passthrough root's writes take them, too.
pub fn asked(who: usize, set_id: bool, op: &Op) -> Op {
    const SET_GROUP: u32 = 0o2000;
    const SET_ID: u32 = 0o6000;
    let mut op = op.clone();
    if let (false, Op::Open { mode, .. } | Op::Mknod { mode, .. } | Op::Chmod { mode, .. }) =
        (set_id, &mut op)
    {
        *mode &= !SET_ID;
    }
    if let Op::Open { flags, .. } = &mut op {
        // where it writes is not known, so neither is whether that is aligned
        if *flags & OFlags::APPEND.bits() != 0 {
            *flags &= !OFlags::DIRECT.bits();
        }
    }
    match &mut op {
        // FUSE tells one group of who asks: for a supplementary one what is made loses S_ISGID
        Op::Open { mode, .. } | Op::Mknod { mode, .. } if who != 0 => *mode &= !SET_GROUP,
        Op::Rename { flags, .. } if who != 0 => *flags &= !RenameFlags::WHITEOUT.bits(),
        _ => {}
    }
    op
}

/// Is this a refusal that a mount gives and a plain directory does not? Then the plain one is not asked.
pub fn refused(op: &Op, mounted: &Answered) -> bool {
    let Err(errno) = mounted else { return false };
    match op {
        // fuser lacks FUSE_TMPFILE
        Op::Open { flags, .. } => {
            OFlags::from_bits_retain(*flags).contains(OFlags::TMPFILE) && *errno == Errno::OPNOTSUPP
        }
        // FUSE in the kernel passes on only what punches, zeroes and reserves
        Op::Fallocate { mode, .. } => {
            let shifts = FallocateFlags::COLLAPSE_RANGE | FallocateFlags::INSERT_RANGE;
            FallocateFlags::from_bits_retain(*mode).intersects(shifts) && *errno == Errno::OPNOTSUPP
        }
        _ => false,
    }
}
