//! One launch of one program.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::file_set::FileSet;
use crate::program::Program;

/// Why recording of a launch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LaunchEnd {
    /// It touched nothing new for a while.
    Quiet,
    /// All its processes ended.
    Exited,
    /// It was still busy at the time limit.
    Limit,
    /// The kernel reports which pages entered memory, and no uses: what was in memory before is missing in the record.
    WithoutUses,
    /// The record is incomplete: events were lost, a bound was reached, or eke had read pages whose uses the kernel does not report.
    Lost,
}

/// The record of a launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// The program that started.
    pub program: Program,
    /// The user id of its starter; of a container's user, its owner's ([`crate::learn::Owners`]).
    pub uid: u32,
    /// Start time in nanoseconds since 1970.
    pub began_ns: i64,
    /// Duration up to the last new page, without the quiet time that ended it.
    pub took: Duration,
    /// Why recording ended.
    pub ended: LaunchEnd,
    /// What it touched.
    pub set: FileSet,
    /// Bytes that were not in memory before: 0 for a warm launch.
    pub cold_bytes: u64,
}

impl Launch {
    /// eke had read for it. Where the kernel reports no uses, these pages are missing in the record.
    pub fn was_read_for(&mut self) {
        if self.ended == LaunchEnd::WithoutUses {
            self.ended = LaunchEnd::Lost;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_eke_read_is_missing_only_where_uses_are_not_reported() {
        let end = |ended| {
            let program = Program::of_exe("/usr/bin/x");
            let (took, set) = (Duration::ZERO, FileSet::default());
            let mut launch = Launch { program, uid: 0, began_ns: 0, took, ended, set, cold_bytes: 0 };
            launch.was_read_for();
            launch.ended
        };
        assert_eq!(end(LaunchEnd::WithoutUses), LaunchEnd::Lost);
        assert_eq!(end(LaunchEnd::Quiet), LaunchEnd::Quiet);
    }
}
