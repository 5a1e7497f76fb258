//! The engine: members of a Valkey or Redis cluster, each in a box on a host of its own.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use eke_bench_core::Environment;
use eke_bench_core::command::output;
use eke_bench_core::fault::{self, Missing};
use eke_bench_core::test_image::Scratch;
use eke_bench_web::cpu::Ticks;
use eke_bench_web::server_box::ServerBox;
use eke_bench_web::service::Service;
use eke_linux::Root;
use eke_model::units::{Bytes, MIB};

use crate::error::{Error, Result};
use crate::hosts::Host;
use crate::net::{Net, listens};
use crate::plan::ENGINES;
use crate::programs;

const PORT: u16 = 6379;
/// A member that does not answer for so long is replaced by its replica, in milliseconds.
pub const FAILOVER_MS: u32 = 500;
/// The same without replicas: nothing replaces it.
const ALONE_MS: u32 = 2000;
/// How long the members may take to agree.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);
/// A box has room for the members' own memory, and what its allocator wastes.
const SPARE: u64 = 64 * MIB;

/// A member.
#[derive(Debug)]
struct Member {
    host: Host,
    server: Service,
    server_box: ServerBox,
    own: Scratch,
}

/// How a cluster is set up.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// What each member may use for content.
    pub memory: Bytes,
    /// Replicas of each member: 0 or 1.
    pub replicas: usize,
}

/// A running cluster without persistence.
#[derive(Debug)]
pub struct Engine {
    members: Vec<Member>,
    spec: Spec,
}

impl Engine {
    /// Starts all members and joins them.
    ///
    /// # Errors
    /// A member does not start, or they do not agree.
    pub fn start(environment: &Environment<'_>, net: &Net, spec: Spec) -> Result<Self> {
        let mut members = Vec::new();
        for number in 0..ENGINES * (1 + spec.replicas) {
            members.push(Member::start(environment, net, Host::Engine(number), spec)?);
        }
        let engine = Self { members, spec };
        engine.join(environment, net)?;
        Ok(engine)
    }

    fn join(&self, environment: &Environment<'_>, net: &Net) -> Result<()> {
        let all = self.members.len();
        let addresses = self.members.iter().map(|m| format!("{}:{PORT}", m.host.address()));
        // A member forgets another one that does not greet it in time (`handshake_timeout` in the engine's cluster.c). This program greets once, and then
        // waits for ever.
        let (_, program) = programs::engine().ok_or_else(missing)?;
        let mut command = net.on(Host::Engine(0), Path::new("timeout"));
        command.arg(PATIENCE.as_secs().to_string()).arg(program);
        command.args(["--cluster", "create"]).args(addresses).args([
            "--cluster-replicas",
            &self.spec.replicas.to_string(),
            "--cluster-yes",
        ]);
        output(&mut command)?;
        let until = Instant::now() + PATIENCE;
        while !self.members.iter().all(|m| is_whole(net, m.host, all)) {
            if environment.is_interrupted() {
                return Err(Error::Interrupted);
            }
            if Instant::now() > until {
                return Err(fault::Command::new(&command, "did not make one cluster").into());
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Its URL for eke.
    pub fn url() -> String {
        let all: Vec<String> = (0..ENGINES).map(|n| Host::Engine(n).address().to_string()).collect();
        format!("redis+cluster://{}", all.join(","))
    }

    /// The CPU time of all members.
    pub fn cpu(&self) -> Ticks {
        let mut all = Ticks::default();
        self.members.iter().for_each(|m| all += m.server_box.cpu().box_ticks());
        all
    }

    /// Kills a member at once, as a crash does.
    ///
    /// # Errors
    /// There is no such member, or it cannot be killed.
    pub fn kill(&mut self, number: usize) -> Result<()> {
        match self.members.get_mut(number) {
            Some(member) => Ok(member.server_box.kill()?),
            None => Ok(()),
        }
    }

    /// Starts a killed member again, without its content.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_again(&mut self, environment: &Environment<'_>, net: &Net, number: usize) -> Result<()> {
        let spec = self.spec;
        let Some(member) = self.members.get_mut(number) else { return Ok(()) };
        member.server =
            start(environment, net, member.host, spec, &mut member.server_box, member.own.path())?;
        Ok(())
    }

    /// Ends all members.
    ///
    /// # Errors
    /// A process cannot be killed.
    pub fn tear_down(self) -> Result<()> {
        self.members.into_iter().try_for_each(|member| member.server_box.close())
    }
}

impl Member {
    fn start(environment: &Environment<'_>, net: &Net, host: Host, spec: Spec) -> Result<Self> {
        let root: &Root = environment.root;
        let own = Scratch::in_run(root)?;
        let limit = Bytes(spec.memory.0 + spec.memory.0 / 2 + SPARE);
        let mut server_box = ServerBox::make(root, &format!("farm{}", host.word()), limit)?;
        let server = start(environment, net, host, spec, &mut server_box, own.path())?;
        Ok(Self { host, server, server_box, own })
    }
}

fn start(
    environment: &Environment<'_>,
    net: &Net,
    host: Host,
    spec: Spec,
    server_box: &mut ServerBox,
    own: &Path,
) -> Result<Service> {
    let (program, _) = programs::engine().ok_or_else(missing)?;
    let mut command = net.on(host, &program);
    command.args(["--port", &PORT.to_string(), "--bind", &host.address().to_string()]);
    command.args(["--protected-mode", "no", "--save", "", "--appendonly", "no"]);
    command.args(["--maxmemory", &spec.memory.0.to_string(), "--maxmemory-policy", "allkeys-lru"]);
    command.args(["--cluster-enabled", "yes", "--cluster-require-full-coverage", "no"]);
    let timeout_ms = if spec.replicas > 0 { FAILOVER_MS } else { ALONE_MS };
    command.args(["--cluster-node-timeout", &timeout_ms.to_string(), "--dir"]).arg(own);
    let server = Service::start(server_box, "engine", &command, own)?;
    let namespace = net.namespace(host);
    server.wait(environment.shutdown, server_box, || listens(&namespace, (host.address(), PORT).into()))?;
    Ok(server)
}

fn missing() -> Error {
    Missing::new("redis-server", "a shared tier needs", "redis-server").into()
}

/// The engine's client, on the first member's host.
fn cli(net: &Net) -> Result<Command> {
    let (_, program) = programs::engine().ok_or_else(missing)?;
    Ok(net.on(Host::Engine(0), &program))
}

/// Whether a member knows all others and all slots.
fn is_whole(net: &Net, host: Host, members: usize) -> bool {
    let Ok(mut command) = cli(net) else { return false };
    command.args(["-h", &host.address().to_string(), "cluster", "info"]);
    let info = output(&mut command).unwrap_or_default();
    info.contains("cluster_state:ok")
        && info.contains("cluster_slots_ok:16384")
        && info.contains(&format!("cluster_known_nodes:{members}"))
}
