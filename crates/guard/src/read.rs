//! Reads the processes of the machine.

use std::collections::BTreeMap;

use eke_linux::Root;
use eke_linux::parse::process_stat::{self, ProcessStat};
use eke_linux::parse::{groups, keyed, process_status, release};
use eke_linux::read;
use eke_model::process::{ProcessId, is_of_service};
use eke_model::units::Bytes;

use crate::group;
use crate::process::Process;
use crate::trust::{Executable, Trust};

/// What stays the same while a process runs one program.
#[derive(Debug, Clone)]
struct Program {
    name: String,
    executable: Option<Executable>,
    trust: Trust,
    contained: Trust,
    group: Group,
}

/// A process' control group. A desktop moves a program into a group of its own soon after its start.
#[derive(Debug, Clone)]
struct Group {
    /// As `/proc/PID/cgroup` says.
    own: String,
    of_processes: String,
    due_ms: u64,
}

/// A process' group is read again so long after it was seen first, and then so often.
const GROUP_FIRST_MS: u64 = 1_000;
const GROUP_AGAIN_MS: u64 = 10_000;

impl Group {
    fn read(root: &Root, pid: u32, now_ms: u64) -> Self {
        let own = own_group(root, pid).unwrap_or_default();
        let of_processes = group::of_processes(root, &own).to_owned();
        Self { own, of_processes, due_ms: now_ms + GROUP_FIRST_MS }
    }

    fn read_again(&mut self, root: &Root, pid: u32, now_ms: u64) {
        self.due_ms = now_ms + GROUP_AGAIN_MS;
        let Some(own) = own_group(root, pid).filter(|own| *own != self.own) else { return };
        self.of_processes = group::of_processes(root, &own).to_owned();
        self.own = own;
    }
}

/// Whether a process has a pid in a namespace below the machine's, too (`NSpid`, Linux 4.1).
fn has_own_pids(status: &str) -> bool {
    keyed::value(status, "NSpid").is_some_and(|pids| pids.split_ascii_whitespace().count() > 1)
}

fn own_group(root: &Root, pid: u32) -> Option<String> {
    let text = root.read(format!("proc/{pid}/cgroup")).ok()?;
    Some(groups::own(&text, "")?.trim_start_matches('/').to_owned())
}

impl Program {
    /// Whether no later answer can differ. The machine's mounts often lack the path of a contained program, which the kernel then never has in memory.
    fn is_known(&self) -> bool {
        let is_named = matches!(self.contained, Trust::Known(Some(_)));
        is_named || (self.trust != Trust::NotCached && self.contained != Trust::NotCached)
    }
}

/// Reads processes; keeps what does not change.
#[derive(Debug, Default)]
pub struct Reader {
    programs: BTreeMap<ProcessId, Program>,
    copies_huge_pages: Option<bool>,
}

/// Since this version a fault copies no huge page, only the small page that is written to (`do_huge_pmd_wp_page`, mm/huge_memory.c).
const COPIES_SMALL_PAGES: (u32, u32) = (5, 8);

impl Reader {
    /// All processes of programs; kernel threads, and processes that end meanwhile, are left out. None of these files needs
    /// the lock of a process' memory, which a process that waits for memory can hold.
    pub fn processes(&mut self, root: &Root, now_ms: u64) -> Vec<Process> {
        let all: Vec<Process> =
            read::pids(root).into_iter().filter_map(|pid| self.process(root, pid, now_ms)).collect();
        let runs = |id: &ProcessId| all.iter().any(|p| p.id == *id);
        if self.programs.len() > all.len() * 2 {
            self.programs.retain(|id, _| runs(id));
        }
        all
    }

    fn process(&mut self, root: &Root, pid: u32, now_ms: u64) -> Option<Process> {
        // One within execve(2) has next to no memory, and reading more of it can take for ever.
        if !read::answers(root, pid) {
            return None;
        }
        let text = root.read(format!("proc/{pid}/stat")).ok()?;
        let stat = process_stat::parse(&text).filter(|s| !s.has_ended() && !s.is_kernel_thread())?;
        let status_text = root.read(format!("proc/{pid}/status")).ok()?;
        let status = process_status::parse(&status_text);
        let id = ProcessId { pid, start_ticks: stat.start_ticks };
        let program = self.program(root, id, stat.name, now_ms);
        let users = [status.real_user?, status.effective_user?];
        let is_machines = users.into_iter().all(|user| user == 0 || is_of_service(user));
        Some(Process {
            id,
            parent: stat.parent,
            group: stat.group,
            session: stat.session,
            user: status.effective_user?,
            is_roots: (status.real_user, status.effective_user) == (Some(0), Some(0))
                && !program.executable.is_some_and(Executable::is_set_user_id),
            is_contained: has_own_pids(&status_text),
            name: program.name,
            trusted_program: program.trust.name(),
            contained_program: program.contained.name().filter(|_| is_machines),
            file: program.executable.map(Executable::file),
            size: status.anonymous + status.swap,
            shared: status.shared,
            written: self.written(root, &stat),
            oom_score_adj: root.read(format!("proc/{pid}/oom_score_adj")).ok()?.trim().parse().unwrap_or(0),
            control_group: program.group.of_processes,
        })
    }

