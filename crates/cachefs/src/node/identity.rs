//! The identity of inodes.

/// A backing inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inode {
    /// `st_dev`.
    pub dev: u64,
    /// `st_ino`.
    pub ino: u64,
    /// Its birth in nanoseconds since 1970; 0: unknown, or it does not identify the inode. Then it is the last change of a link.
    pub born_ns: i128,
}

impl Inode {
    /// True if both are the same inode, as far as that can be determined.
    pub fn is(&self, other: &Self) -> bool {
        let births = self.born_ns == other.born_ns || self.born_ns == 0 || other.born_ns == 0;
        (self.dev, self.ino) == (other.dev, other.ino) && births
    }
}
