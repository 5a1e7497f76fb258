//! Starts QEMU, waits for it, and always ends it.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::disk;
use super::error::{Error, Result, Trace, on};
use super::kit::Kit;
use super::outcome::{Lines, Outcome, clean, split_status};
use super::qemu::{Files, arguments};
use super::recipe::{Recipe, System};
use super::scratch::{program, write_scratch};
use super::userland::initramfs;

/// Starts the machine, runs the recipe's script in it, and waits until it is off. Creates missing disks. A script that
/// fails gives an [`Outcome`] with its status, not an error.
///
/// # Errors
/// [`Error::TimedOut`] after the recipe's time limit, [`Error::Ended`] if the machine ended before the script (both
/// with its output), and any reason why it did not start. QEMU has ended in every case.
pub fn run(kit: &Kit, recipe: &Recipe) -> Result<Outcome> {
    run_until(kit, recipe, &AtomicBool::new(false), &mut |_| {})
}

/// As [`run`], until `shutdown` is set. Calls `line` with each line that the script prints, as it arrives.
///
/// # Errors
/// As [`run`], and [`Error::Interrupted`] if `shutdown` was set before the machine was off.
pub fn run_until(
    kit: &Kit,
    recipe: &Recipe,
    shutdown: &AtomicBool,
    line: &mut dyn FnMut(&str),
) -> Result<Outcome> {
    check(recipe)?;
    for disk in &recipe.disks {
        disk::ensure(kit, disk)?;
    }
    let place = tempfile::Builder::new().prefix("eke-machine-").tempdir();
    let place = place.map_err(on("make a directory in", &std::env::temp_dir()))?;
    let files = Files::in_directory(place.path());
    let mark = mark();
    write_scratch(&files.initramfs, &initramfs(kit, recipe, &mark)?)?;
    let start = Instant::now();
    let mut machine = Running::start(kit, recipe, &files)?;
    let mut output = Output { path: &files.output, file: None, lines: Lines::default(), line };
    let ending = machine.wait(start + recipe.timeout, shutdown, &mut output)?;
    let seconds = start.elapsed().as_secs_f64();
    conclude(recipe, ending, &trace(&files), &mark, seconds)
}

fn check(recipe: &Recipe) -> Result<()> {
    let problem = match &recipe.system {
        System::Root(image) if !image.is_file() => {
            format!("no root disk {}; make_root creates one", image.display())
        }
        _ if recipe.load.iter().any(|name| name.contains('\'')) => {
            "a quote in the name of a module".to_owned()
        }
        _ if recipe.disks.len() > 20 => "more than 20 disks".to_owned(),
        _ => return Ok(()),
    };
    Err(Error::Recipe(problem))
}

fn conclude(
    recipe: &Recipe,
    ending: Option<ExitStatus>,
    trace: &Trace,
    mark: &str,
    seconds: f64,
) -> Result<Outcome> {
    let Some(ending) = ending else {
        return Err(Error::TimedOut { limit: recipe.timeout, trace: trace.clone() });
    };
    match split_status(&trace.output, mark) {
        Some((output, status)) => Ok(Outcome { output, console: trace.console.clone(), status, seconds }),
        None => Err(Error::Ended { ending: format!("qemu: {ending}"), trace: trace.clone() }),
    }
}

/// A word that no script prints by chance.
fn mark() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("@eke-machine-status-{:x}-{:x}", std::process::id(), now.as_nanos())
}

fn trace(files: &Files) -> Trace {
    let text = |path: &Path| clean(&std::fs::read(path).unwrap_or_default());
    Trace { output: text(&files.output), console: text(&files.console), qemu: text(&files.messages) }
}

/// The script's output as it grows.
struct Output<'a> {
    path: &'a Path,
    /// Open once QEMU has created it.
    file: Option<File>,
    lines: Lines,
    line: &'a mut dyn FnMut(&str),
}

impl Output<'_> {
    /// Passes on the new lines. Errors are ignored, because the whole file is read at the end.
    fn pass_on(&mut self) {
        if self.file.is_none() {
            self.file = File::open(self.path).ok();
        }
        let mut came = Vec::new();
        if let Some(file) = &mut self.file {
            let _ = file.read_to_end(&mut came);
        }
        for line in self.lines.take(&came) {
            (self.line)(&line);
        }
    }
}

/// A QEMU process, killed when dropped.
struct Running {
    child: Child,
}

impl Running {
    fn start(kit: &Kit, recipe: &Recipe, files: &Files) -> Result<Self> {
        let messages = OpenOptions::new().create(true).append(true).open(&files.messages);
        let messages = messages.map_err(on("make", &files.messages))?;
        let mut command = mortal(&kit.qemu);
        command
            .args(arguments(kit, recipe, files))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(messages);
        let answer = |error| Error::Command {
            command: kit.qemu.display().to_string(),
            answer: format!("did not start: {error}"),
        };
        Ok(Self { child: command.spawn().map_err(answer)? })
    }

    /// How QEMU ended; `None` if it still ran at the deadline and was killed.
    fn wait(
        &mut self,
        deadline: Instant,
        shutdown: &AtomicBool,
        output: &mut Output<'_>,
    ) -> Result<Option<ExitStatus>> {
        loop {
            let state = self.child.try_wait().map_err(on("wait for", Path::new("qemu")))?;
            output.pass_on();
            if state.is_some() {
                return Ok(state);
            }
            if shutdown.load(Ordering::Relaxed) {
                self.end();
                return Err(Error::Interrupted);
            }
            if Instant::now() >= deadline {
                self.end();
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn end(&mut self) {
        // An error means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// A command that ends with this thread, even if this process is killed (if util-linux has setpriv).
#[must_use]
pub fn mortal(qemu: &Path) -> Command {
    let Some(setpriv) = program("setpriv") else { return Command::new(qemu) };
    let mut command = Command::new(setpriv);
    command.args(["--pdeathsig", "KILL", "--"]).arg(qemu);
    command
}
