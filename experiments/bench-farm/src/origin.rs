//! The origin: the content on a slow disk, served as a block device or by nginx.

use std::path::Path;
use std::process::Command;

use eke_apply::state::make_dir;
use eke_bench_core::Environment;
use eke_bench_core::disk_reads::Reads;
use eke_bench_core::fault::on;
use eke_bench_core::test_image::{self, Scratch, mount_point};
use eke_bench_web::cpu::Cpu;
use eke_bench_web::server_box::ServerBox;
use eke_bench_web::service::Service;
use eke_slow_disk::SlowDisk;
use rustix::mount::{MountFlags, mount};

use crate::error::Result;
use crate::hosts::{HTTP, Host, NBD};
use crate::net::{Net, listens};
use crate::plan::{ORIGIN_MEMORY, Variant};
use crate::programs::need;
use crate::remote_disk::unmount_all;
use crate::servers::{Served, nginx};
use eke_bench_web::server::put;

/// How many requests of one connection the server works on at once. Each has a buffer in the origin's memory.
const THREADS: &str = "8";

/// The origin. Fields are dropped in this order. This process serves the slow disk, so it must never be in the box.
#[derive(Debug)]
pub struct Origin {
    server: Service,
    server_box: ServerBox,
    own: Scratch,
    disk: SlowDisk,
}

impl Origin {
    /// Attaches the disk, cold, and starts the server.
    ///
    /// # Errors
    /// The disk cannot be made, or the server does not start.
    pub fn start(
        environment: &Environment<'_>,
        net: &Net,
        image: &Path,
        profile: &str,
        variant: Variant,
    ) -> Result<Self> {
        let root = environment.root;
        let disk = test_image::attach(root, image, test_image::profile(profile)?)?;
        let own = Scratch::in_run(root)?;
        let mut server_box = ServerBox::make(root, "farmorigin", ORIGIN_MEMORY)?;
        let (name, command, port) = if variant.mounts_the_disk() {
            ("nbdkit", device_server(net, disk.device())?, NBD)
        } else {
            let dir = mount_point(own.path());
            make_dir(root, &dir, 0o755).map_err(on("make", &dir))?;
            mount(disk.device(), &dir, "ext4", MountFlags::NOATIME | MountFlags::RDONLY, None)
                .map_err(on("mount", disk.device()))?;
            ("nginx", file_server(net, Host::Origin, Served::Files(&dir), own.path(), 64)?, HTTP)
        };
        let server = Service::start(&mut server_box, name, &command, own.path())?;
        let namespace = net.namespace(Host::Origin);
        let address = (Host::Origin.address(), port).into();
        server.wait(environment.shutdown, &mut server_box, || listens(&namespace, address))?;
        Ok(Self { server, server_box, own, disk })
    }

    /// Checks that the server still runs.
    ///
    /// # Errors
    /// It ended.
    pub fn check(&mut self) -> Result<()> {
        self.server.check(&mut self.server_box)
    }

    /// The disk's reads since the start.
    pub fn reads(&self) -> Reads {
        let reads = self.disk.stats().reads;
        Reads { requests: reads.requests, bytes: reads.bytes.0 }
    }

    /// The CPU time of its processes.
    pub fn cpu(&self) -> Cpu {
        self.server_box.cpu()
    }

    /// Ends the server and detaches the disk.
    ///
    /// # Errors
    /// Something is still in use.
    pub fn tear_down(self) -> Result<()> {
        let Self { server_box, own, disk, .. } = self;
        server_box.close()?;
        unmount_all(&mount_point(own.path()))?;
        Ok(disk.detach()?)
    }
}

fn device_server(net: &Net, device: &Path) -> Result<Command> {
    let program = need("nbdkit", "this experiment needs", "nbdkit")?;
    let mut command = net.on(Host::Origin, &program);
    command.args(["-f", "-r", "-t", THREADS, "-p", &NBD.to_string(), "-i"]);
    command.arg(Host::Origin.address().to_string()).arg("file").arg(device);
    Ok(command)
}

/// nginx on a host, with its configuration in `own`.
pub fn file_server(
    net: &Net,
    host: Host,
    served: Served<'_>,
    own: &Path,
    connections: usize,
) -> Result<Command> {
    let program = need("nginx", "this experiment needs", "nginx")?;
    let file = own.join("nginx.conf");
    let text = nginx(host.address(), served, own, connections);
    put(&file, &text)?;
    let mut command = net.on(host, &program);
    command.arg("-e").arg("stderr").arg("-p").arg(own).arg("-c").arg(file);
    Ok(command)
}
