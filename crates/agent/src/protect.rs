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

/// Protects this process as far as its permissions allow, and logs what is not permitted.
pub fn this_process(root: &Root) {
    if let Err(e) = write_value(root, "process.oom_score_adj", "", NEVER) {
        tracing::warn!("The OOM killer can choose the agent: {e}.");
    }
    if let Err(e) = setpriority_process(None, NICE) {
        tracing::warn!("The agent gets no preference on a busy CPU: {e} (it needs CAP_SYS_NICE).");
    }
    // ONFAULT (Linux 4.4) locks pages once they are touched; untouched pages take no memory.
    if let Err(e) = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT) {
        tracing::warn!(
            "The agent's memory can be reclaimed, because it cannot be locked: {e} (it needs CAP_IPC_LOCK or a larger RLIMIT_MEMLOCK)."
        );
    }
    touch_stack();
}

/// Lifts the limits that end a process or keep it from opening, as far as it may: an agent that `eke up` started has those of somebody's shell (ulimit), and so
/// have its children.
pub fn lift_limits() {
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
