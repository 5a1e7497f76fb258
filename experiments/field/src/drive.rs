//! Starts a machine, runs its steps, and keeps logs.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::console::{defects, plain};
use crate::image::{Images, file_system, swap_area};
use crate::machines::Machine;
use crate::qemu::{Files, arguments, program};
use crate::results::Row;
use crate::shell::{Ended, Shell};
use crate::steps::{Ending, Outcome, Step, Steps, judge, of};
use crate::{image, package};

/// A start, with all emulated, on a machine of slowness 1
const START: Duration = Duration::from_secs(900);

/// They come on the packages' disk, so that a change needs no other image.
const GUEST_PROGRAMS: [&str; 3] = ["field-state", "field-stressor", "field-cast"];

/// Where things are.
#[derive(Debug, Clone)]
pub struct Laboratory {
    /// Images
    pub images: Images,
    /// Logs: a directory for each machine
    pub logs: PathBuf,
    /// Files or directories with packages
    pub packages: Vec<PathBuf>,
}

/// Runs a machine's steps; calls `report` after each of them.
///
/// # Errors
/// The machine could not be made or started. What fails in it is a result.
pub fn run(
    laboratory: &Laboratory,
    machine: &Machine,
    steps: &Steps,
    report: &mut dyn FnMut(&Row),
) -> anyhow::Result<Row> {
    let logs = laboratory.logs.join(&machine.name);
    if logs.exists() {
        std::fs::remove_dir_all(&logs).with_context(|| format!("cannot remove {}", logs.display()))?;
    }
    std::fs::create_dir_all(&logs).with_context(|| format!("cannot make {}", logs.display()))?;
    let deb = package::find(&laboratory.packages, &machine.arch)?;
    let (files, version) = prepare(laboratory, machine, &deb, &logs)?;
    let mut row = Row {
        machine: machine.name.clone(),
        kernel: String::new(),
        package: version,
        commit: package::commit(&deb),
        finished: false,
        steps: Vec::new(),
    };
    let mut running = Running::start(laboratory, machine, &files, &logs)?;
    row.kernel = running.shell.run("uname -r -m", Duration::from_secs(60))?.output.trim().to_owned();
    let mut stopped: Option<String> = None;
    for (index, step) in of(steps, &machine.steps).into_iter().enumerate() {
        let outcome = match &stopped {
            Some(why) => skipped(step, why),
            None => running.step(step, index, &script(steps, step, machine)),
        };
        if stopped.is_none() && (running.gone || step.essential && outcome.ending == Ending::Failed) {
            stopped = Some(format!("after {}", step.name));
        }
        row.steps.push(outcome);
        report(&row);
    }
    row.finished = true;
    Ok(row)
}

fn skipped(step: &Step, why: &str) -> Outcome {
    Outcome {
        step: step.name.clone(),
        ending: Ending::Skipped,
        reason: why.to_owned(),
        values: std::collections::BTreeMap::new(),
        seconds: 0.0,
    }
}

fn script(steps: &Steps, step: &Step, machine: &Machine) -> String {
    let known = [
        format!("INIT={}", machine.init),
        format!("ARCH={}", machine.arch),
        format!("MACHINE={}", machine.name),
        format!("SLOWNESS={}", machine.slowness),
    ];
    let set: Vec<String> = known.iter().chain(&machine.set).map(|pair| format!("export {pair}")).collect();
    format!("{}\n{}\n{}", set.join("\n"), steps.functions, step.script)
}

/// The machine's files: images, and the disk with both versions of the package.
fn prepare(
    laboratory: &Laboratory,
    machine: &Machine,
    deb: &Path,
    logs: &Path,
) -> anyhow::Result<(Files, String)> {
    let made = laboratory.images.of(machine)?;
    let debs = logs.join("packages");
    let version = package::pair(deb, &debs)?;
    for program in GUEST_PROGRAMS {
        let from = laboratory.images.recipe.join("guest").join(program);
        std::fs::copy(&from, debs.join(program))
            .with_context(|| format!("cannot copy {}", from.display()))?;
    }
    let packages = logs.join("packages.img");
    file_system(&packages, 64 << 20, &debs)?;
    std::fs::remove_dir_all(&debs).with_context(|| format!("cannot remove {}", debs.display()))?;
    let swap = machine.swap_mib.map(|mib| (logs.join("swap.img"), mib));
    if let Some((file, mib)) = &swap {
        swap_area(file, *mib)?;
    }
    let image::Image { disk, kernel, initrd } = made;
    // The path of a socket is short, and each of the machines that run at a time has its own.
    let socket = std::env::temp_dir().join(format!("eke-field-{}-{}", std::process::id(), machine.name));
    let swap = swap.map(|(file, _)| file);
    Ok((
        Files { kernel, initrd, image: disk, swap, packages, console: logs.join("console.log"), socket },
        version,
    ))
}

