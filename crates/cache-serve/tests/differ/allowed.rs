//! How a mount differs on purpose: the table in `docs/cache-coherence.md`, in code. Each entry is one operation, under one
//! condition, with one answer.

use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;

use super::op::{Op, Step, Xattr};
use super::perform::Answered;

/// What is asked instead, so that the trees stay the same.
pub fn asked(op: &Op) -> Op {
    let mut op = op.clone();
    if let Op::Open { flags, .. } = &mut op {
        // where it writes is not known, so neither is whether that is aligned
        if *flags & OFlags::APPEND.bits() != 0 {
            *flags &= !OFlags::DIRECT.bits();
        }
    }
    match &mut op {
        // A user who is in the file's group by a supplementary one takes S_ISGID away by a change of content, if the group may not
        // execute the file. So it may always.
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

/// The step instead, where files may use passthrough: there root's writes take set-id bits away too, and a write takes
/// `S_ISGID` away also where the group may not execute.
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

/// Steps that a case may have together. What is stored through a mapping of the mount is written below later, by write(2),
/// which takes file capabilities away; a store into a plain file's mapping does not.
pub fn together(mut steps: Vec<Step>) -> Vec<Step> {
    let sets = |step: &Step| matches!(step.op, Op::SetXattr { name: Xattr::Capability, .. });
    if steps.iter().any(sets) {
        for step in &mut steps {
            match &mut step.op {
                Op::Map { store, .. } => *store = None,
                // The kernel takes them away before it asks; tmpfs refuses first.
                Op::Fallocate { mode, .. } => *mode &= !FallocateFlags::ZERO_RANGE.bits(),
                Op::PutMapped { at, part, seed } => step.op = Op::Put { at: *at, part: *part, seed: *seed },
                _ => {}
            }
        }
    }
    steps
}

/// After a worker's death, what was asked of it is asked again, and may have been done (`fs/again.rs`): what is to be made is there,
/// what is to be removed is not. Then nobody knows how the tree should be, and the case ends.
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
