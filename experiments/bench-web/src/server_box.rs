//! The box: one control group with little memory for the server, its page cache and eke's file server.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use eke_apply::cgroup::{Group, GroupParent};
use eke_bench_core::fault::{self, on};
use eke_linux::Root;
use eke_linux::parse::keyed::count;
use eke_model::units::Bytes;

use super::cpu::Cpu;
use super::error::{Error, Result};

/// A shell script that waits until it is in the group, then executes the program.
const ENTER: &str = r#"read -r _ && exec "$@""#;
/// A shell script that kills the group's processes when the experiment has ended, also by a kill: a server's workers would go on
/// without their master. It kills repeatedly, since a dying process may have started another.
const GUARD: &str = r#"trap '' INT TERM HUP
cat >/dev/null
n=0
while [ $n -lt 50 ] && pids=$(cat "$0") && [ -n "$pids" ]; do
  kill -9 $pids
  n=$((n + 1)); sleep 0.1
done 2>/dev/null"#;
const PAUSE: Duration = Duration::from_millis(20);

/// The memory of the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// All memory charged to the box.
    pub usage: Bytes,
    /// Pages of files.
    pub page_cache: Bytes,
    /// Memory of programs.
    pub programs: Bytes,
    /// Memory of the kernel for the box: inodes, names, buffers of sockets.
    pub kernel: Bytes,
}

/// A box. Drop kills its processes and removes it.
#[derive(Debug)]
pub struct ServerBox {
    // Dropped in this order.
    children: Children,
    group: Group,
    guard: Guard,
    root: Root,
}

/// The started processes. Drop kills them and waits for them, so that none stays as a zombie.
#[derive(Debug, Default)]
struct Children(Vec<Child>);

/// A shell outside the box that survives the experiment for a moment. It acts when its standard input closes.
#[derive(Debug)]
struct Guard {
    shell: Child,
    input: Option<ChildStdin>,
}

impl ServerBox {
    /// An empty box with this much memory, without swap. `label` begins the group's name: letters and digits.
    ///
    /// # Errors
    /// The machine has no control groups, or the kernel refuses.
    pub fn make(root: &Root, label: &str, memory: Bytes) -> Result<Self> {
        let group = Group::make(root, &GroupParent::find(root)?, label)?;
        group.limit(memory)?;
        group.forbid_swap(memory)?;
        let guard = Guard::start(root, &group)?;
        Ok(Self { group, root: root.clone(), children: Children::default(), guard })
    }

    /// Starts a program in the box. It joins the group before it uses memory. Signals of the terminal do not reach it, so that it ends in
    /// order. Returns its index.
    ///
    /// # Errors
    /// There is no shell, or the kernel refuses.
    pub fn start(&mut self, command: &Command, out: Stdio, err: Stdio) -> Result<usize> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", ENTER, "sh"]).arg(command.get_program()).args(command.get_args());
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.stdin(Stdio::piped()).stdout(out).stderr(err).process_group(0);
        let mut child = shell.spawn().map_err(on("start", "/bin/sh".as_ref()))?;
        self.group.admit(child.id())?;
        if let Some(input) = &mut child.stdin {
            input.write_all(b"go\n").map_err(on("start", command.get_program().as_ref()))?;
        }
        self.children.0.push(child);
        Ok(self.children.0.len() - 1)
    }

    /// The program with this index.
    pub fn child(&mut self, index: usize) -> Option<&mut Child> {
        self.children.0.get_mut(index)
    }

    /// Runs a program in the box to its end. Returns its standard output.
    ///
    /// # Errors
    /// The program fails, or takes longer than `patience`.
    pub fn run(&mut self, command: &Command, patience: Duration) -> Result<String> {
        let (out, err) = (temporary()?, temporary()?);
        let files = [&out, &err].map(|f| f.try_clone().map(Stdio::from));
        let [Ok(to_out), Ok(to_err)] = files else {
            return Err(failed(command, "has no file for its output"));
        };
        let index = self.start(command, to_out, to_err)?;
        let until = Instant::now() + patience;
        let ended = loop {
            match self.children.0[index].try_wait().map_err(on("wait for", command.get_program().as_ref()))? {
                Some(status) => break Some(status),
                None if Instant::now() > until => break None,
                None => self.root.sleep(PAUSE),
            }
        };
        match ended {
            Some(status) if status.success() => Ok(text(out)),
            Some(status) => Err(failed(command, &format!("failed ({status}): {}", text(err).trim()))),
            None => {
                let _ = self.children.0[index].kill();
                Err(failed(
                    command,
                    &format!("did not end within {} s: {}", patience.as_secs(), text(err).trim()),
                ))
            }
        }
    }

    /// The box's memory now.
    ///
    /// # Errors
    /// The group cannot be read.
    pub fn memory(&self) -> Result<Memory> {
        let stats = self.group.stats()?;
        let stat = self.root.read(format!("{}/memory.stat", self.group.dir()))?;
        let of = |v1, v2| Bytes(count(&stat, v1).or_else(|| count(&stat, v2)).unwrap_or(0));
        // memory.stat has it in cgroup v2 only (Documentation/admin-guide/cgroup-v1/memory.rst, 2.7).
        let kernel = self.root.read(format!("{}/memory.kmem.usage_in_bytes", self.group.dir())).ok();
        let kernel = kernel.and_then(|bytes| bytes.trim().parse().ok()).map(Bytes);
        Ok(Memory {
            kernel: kernel.unwrap_or_else(|| of("kernel", "slab")),
            usage: stats.usage,
            page_cache: of("total_cache", "file"),
            programs: of("total_rss", "anon"),
        })
    }

    /// How many of the box's processes the kernel killed for lack of memory.
    pub fn oom_kills(&self) -> u64 {
        self.group.stats().map_or(0, |stats| stats.oom_kills)
    }

    /// The CPU time of the box's processes.
    pub fn cpu(&self) -> Cpu {
        Cpu::of(&self.root, &self.group.pids().unwrap_or_default())
    }

    /// Kills the box's processes, and waits for those that it started. The box can be used again.
    ///
    /// # Errors
    /// A process cannot be killed.
    pub fn kill(&mut self) -> Result<()> {
        self.group.kill()?;
        for child in &mut self.children.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
        Ok(())
    }

    /// Kills the box's processes and removes the group.
    ///
    /// # Errors
    /// A process cannot be killed: it waits in the kernel.
    pub fn close(self) -> Result<()> {
        drop(self.children);
        self.group.remove()?;
        drop(self.guard);
        Ok(())
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Guard {
    fn start(root: &Root, group: &Group) -> Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", GUARD]).arg(root.path(group.dir()).join("cgroup.procs"));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut shell = command.spawn().map_err(on("start", "/bin/sh".as_ref()))?;
        let input = shell.stdin.take();
        Ok(Self { shell, input })
    }

    fn end(&mut self) {
        drop(self.input.take());
        let _ = self.shell.wait();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.end();
    }
}

fn temporary() -> Result<std::fs::File> {
    Ok(tempfile::tempfile().map_err(on("make a file in", &std::env::temp_dir()))?)
}

fn text(mut file: std::fs::File) -> String {
    use std::io::{Read, Seek};
    let mut bytes = Vec::new();
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn failed(command: &Command, why: &str) -> Error {
    fault::Command::new(command, why).into()
}