/// A machine that runs; killed when dropped.
struct Running {
    child: Child,
    shell: Shell,
    logs: PathBuf,
    console: PathBuf,
    socket: PathBuf,
    /// How much of the console was looked at
    seen: usize,
    gone: bool,
    slowness: u32,
}

impl Running {
    fn start(laboratory: &Laboratory, machine: &Machine, files: &Files, logs: &Path) -> anyhow::Result<Self> {
        let _ = std::fs::remove_file(&files.socket);
        let mut command = laboratory.images.qemu(program(machine))?;
        let messages = logs.join("qemu.log");
        eke_vm::write_scratch(&messages, b"")?;
        let messages = File::options().append(true).open(&messages).context("qemu.log")?;
        // Writes to disks with snapshot=on go to a file in TMPDIR, which may be large.
        command.args(arguments(machine, files)).env("TMPDIR", &laboratory.images.place);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(messages);
        let mut child = command.spawn().context("cannot start QEMU")?;
        let shell = match Shell::connect(&files.socket, Duration::from_secs(30)) {
            Ok(shell) => shell,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                let said = std::fs::read_to_string(logs.join("qemu.log")).unwrap_or_default();
                return Err(error).context(format!("QEMU did not start: {}", said.trim()));
            }
        };
        let (console, socket) = (files.console.clone(), files.socket.clone());
        let mut running = Self {
            child,
            shell,
            logs: logs.to_path_buf(),
            console,
            socket,
            seen: 0,
            gone: false,
            slowness: machine.slowness,
        };
        if let Err(error) = running.shell.ready(START * machine.slowness) {
            let (console, _) = running.console_since();
            bail!("{}: {error:#}; its console ends with: {}", machine.name, tail(&console));
        }
        Ok(running)
    }

    fn step(&mut self, step: &Step, index: usize, script: &str) -> Outcome {
        let start = Instant::now();
        let ended = self.restart_if(step).and_then(|before| {
            let ended = self.shell.run(script, Duration::from_secs(step.timeout_s) * self.slowness)?;
            Ok(Ended { status: ended.status, output: before + &ended.output })
        });
        let seconds = start.elapsed().as_secs_f64();
        let (console, problems) = self.console_since();
        let (mut outcome, output) = match ended {
            Ok(ended) => (judge(&step.name, ended.status, &ended.output, seconds), ended.output),
            Err(error) => {
                self.gone = true;
                let why = format!("{error:#}");
                (judge(&step.name, 1, &why, seconds), why)
            }
        };
        if let Some(problem) = problems.first().filter(|_| outcome.ending != Ending::Failed) {
            outcome.ending = Ending::Failed;
            outcome.reason = format!("console: {problem}");
        }
        let log =
            format!("{output}\n----- {:?} {}\n----- console\n{console}", outcome.ending, outcome.reason);
        let file = self.logs.join(format!("{index:02}-{}.log", step.name));
        if let Err(error) = eke_vm::write_scratch(&file, log.as_bytes()) {
            eprintln!("field: {error}");
        }
        outcome
    }

    /// Reboots if the step begins with that; the value is how long it took, on the host's clock.
    fn restart_if(&mut self, step: &Step) -> anyhow::Result<String> {
        if !step.reboot {
            return Ok(String::new());
        }
        let start = Instant::now();
        self.shell.send("reboot")?;
        self.shell.ready(START * self.slowness)?;
        Ok(format!("@value restart_s {:.1}\n", start.elapsed().as_secs_f64()))
    }

    /// The console's text since the last call, and what is wrong in it.
    fn console_since(&mut self) -> (String, Vec<String>) {
        let bytes = std::fs::read(&self.console).unwrap_or_default();
        let text = plain(&String::from_utf8_lossy(bytes.get(self.seen..).unwrap_or_default()));
        self.seen = bytes.len();
        let problems = defects(&text);
        (text, problems)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // All its disks forget what was written, so nothing is lost.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.socket);
        for image in ["packages.img", "swap.img"] {
            let _ = std::fs::remove_file(self.logs.join(image));
        }
    }
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.get(lines.len().saturating_sub(5)..).unwrap_or_default().join(" | ")
}
