//! The guard on a simulated machine: which signals and settings it sends, in what order, and what a crash leaves.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod journal;
mod restraint;
mod steps;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;

use eke_apply::revert;
use eke_apply::session::Session;
use eke_guard::{Guard, Poll};
use eke_linux::Root;
use eke_linux::sampler::Sampler;
use eke_model::config::{Settings, Source};
use eke_model::snapshot::Program;
use eke_model::step::{Plan, Reason, Step};
use eke_testkit::fake_kernel::{FakeKernel, Faults};
use eke_testkit::real::skip;

const SESSION: &str = "0::/user.slice/user-1000.slice/session-1.scope\n";
const SERVICE: &str = "0::/system.slice/stressor.service\n";

/// A machine of 1000 MiB with a login session of pid 10 (sshd), 11 (bash) and 12, which is the stressor's parent.
struct Machine {
    kernel: Arc<FakeKernel>,
    root: Root,
    guard: Guard,
    settings: Settings,
    ms: u64,
    stalled_us: u64,
    /// What it said of which programs.
    about: Vec<Option<Program>>,
}

impl Machine {
    fn new(toml: &str) -> Self {
        let kernel = FakeKernel::new();
        let machine = Self {
            root: kernel.root(),
            kernel,
            guard: Guard::default(),
            settings: Settings::from_sources(&[Source { name: "test", text: toml }]).unwrap(),
            ms: 0,
            stalled_us: 0,
            about: Vec::new(),
        };
        machine.process(10, 1, "sshd", 0, 900, SESSION);
        machine.process(12, 10, "editor", 1000, 50, SESSION);
        machine.memory(300);
        machine
    }

    fn process(&self, pid: u32, parent: u32, name: &str, user: u32, mib: u64, group: &str) {
        self.process_of([user; 2], (pid, parent), name, mib, group);
    }

    /// The same with its real and effective user.
    fn process_of(&self, users: [u32; 2], (pid, parent): (u32, u32), name: &str, mib: u64, group: &str) {
        let [real, user] = users;
        let zeros = "0 ".repeat(12);
        let stat = format!("{pid} ({name}) S {parent} {pid} 7 0 -1 0 {zeros}{pid} 0 0\n");
        self.kernel.put(&format!("proc/{pid}/stat"), &stat);
        let status = format!(
            "Name:\t{name}\nState:\tS (sleeping)\nUid:\t{real}\t{user}\t{user}\t{user}\nRssAnon:\t{} kB\nVmSwap:\t0 kB\n",
            mib << 10
        );
        self.kernel.put(&format!("proc/{pid}/status"), &status);
        self.kernel.put(&format!("proc/{pid}/oom_score_adj"), "0\n");
        self.kernel.put(&format!("proc/{pid}/cgroup"), group);
    }

    /// The file that a process executes.
    fn executes(&self, pid: u32, program: &str, mode: u32) {
        let at = |path: &str| self.kernel.dir().join(path);
        self.kernel.put(program, "");
        fs::set_permissions(at(program), fs::Permissions::from_mode(mode)).unwrap();
        symlink(at(program), at(&format!("proc/{pid}/exe"))).unwrap();
    }

    /// Its user, or a debugger, stopped it.
    fn is_stopped(&self, pid: u32, state: char) {
        let status = self.root.read(format!("proc/{pid}/status")).unwrap();
        self.kernel
            .put(&format!("proc/{pid}/status"), &status.replace("State:\tS", &format!("State:\t{state}")));
    }

    /// It has mapped and touched so much shared memory.
    fn maps(&self, pid: u32, mib: u64) {
        let status = self.root.read(format!("proc/{pid}/status")).unwrap();
        self.kernel.put(&format!("proc/{pid}/status"), &format!("{status}RssShmem:\t{} kB\n", mib << 10));
    }

    fn memory(&self, available_mib: u64) {
        self.memory_with(available_mib, 0);
    }

    /// The same with so much shared memory.
    fn memory_with(&self, available_mib: u64, shared_mib: u64) {
        let (all, free, shared) = (1_000 << 10, available_mib << 10, shared_mib << 10);
        let used = all - free - shared;
        let text = format!(
            "MemTotal: {all} kB\nMemFree: {free} kB\nMemAvailable: {free} kB\nAnonPages: {used} kB\nShmem: {shared} kB\n"
        );
        self.kernel.put("proc/meminfo", &text);
    }

    /// Polls for so long, four times a second, while all tasks wait for this share of the time.
    fn polls(&mut self, for_ms: u64, stalled: f64) -> Vec<String> {
        let mut said = Vec::new();
        for _ in 0..for_ms / 250 {
            self.ms += 250;
            self.stalled_us += (250_000.0 * stalled) as u64;
            let line = format!("avg10=0.00 avg60=0.00 avg300=0.00 total={}", self.stalled_us);
            self.kernel.put("proc/pressure/memory", &format!("some {line}\nfull {line}\n"));
            // A dead process samples nothing.
            let Ok(now) = Sampler::new(&self.root).brief(self.ms) else { break };
            let poll = Poll { root: &self.root, settings: &self.settings.guard, now };
            for message in self.guard.poll(poll) {
                said.push(message.text);
                self.about.push(message.program);
            }
        }
        said
    }

    /// The signals and settings so far, without the journal's own writes.
    fn effects(&self) -> Vec<String> {
        let own = |line: &String| line.contains("send ") || line.contains("cgroup");
        self.kernel.log().into_iter().filter(own).collect()
    }
}
