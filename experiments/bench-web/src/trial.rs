//! One run: sets up a cold disk and an empty box, warms up, measures, and tears everything down.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Options;
use super::client::{Clients, Load};
use super::content::Content;
use super::cpu::Cpu;
use super::disk::{Disk, read_ahead};
use super::eke_mount::EkeMount;
use super::error::{Error, Result};
use super::metrics::{Counters, Window};
use super::plan::{DEFAULT_SHARE, Run, Variant};
use super::requests::Sequence;
use super::server::Server;
use super::server_box::ServerBox;
use super::warm::WarmUp;
use eke_bench_core::Environment;
use eke_bench_core::disk_reads::Reads;

/// The program that mounts eke's cache.
const EKE: &str = "eke";
/// The warm-up of all variants is at least so long.
const LEAST_WARM_UP: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_millis(250);

/// The measurements of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The window of measurement.
    pub window: Window,
    /// How long the warm-up took.
    pub warm_up: Duration,
    /// Whether the caches were full at its end.
    pub filled: bool,
    /// The kernel's read-ahead in KiB.
    pub read_ahead_kib: Option<u64>,
}

/// Everything that a run uses. Fields are dropped in this order.
struct RunFixture {
    clients: Clients,
    server: Server,
    mount: Option<EkeMount>,
    server_box: ServerBox,
    disk: Disk,
}

/// Makes one run.
///
/// # Errors
/// A part cannot be set up, or ended too early. Everything is torn down then, too.
pub fn run(
    environment: &Environment<'_>,
    options: &Options,
    content: &Arc<Content>,
    run: &Run,
) -> Result<Trial> {
    let mut fixture = RunFixture::set_up(environment, content, run)?;
    let (warm_up, filled) = fixture.warm_up(environment, options.warm_up, content, run)?;
    let window = fixture.measure(environment, options.window, run)?;
    let read_ahead_kib = fixture.read_ahead(environment);
    fixture.tear_down()?;
    Ok(Trial { window, warm_up, filled, read_ahead_kib })
}

impl RunFixture {
    fn set_up(environment: &Environment<'_>, content: &Arc<Content>, run: &Run) -> Result<Self> {
        let (root, c) = (environment.root, &run.conditions);
        environment.progress.doing("the disk");
        let fs = run.variant.file_system();
        let disk = Disk::mount(root, &content.image(fs), fs, c.disk.as_deref())?;
        let mut server_box = ServerBox::make(root, "web", run.variant.memory(c.memory))?;
        let mut mount = None;
        if run.variant.uses_eke() {
            let program = environment.installed(EKE);
            let eke = (program.clone(), Command::new(program));
            mount = Some(EkeMount::over(&mut server_box, eke, &disk.dir(), &mount_options(run))?);
        }
        let dir = mount.as_ref().map_or_else(|| disk.dir(), EkeMount::dir);
        environment.progress.doing(c.server.name());
        let stop = environment.shutdown;
        let server = Server::start(root, &mut server_box, c.server, &dir, c.connections, stop)?;
        let load = Load {
            address: server.address,
            connections: c.connections,
            think: c.think,
            sequence: Sequence::new(c.requests, content.files.len()),
            content: Arc::clone(content),
        };
        let clients = Clients::start(load)?;
        Ok(Self { clients, server, mount, server_box, disk })
    }

    /// Waits until the caches are full and have been so for a while, at least [`LEAST_WARM_UP`] and at most `longest`. When the mount leaves the
    /// directory or returns to it, they fill anew. Returns the time, and whether they are full.
    fn warm_up(
        &mut self,
        environment: &Environment<'_>,
        longest: Duration,
        content: &Content,
        run: &Run,
    ) -> Result<(Duration, bool)> {
        let begun = Instant::now();
        let least = LEAST_WARM_UP.min(longest);
        let mut warm_up = WarmUp::new(content, run);
        let mut moved = (false, 0);
        while begun.elapsed() < longest {
            self.tick(environment, TICK)?;
            let read = self.disk.reads().bytes;
            let is_aside = self.mount.as_ref().is_some_and(EkeMount::is_aside);
            if is_aside != moved.0 {
                moved = (is_aside, read);
                let since = begun.elapsed();
                warm_up =
                    if is_aside { WarmUp::aside(content, run, since) } else { WarmUp::new(content, run) };
            }
            let percent = warm_up.percent(read - moved.1, begun.elapsed());
            environment
                .progress
                .doing(&format!("warm-up: {} MB from the disk, {percent:.0} %", read / 1_000_000));
            if warm_up.is_over(begun.elapsed()) && begun.elapsed() >= least {
                return Ok((begun.elapsed(), true));
            }
        }
        Ok((begun.elapsed(), false))
    }

    fn measure(&mut self, environment: &Environment<'_>, length: Duration, run: &Run) -> Result<Window> {
        let before = self.counters();
        let begun = Instant::now();
        while let Some(left) = length.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
            environment.progress.doing(&format!("measuring, {} s left", left.as_secs() + 1));
            self.tick(environment, left.min(TICK))?;
        }
        let ended = Instant::now();
        let after = self.counters();
        let memory = self.server_box.memory()?;
        let answered = self.clients.answered(begun, ended);
        Ok(Window {
            seconds: (ended - begun).as_secs_f64(),
            response_ms: answered.iter().map(|a| a.took.as_secs_f64() * 1e3).collect(),
            before,
            after,
            memory,
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            plain_backing: run.variant.file_system() == super::content::FileSystem::Ext4,
        })
    }

    /// Waits, and checks that everything still runs.
    fn tick(&mut self, environment: &Environment<'_>, time: Duration) -> Result<()> {
        std::thread::sleep(time);
        if environment.is_interrupted() {
            return Err(Error::Interrupted);
        }
        let checked = self.server.service.check(&mut self.server_box).and_then(|()| self.clients.check());
        checked.map_err(|error| error.with_kills(self.server_box.oom_kills()))
    }

    /// Reads all counters. The disk and the replies come first: they change while the rest is read.
    fn counters(&self) -> Counters {
        let (reads, bytes): (Reads, u64) = (self.disk.reads(), self.clients.bytes());
        let own = Cpu::of_this_process();
        let store = self.mount.as_ref().and_then(EkeMount::store);
        Counters { reads, bytes, cpu: self.server_box.cpu(), own, store }
    }

    fn read_ahead(&self, environment: &Environment<'_>) -> Option<u64> {
        let Some(mount) = &self.mount else { return self.disk.read_ahead_kib() };
        let device = rustix::fs::stat(mount.dir()).ok()?.st_dev;
        read_ahead(environment.root, rustix::fs::major(device), rustix::fs::minor(device))
    }

    /// Tears everything down in order and reports errors.
    fn tear_down(self) -> Result<()> {
        let Self { mut clients, server, mount, mut server_box, disk } = self;
        clients.end();
        server.service.stop(&mut server_box);
        let unmounted = mount.map_or(Ok(()), EkeMount::teardown);
        server_box.close()?;
        disk.teardown()?;
        unmounted
    }
}

/// The options of eke's mount. The default share is not asked for.
fn mount_options(run: &Run) -> Vec<String> {
    let compress = if run.variant == Variant::EkeSync { "sync" } else { "async" };
    let share = Some(run.conditions.share).filter(|share| *share != DEFAULT_SHARE);
    let memory = share.map(|share| format!("--memory={share}%"));
    memory.into_iter().chain([format!("--compress={compress}")]).collect()
}