    /// Unlimited where one fault may copy a huge page.
    fn written(&mut self, root: &Root, stat: &ProcessStat<'_>) -> Bytes {
        let release = || root.read("proc/sys/kernel/osrelease").unwrap_or_default();
        let is_old = || release::version(&release()).is_some_and(|running| running < COPIES_SMALL_PAGES);
        if *self.copies_huge_pages.get_or_insert_with(is_old) {
            return Bytes(u64::MAX);
        }
        let faults = stat.minor_faults.saturating_add(stat.major_faults);
        Bytes(faults.saturating_mul(root.page_size().bytes()))
    }

    fn program(&mut self, root: &Root, id: ProcessId, name: &str, now_ms: u64) -> Program {
        // An exec(2) can keep the name.
        let executable = Executable::of(root, id.pid);
        let is_it =
            |known: &&mut Program| known.name == name && known.executable == executable && known.is_known();
        if let Some(known) = self.programs.get_mut(&id).filter(is_it) {
            if now_ms >= known.group.due_ms {
                known.group.read_again(root, id.pid, now_ms);
            }
            return known.clone();
        }
        let nobodys = Trust::Known(None);
        // First: if this finds the name of a service with mounts of its own, the machine's mounts have it in memory, too.
        let contained = executable.map_or(nobodys.clone(), |file| file.trust_in_container(root, id.pid));
        let program = Program {
            name: name.to_owned(),
            executable,
            trust: executable.map_or(nobodys, |file| file.trust(root, id.pid)),
            contained,
            group: Group::read(root, id.pid, now_ms),
        };
        self.programs.insert(id, program.clone());
        program
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::Arc;

    use eke_testkit::fake_kernel::FakeKernel;

    use super::*;

    #[test]
    fn a_fault_writes_to_a_page_unless_it_may_copy_a_huge_one() {
        for (release, written) in [
            ("6.1.0-42-amd64\n", 5 * 4096),
            ("5.8.0\n", 5 * 4096),
            ("", 5 * 4096),
            ("5.4.0-216-generic\n", u64::MAX),
        ] {
            let kernel = FakeKernel::new();
            kernel.put("proc/sys/kernel/osrelease", release);
            kernel.put("proc/7/stat", "7 (fork) S 1 7 7 0 -1 0 3 900 2 900 0 0 0 0 20 0 1 0 9 0 77\n");
            kernel
                .put("proc/7/status", "State:\tS (sleeping)\nUid:\t1000\t1000\t1000\t1000\nRssAnon:\t8 kB\n");
            kernel.put("proc/7/oom_score_adj", "0\n");
            let found = Reader::default().processes(&kernel.root(), 0);
            let written_by_7 = found.iter().find(|p| p.id.pid == 7).map(|p| p.written);
            assert_eq!(written_by_7, Some(Bytes(written)), "{release}");
        }
    }

    /// A machine whose process 7 executes postgres in mounts of its own. Its path exists among the machine's mounts, too, if `on_machine`.
    fn contained(on_machine: bool) -> Arc<FakeKernel> {
        let kernel = FakeKernel::new();
        let at = |path: &str| kernel.dir().join(path);
        // As seen from the root: the link leads out of it and back, but a lookup below the root begins with the name of its directory.
        let own = kernel.dir().file_name().and_then(|name| name.to_str()).unwrap();
        let (way, dir) = match on_machine {
            true => (String::new(), "usr/bin".to_owned()),
            false => (format!("../{own}/"), format!("{own}/usr/bin")),
        };
        // One file at both paths, because the link of a simulated process has to lead to it.
        kernel.put("usr/bin/postgres", "");
        kernel.put("proc/7/stat", "7 (postgres) S 1 7 7 0 -1 0 3 900 2 900 0 0 0 0 20 0 1 0 9 0 77\n");
        kernel.put("proc/7/oom_score_adj", "0\n");
        fs::create_dir_all(at(&format!("container/{dir}"))).unwrap();
        fs::hard_link(at("usr/bin/postgres"), at(&format!("container/{dir}/postgres"))).unwrap();
        symlink(at(&format!("{way}usr/bin/postgres")), at("proc/7/exe")).unwrap();
        symlink(at("container"), at("proc/7/root")).unwrap();
        for (pid, mounts) in [(1, "mnt:[1]"), (7, "mnt:[7]")] {
            fs::create_dir_all(at(&format!("proc/{pid}/ns"))).unwrap();
            symlink("user:[1]", at(&format!("proc/{pid}/ns/user"))).unwrap();
            symlink(mounts, at(&format!("proc/{pid}/ns/mnt"))).unwrap();
        }
        kernel
    }

    fn contained_name(reader: &mut Reader, kernel: &Arc<FakeKernel>) -> Option<String> {
        let found = reader.processes(&kernel.root(), 0);
        found.into_iter().find(|p| p.id.pid == 7).and_then(|p| p.contained_program)
    }

    #[test]
    fn a_process_is_contained_if_it_has_another_pid_too() {
        let of = |line: &str| has_own_pids(&format!("Name:\tsh\n{line}Uid:\t0\t0\t0\t0\n"));
        assert!(of("NSpid:\t4711\t1\n"));
        assert!(!of("NSpid:\t4711\n") && !of(""));
    }

    #[test]
    fn a_process_that_is_moved_soon_after_its_start_is_found_in_its_group() {
        let kernel = FakeKernel::new();
        kernel.put("proc/7/stat", "7 (firefox) S 1 7 7 0 -1 0 3 900 2 900 0 0 0 0 20 0 1 0 9 0 77\n");
        kernel.put("proc/7/status", "State:\tS (sleeping)\nUid:\t1000\t1000\t1000\t1000\nRssAnon:\t8 kB\n");
        kernel.put("proc/7/oom_score_adj", "0\n");
        let mut reader = Reader::default();
        let mut group = |now_ms, is_in: &str| {
            kernel.put("proc/7/cgroup", &format!("0::/{is_in}\n"));
            let found = reader.processes(&kernel.root(), now_ms);
            found.into_iter().find(|p| p.id.pid == 7).map(|p| p.control_group).unwrap()
        };
        assert_eq!(group(0, "shell.service"), "shell.service");
        assert_eq!(group(250, "firefox.scope"), "shell.service", "not read at each poll");
        assert_eq!(group(1_000, "firefox.scope"), "firefox.scope");
        assert_eq!(group(11_000, "other.scope"), "other.scope");
    }

    /// Singularity with set-user-id mounts any image for a user, whose program has the user's own id in it.
    #[test]
    fn a_program_in_a_container_has_a_name_only_as_root_or_a_service() {
        if !rustix::process::geteuid().is_root() {
            return eke_testkit::real::skip("read", "only root makes files of root");
        }
        let kernel = contained(true);
        for (users, has_name) in
            [("999\t999", true), ("0\t999", true), ("1001\t1001", false), ("1001\t0", false)]
        {
            let status = format!("State:\tS (sleeping)\nUid:\t{users}\t999\t999\nRssAnon:\t8 kB\n");
            kernel.put("proc/7/status", &status);
            let contained = contained_name(&mut Reader::default(), &kernel);
            assert_eq!(contained.as_deref(), has_name.then_some("postgres"), "{users}");
        }
    }

    /// The machine has no such path, so the kernel does not have it in memory at any time.
    #[test]
    fn a_name_in_a_container_is_looked_up_once() {
        if !rustix::process::geteuid().is_root() {
            return eke_testkit::real::skip("read", "only root makes files of root");
        }
        let kernel = contained(false);
        kernel.put("proc/7/status", "State:\tS (sleeping)\nUid:\t0\t0\t0\t0\nRssAnon:\t8 kB\n");
        let mut reader = Reader::default();
        assert_eq!(contained_name(&mut reader, &kernel).as_deref(), Some("postgres"));
        fs::remove_dir_all(kernel.dir().join("container")).unwrap();
        assert_eq!(contained_name(&mut reader, &kernel).as_deref(), Some("postgres"), "not looked up again");
    }
}
