//! One run: from a cold disk and an empty box to the same again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Options;
use super::client::{Clients, Load};
use super::content::Content;
use super::cpu::Cpu;
use super::disk::{Disk, read_ahead};
use super::error::{Error, Result};
use super::figures::{Counters, Window};
use super::ours::Mount;
use super::plan::{Run, Variant};
use super::requests::Sequence;
use super::room::Room;
use super::server::Server;
use super::warm::Warmth;
use eke_bench_core::Environment;
use eke_bench_core::disk_reads::Reads;

/// The program that mounts eke's cache.
const EKE: &str = "eke";
const TICK: Duration = Duration::from_millis(250);

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// For the figures.
    pub window: Window,
    /// How long the warm-up took.
    pub warm_up: Duration,
    /// Were the caches full at its end?
    pub filled: bool,
    /// What the kernel reads ahead, in KiB.
    pub read_ahead_kib: Option<u64>,
}

/// Everything that runs. Fields are dropped in this order.
struct Scene {
    clients: Clients,
    server: Server,
    mount: Option<Mount>,
    room: Room,
    disk: Disk,
}

/// Holds one run.
///
/// # Errors
/// What could not be had or ended too early. Whatever happens, nothing is left.
pub fn run(
    environment: &Environment<'_>,
    options: &Options,
    content: &Arc<Content>,
    run: &Run,
) -> Result<Trial> {
    let mut scene = Scene::set(environment, content, run)?;
    let (warm_up, filled) = scene.warm_up(environment, options.warm_up, content, run)?;
    let window = scene.measure(environment, options.window, run)?;
    let read_ahead_kib = scene.read_ahead(environment);
    scene.strike()?;
    Ok(Trial { window, warm_up, filled, read_ahead_kib })
}

impl Scene {
    fn set(environment: &Environment<'_>, content: &Arc<Content>, run: &Run) -> Result<Self> {
        let (root, c) = (environment.root, &run.conditions);
        environment.progress.doing("the disk");
        let fs = run.variant.file_system();
        let disk = Disk::set(root, &content.image(fs), fs, c.disk.as_deref())?;
        let mut room = Room::make(root, run.variant.memory(c.memory))?;
        let mut mount = None;
        if run.variant.is_ours() {
            let compress = if run.variant == Variant::EkeSync { "sync" } else { "async" };
            let program = &environment.installed(EKE);
            mount = Some(Mount::set(root, &mut room, program, &disk.dir(), c.share, compress)?);
        }
        let dir = mount.as_ref().map_or_else(|| disk.dir(), Mount::dir);
        environment.progress.doing(c.server.name());
        let server = Server::start(root, &mut room, c.server, &dir, c.connections, environment.shutdown)?;
        let load = Load {
            address: server.address,
            connections: c.connections,
            think: c.think,
            sequence: Sequence::new(c.requests, content.files.len()),
            content: Arc::clone(content),
        };
        let clients = Clients::start(load)?;
        Ok(Self { clients, server, mount, room, disk })
    }

    /// Until the caches are full, or as long as is allowed.
    fn warm_up(
        &mut self,
        environment: &Environment<'_>,
        longest: Duration,
        content: &Content,
        run: &Run,
    ) -> Result<(Duration, bool)> {
        let begun = Instant::now();
        let mut warmth = Warmth::new(content, run);
        while begun.elapsed() < longest {
            self.tick(environment, TICK)?;
            let read = self.disk.reads().bytes;
            let share = warmth.share(read, begun.elapsed());
            environment
                .progress
                .doing(&format!("warm-up: {} MB from the disk, {share:.0} %", read / 1_000_000));
            if share >= 100.0 {
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
        let memory = self.room.memory()?;
        let answered = self.clients.answered(begun, ended);
        Ok(Window {
            seconds: (ended - begun).as_secs_f64(),
            response_ms: answered.iter().map(|a| a.took.as_secs_f64() * 1e3).collect(),
            before,
            after,
            memory,
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            plain_below: run.variant.file_system() == super::content::FileSystem::Ext4,
        })
    }

    /// Waits, and looks whether everything still runs.
    fn tick(&mut self, environment: &Environment<'_>, time: Duration) -> Result<()> {
        std::thread::sleep(time);
        if environment.is_interrupted() {
            return Err(Error::Interrupted);
        }
        self.server.check(&mut self.room)?;
        self.clients.check().map_err(|e| match self.room.oom_kills() {
            0 => e,
            kills => Error::Client(format!(
                "lost its server ({e}): the kernel killed {kills} processes of the box for want of memory"
            )),
        })
    }

    /// The disk and the replies first: they go on while the rest is read.
    fn counters(&self) -> Counters {
        let (reads, bytes): (Reads, u64) = (self.disk.reads(), self.clients.bytes());
        let own = Cpu::of_this_process();
        let store = self.mount.as_ref().and_then(Mount::store);
        Counters { reads, bytes, cpu: self.room.cpu(), own, store }
    }

    fn read_ahead(&self, environment: &Environment<'_>) -> Option<u64> {
        let Some(mount) = &self.mount else { return self.disk.read_ahead_kib() };
        let device = rustix::fs::stat(mount.dir()).ok()?.st_dev;
        read_ahead(environment.root, rustix::fs::major(device), rustix::fs::minor(device))
    }

    /// In order, so that everything says if it cannot be taken down.
    fn strike(self) -> Result<()> {
        let Self { mut clients, server, mount, mut room, disk } = self;
        clients.end();
        server.stop(&mut room);
        let unmounted = mount.map_or(Ok(()), Mount::strike);
        room.close()?;
        disk.strike()?;
        unmounted
    }
}
