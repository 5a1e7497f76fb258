//! Intended differences of a mount from a plain directory: the table in `docs/cache-coherence.md`, in code. Each entry is one operation,
//! under one condition, with one answer.

use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;

use super::op::{Op, Step, Xattr};
use super::perform::Answered;

/// The operation to do instead, so that the trees stay the same.
pub fn replacement(op: &Op) -> Op {
    let mut op = op.clone();
    if let Op::Open { flags, .. } = &mut op {
        // An append's offset is unknown, and so is its alignment.
        if *flags & OFlags::APPEND.bits() != 0 {
            *flags &= !OFlags::DIRECT.bits();
        }
    }
    match &mut op {
        // If the group may not execute the file, a user whose supplementary group it is removes S_ISGID by a change of content. So the
        // group may always execute it.
        Op::Open { mode, .. } | Op::Mknod { mode, .. } | Op::Chmod { mode, .. } | Op::Fchmod { mode, .. } => {
            *mode |= (*mode & SET_GROUP) >> 7;
        }
        Op::Umask { mode } => *mode &= !GROUP_EXECUTES,
        _ => {}
    }
    op
}

const SET_GROUP: u32 = 0o2000;
const GROUP_EXECUTES: u32 = SET_GROUP >> 7;

/// The step to do instead if files may use passthrough: there root's writes remove set-id bits, too, and a write removes `S_ISGID`
/// also if the group may not execute the file.
pub fn passthrough(step: &Step) -> Step {
    let mut step = step.clone();
    match &mut step.op {
        Op::Write { .. } | Op::WriteNext { .. } | Op::Put { .. } => step.by = step.by.max(1),
        Op::Open { mode, .. } | Op::Mknod { mode, .. } | Op::Chmod { mode, .. } | Op::Fchmod { mode, .. } => {
            *mode &= !0o2000;
        }
        _ => {}
    }
    step
}

/// Steps that one case may have. A store to a mapping of the mount reaches the backing file later, by write(2), which removes file
/// capabilities; a store to a mapping of a plain file does not.
pub fn together(mut steps: Vec<Step>) -> Vec<Step> {
    let sets = |step: &Step| matches!(step.op, Op::SetXattr { name: Xattr::Capability, .. });
    if steps.iter().any(sets) {
        for step in &mut steps {
            match &mut step.op {
                Op::Map { store, .. } => *store = None,
                // FUSE in the kernel removes them before the request; tmpfs refuses before it removes them.
                Op::Fallocate { mode, .. } => *mode &= !FallocateFlags::ZERO_RANGE.bits(),
                Op::PutMapped { at, part, seed } => step.op = Op::Put { at: *at, part: *part, seed: *seed },
                _ => {}
            }
        }
    }
    steps
}

/// After a worker's death the kernel resends its requests, and the dead worker may have carried one out already (`fs/again.rs`): the file
/// to create exists, the file to remove does not. Then it is unknown how the tree must be, and the case ends.
pub fn may_be_done_twice(op: &Op, mounted: &Answered, plain: &Answered) -> bool {
    let (Ok(_), Err(errno)) = (mounted, plain) else { return false };
    match op {
        Op::Unlink { .. } | Op::Rmdir { .. } | Op::Rename { .. } => *errno == Errno::NOENT,
        Op::RemoveXattr { .. } => *errno == Errno::NODATA,
        Op::SetXattr { .. } => [Errno::EXIST, Errno::NODATA].contains(errno),
        Op::Mkdir { .. } | Op::Mknod { .. } | Op::Symlink { .. } | Op::Link { .. } | Op::Open { .. } => {
            *errno == Errno::EXIST
        }
        _ => false,
    }
}

/// Is this an error of a mount and not of a plain directory? Then the operation is not done on the plain one.
pub fn refused(op: &Op, mounted: &Answered) -> bool {
    let Err(errno) = mounted else { return false };
    match op {
        // fuser lacks FUSE_TMPFILE.
        Op::Open { flags, .. } => {
            OFlags::from_bits_retain(*flags).contains(OFlags::TMPFILE) && *errno == Errno::OPNOTSUPP
        }
        // FUSE in the kernel passes on punching, zeroing and reserving alone.
        Op::Fallocate { mode, .. } => {
            let shifts = FallocateFlags::COLLAPSE_RANGE | FallocateFlags::INSERT_RANGE;
            FallocateFlags::from_bits_retain(*mode).intersects(shifts) && *errno == Errno::OPNOTSUPP
        }
        _ => false,
    }
}
