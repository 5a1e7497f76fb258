//! `/proc/PID/status` (proc_pid_status(5)).

use eke_model::units::Bytes;

use super::keyed::value;
use super::meminfo::field;

/// The fields that eke uses; `None` for a missing line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessStatus {
    /// `State`: `R`, `S`, `D`, `Z` and so on.
    pub state: Option<char>,
    /// `PPid`: pid of the parent.
    pub parent: Option<u32>,
    /// `Uid`: real user id.
    pub real_user: Option<u32>,
    /// `Uid`: effective user id.
    pub effective_user: Option<u32>,
    /// `CapEff`: the effective capabilities.
    pub capabilities: Option<u64>,
    /// `RssAnon`: anonymous memory in RAM (Linux 4.5); 0 if missing.
    pub anonymous: Bytes,
    /// `RssShmem`: shared memory and files of tmpfs that it maps, in RAM (Linux 4.5); 0 if missing.
    pub shared: Bytes,
    /// `VmSwap`: anonymous memory in swap (Linux 2.6.34); 0 if missing.
    pub swap: Bytes,
}

impl ProcessStatus {
    /// Whether it has ended or is a zombie. A process without status has ended.
    pub fn has_ended(&self) -> bool {
        self.state.is_none_or(|state| matches!(state, 'Z' | 'X'))
    }

    /// Whether it is stopped by a signal (`T`) or a debugger (`t`).
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, Some('T' | 't'))
    }
}

/// The lines of one process.
pub fn parse(text: &str) -> ProcessStatus {
    let mut users = value(text, "Uid").unwrap_or_default().split_ascii_whitespace().map(|id| id.parse().ok());
    ProcessStatus {
        state: value(text, "State").and_then(|state| state.chars().next()),
        parent: value(text, "PPid").and_then(|pid| pid.parse().ok()),
        real_user: users.next().flatten(),
        effective_user: users.next().flatten(),
        capabilities: value(text, "CapEff").and_then(|set| u64::from_str_radix(set, 16).ok()),
        anonymous: field(text, "RssAnon").unwrap_or_default(),
        shared: field(text, "RssShmem").unwrap_or_default(),
        swap: field(text, "VmSwap").unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_parent_users_and_capabilities() {
        let text = "Name:\tsu\nState:\tS (sleeping)\nPid:\t5\nPPid:\t4\nUid:\t1000\t0\t0\t0\nCapEff:\t000001ffffffffff\n";
        let status = parse(text);
        assert_eq!((status.state, status.parent), (Some('S'), Some(4)));
        assert_eq!((status.real_user, status.effective_user), (Some(1000), Some(0)));
        assert_eq!(status.capabilities, Some(0x1ff_ffff_ffff));
        assert!(!status.has_ended());
    }

    #[test]
    fn a_process_without_status_has_ended() {
        assert_eq!(parse(""), ProcessStatus::default());
        assert!(parse("").has_ended() && parse("State:\tZ (zombie)\n").has_ended());
    }
}
