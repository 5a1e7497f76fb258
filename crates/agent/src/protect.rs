//! Protects the agent from the OOM killer, from reclaim, from waiting for a CPU and from limits of a shell: it must work above all when memory is short.

use std::hint::black_box;

use eke_apply::write::write_value;
use eke_linux::Root;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, Rlimit, getrlimit, setpriority_process, setrlimit};

/// The OOM killer never chooses such a process (proc_pid_oom_score_adj(5)).
const NEVER: &str = "-1000";
/// A machine whose memory ends is busy with reclaim. The agent needs hardly any CPU, but it needs it then.
const NICE: i32 = -10;
/// More stack than the loop uses. Touching its pages once locks them.
const STACK_BYTES: usize = 128 << 10;
/// Open files: more than the agent and its children have.
const FILES: u64 = 1024;

/// Who set the limits and the priority that this process began with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// systemd, by the unit, in which an administrator may have changed them (`LimitNOFILE=`, `Nice=`, `OOMScoreAdjust=`).
    Unit,
    /// `eke up`, or a boot script: they are somebody's shell's.
    Other,
}

impl Start {
    /// Of this process; only its first moments can tell, before a parent ends and process 1 becomes the next.
    pub fn of_this_process() -> Self {
        let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
        Self::of(std::env::var_os("INVOCATION_ID").is_some(), parent)
    }

    /// systemd names the invocation to all that a service runs (systemd.exec(5)), and starts only the first process itself.
    fn of(is_named: bool, parent: i32) -> Self {
        if is_named && parent == 1 { Self::Unit } else { Self::Other }
    }
}

/// Protects this process as far as its permissions allow, and logs what is not permitted.
pub fn this_process(root: &Root, start: Start) {
    if start == Start::Other {
        prefer(root);
    }
    // ONFAULT (Linux 4.4) locks pages once they are touched; untouched pages take no memory.
    if let Err(e) = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT) {
        tracing::warn!(
            "The agent's memory can be reclaimed, because it cannot be locked: {e} (it needs CAP_IPC_LOCK or a larger RLIMIT_MEMLOCK)."
        );
    }
    touch_stack();
}

/// What `eke.service` sets otherwise.
fn prefer(root: &Root) {
    if let Err(e) = write_value(root, "process.oom_score_adj", "", NEVER) {
        tracing::warn!("The OOM killer can choose the agent: {e}.");
    }
    if let Err(e) = setpriority_process(None, NICE) {
        tracing::warn!("The agent gets no preference on a busy CPU: {e} (it needs CAP_SYS_NICE).");
    }
}

/// Lifts the limits that end a process or keep it from opening, as far as it may: an agent that `eke up` started has those of somebody's shell (ulimit), and so
/// have its children. Those of a unit stay.
pub fn lift_limits(start: Start) {
    if start == Start::Unit {
        return;
    }
    for resource in [Resource::Cpu, Resource::Fsize, Resource::As, Resource::Data] {
        lift(resource, |_| None);
    }
    lift(Resource::Nofile, |files| files.map(|files| files.max(FILES)));
}

fn lift(resource: Resource, lifted: impl Fn(Option<u64>) -> Option<u64>) {
    let Rlimit { current, maximum } = getrlimit(resource);
    let all = Rlimit { current: lifted(current), maximum: lifted(maximum) };
    // Without CAP_SYS_RESOURCE only up to the hard limit.
    let _ = setrlimit(resource, all).or_else(|_| setrlimit(resource, Rlimit { current: maximum, maximum }));
}

#[inline(never)]
fn touch_stack() {
    black_box(&mut [0u8; STACK_BYTES]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_systemd_started_itself_has_the_limits_of_a_unit() {
        assert_eq!(Start::of(true, 1), Start::Unit);
        assert_eq!(Start::of(true, 4711), Start::Other, "`eke up` in a session that a unit began");
        assert_eq!(Start::of(false, 1), Start::Other, "another process 1");
    }
}
