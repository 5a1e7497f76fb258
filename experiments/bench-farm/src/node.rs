//! A node: a web server with its cache, in a box on a host of its own.

use std::path::Path;

use eke_bench_core::Environment;
use eke_bench_core::test_image::Scratch;
use eke_bench_web::cpu::Ticks;
use eke_bench_web::eke_mount::EkeMount;
use eke_bench_web::server_box::ServerBox;
use eke_bench_web::service::Service;
use eke_model::units::Bytes;
use serde_json::Value;

use crate::cache::Tiers;
use crate::engine::Engine;
use crate::error::Result;
use crate::hosts::Host;
use crate::net::{Net, listens};
use crate::origin::file_server;
use crate::plan::Variant;
use crate::programs::need;
use crate::remote_disk::RemoteDisk;
use crate::servers::{Served, VARNISH_MALLOC, varnish, varnish_memory};

/// How a node is set up.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// The variant.
    pub variant: Variant,
    /// The node's memory.
    pub memory: Bytes,
    /// The most connections of clients.
    pub connections: usize,
}

/// What runs on a node. Fields are dropped in this order.
#[derive(Debug)]
struct Running {
    server: Service,
    cache: Option<EkeMount>,
    disk: Option<RemoteDisk>,
    own: Scratch,
}

/// A node. Fields are dropped in this order: the box's processes end last, since mounts need them.
#[derive(Debug)]
pub struct Node {
    host: Host,
    spec: Spec,
    running: Option<Running>,
    server_box: ServerBox,
}

impl Node {
    /// Starts everything on a host.
    ///
    /// # Errors
    /// A part does not start.
    pub fn start(environment: &Environment<'_>, net: &Net, host: Host, spec: Spec) -> Result<Self> {
        let server_box = ServerBox::make(environment.root, &format!("farm{}", host.word()), spec.memory)?;
        let mut node = Self { host, spec, running: None, server_box };
        node.start_again(environment, net)?;
        Ok(node)
    }

    /// Starts a killed node again, with nothing in its memory.
    ///
    /// # Errors
    /// A part does not start.
    pub fn start_again(&mut self, environment: &Environment<'_>, net: &Net) -> Result<()> {
        let Self { host, spec, server_box, .. } = self;
        let (host, spec) = (*host, *spec);
        let files = environment.cache.join("farm");
        let own = Scratch::directory(environment.root, &files)?;
        let mut disk = None;
        if spec.variant.mounts_the_disk() {
            disk = Some(RemoteDisk::mount(environment, net, server_box, host)?);
        }
        let mut cache = None;
        if let Some(disk) = disk.as_ref().filter(|_| spec.variant.uses_eke()) {
            let program = environment.installed("eke");
            let eke = (program.clone(), net.on(host, &program));
            let shared = spec.variant.is_shared().then(|| format!("--shared={}", Engine::url()));
            let options: Vec<String> = shared.into_iter().collect();
            cache = Some(EkeMount::mount(environment.root, server_box, eke, &disk.dir(), &options)?);
        }
        let dir = cache.as_ref().map(EkeMount::dir).or_else(|| disk.as_ref().map(RemoteDisk::dir));
        let (name, command) = serve(net, host, spec, dir.as_deref(), own.path())?;
        let server = Service::start(server_box, name, &command, own.path())?;
        self.running = Some(Running { server, cache, disk, own });
        let namespace = net.namespace(host);
        match &self.running {
            Some(r) => {
                r.server.wait(environment.shutdown, &mut self.server_box, || listens(&namespace, host.http()))
            }
            None => Ok(()),
        }
    }

    /// Kills everything on it at once, as a crash does.
    ///
    /// # Errors
    /// A process cannot be killed.
    pub fn kill(&mut self) -> Result<()> {
        self.server_box.kill()?;
        // The mounts of the dead are detached.
        self.running = None;
        Ok(())
    }

    /// Checks that its server runs, if it was not killed.
    ///
    /// # Errors
    /// It ended.
    pub fn check(&mut self) -> Result<()> {
        let Self { running, server_box, .. } = self;
        running.as_ref().map_or(Ok(()), |r| r.server.check(server_box))
    }

    /// How many of its processes the kernel killed for lack of memory.
    pub fn oom_kills(&self) -> u64 {
        self.server_box.oom_kills()
    }

    /// The CPU time of its processes.
    pub fn cpu(&self) -> Ticks {
        self.server_box.cpu().box_ticks()
    }

    /// What its cache did so far.
    pub fn tiers(&self) -> Option<Tiers> {
        Tiers::parse(&self.status()?)
    }

    /// The whole status of its cache.
    pub fn status(&self) -> Option<Value> {
        self.running.as_ref()?.cache.as_ref()?.status()
    }

    /// Ends everything in order.
    ///
    /// # Errors
    /// The first that failed; the rest is ended all the same.
    pub fn tear_down(self) -> Result<()> {
        let Self { running, mut server_box, .. } = self;
        let Some(Running { server, cache, disk, own }) = running else { return server_box.close() };
        server.stop(&mut server_box);
        let unmounted = cache.map_or(Ok(()), EkeMount::teardown);
        let unmounted = unmounted.and(disk.map_or(Ok(()), RemoteDisk::tear_down));
        server_box.close()?;
        drop(own);
        unmounted
    }
}

/// The server's name and command. `dir` has the files, if they are mounted.
fn serve(
    net: &Net,
    host: Host,
    spec: Spec,
    dir: Option<&Path>,
    own: &Path,
) -> Result<(&'static str, std::process::Command)> {
    let origin = Host::Origin.address();
    if spec.variant == Variant::Varnish {
        let program = need("varnishd", "this experiment needs", "varnish")?;
        let mut command = net.on(host, &program);
        command.args(varnish(host.address(), origin, own, varnish_memory(spec.memory)));
        command.env("MALLOC_CONF", VARNISH_MALLOC);
        return Ok(("varnishd", command));
    }
    let kept = own.join("kept");
    let served = dir.map_or(Served::Proxied { origin, cache: &kept }, Served::Files);
    Ok(("nginx", file_server(net, host, served, own, spec.connections)?))
}
