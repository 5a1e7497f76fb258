//! One run: sets the farm up cold, warms it up, measures, or breaks parts of it, and tears everything down.

use std::sync::Arc;
use std::time::{Duration, Instant};

use eke_bench_core::Environment;
use eke_bench_web::content::{Content, FileSystem};
use eke_bench_web::cpu::{Cpu, Ticks};
use eke_bench_web::server::put;

use crate::cache::Tiers;
use crate::clients::{Clients, Load};
use crate::engine::{self, Engine};
use crate::error::{Error, Result};
use crate::faults::{Fault, Faulted, Phase, Second};
use crate::hosts::Host;
use crate::metrics::{Counters, Window};
use crate::net::Net;
use crate::node::{Node, Spec};
use crate::origin::Origin;
use crate::plan::{NODES, Options, Variant};

const TICK: Duration = Duration::from_millis(250);
const SECOND: Duration = Duration::from_secs(1);
/// The member that is killed, the one that is cut off, and the node that is killed.
const KILLED: usize = 1;
const CUT: usize = 2;
const NODE: usize = NODES - 1;

/// The measurements of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The window of measurement.
    pub window: Window,
    /// What faults did, if there were any.
    pub faulted: Option<Faulted>,
    /// Processes that the kernel killed for lack of memory.
    pub oom_kills: u64,
}

/// What all runs share.
#[derive(Clone, Copy)]
pub struct RunInputs<'a> {
    /// The machine.
    pub environment: &'a Environment<'a>,
    /// What the user chose.
    pub options: &'a Options,
    /// The network.
    pub net: &'a Net,
    /// The files.
    pub content: &'a Arc<Content>,
}

/// Everything that a run uses. Fields are dropped in this order.
struct FarmFixture<'a> {
    inputs: RunInputs<'a>,
    clients: Clients,
    nodes: Vec<Node>,
    engine: Option<Engine>,
    origin: Origin,
}

/// Makes one run.
///
/// # Errors
/// A part cannot be set up, or ended too early. Everything is torn down then, too.
pub fn run(inputs: RunInputs<'_>, variant: Variant) -> Result<Trial> {
    let mut farm = FarmFixture::set_up(inputs, variant)?;
    let observed = farm.observe(variant);
    let oom_kills = farm.nodes.iter().map(Node::oom_kills).sum();
    let (window, faulted) = observed.map_err(|error| error.with_kills(oom_kills))?;
    farm.keep_status(inputs.environment);
    farm.tear_down()?;
    Ok(Trial { window, faulted, oom_kills })
}

impl<'a> FarmFixture<'a> {
    fn set_up(inputs: RunInputs<'a>, variant: Variant) -> Result<Self> {
        let RunInputs { environment, options, net, content } = inputs;
        environment.progress.doing("the origin");
        let image = content.image(FileSystem::Ext4);
        let origin = Origin::start(environment, net, &image, &options.disk, variant)?;
        let mut engine = None;
        if variant.is_shared() {
            environment.progress.doing("the engine");
            let spec = engine::Spec { memory: options.memory, replicas: variant.replicas() };
            engine = Some(Engine::start(environment, net, spec)?);
        }
        let memory = variant.memory(options.memory);
        let spec = Spec { variant, memory, connections: options.connections * NODES };
        let mut nodes = Vec::new();
        for host in (0..NODES).map(Host::Node) {
            environment.progress.doing(&host.word());
            nodes.push(Node::start(environment, net, host, spec)?);
        }
        let clients = Clients::start(Load {
            namespace: net.namespace(Host::Client),
            nodes: (0..NODES).map(|n| Host::Node(n).http()).collect(),
            connections: options.connections,
            exponent: options.exponent,
            content: Arc::clone(content),
            compare_all: variant.has_faults(),
        })?;
        Ok(Self { inputs, clients, nodes, engine, origin })
    }

    /// Warms up, and measures or breaks parts.
    fn observe(&mut self, variant: Variant) -> Result<(Window, Option<Faulted>)> {
        let options = self.inputs.options;
        self.pass(options.warm_up, "warm-up", !variant.has_faults())?;
        if variant.has_faults() {
            Ok((Window::default(), Some(self.break_parts()?)))
        } else {
            Ok((self.measure(options.window)?, None))
        }
    }

    /// Lets time pass, and checks that everything still runs.
    fn pass(&mut self, time: Duration, doing: &str, is_strict: bool) -> Result<()> {
        let begun = Instant::now();
        while let Some(left) = time.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
            self.inputs.environment.progress.doing(&format!("{doing}, {} s left", left.as_secs() + 1));
            std::thread::sleep(left.min(TICK));
            if self.inputs.environment.is_interrupted() {
                return Err(Error::Interrupted);
            }
            self.origin.check()?;
            self.nodes.iter_mut().try_for_each(Node::check)?;
            if is_strict {
                self.clients.check()?;
            }
        }
        Ok(())
    }

    fn measure(&mut self, length: Duration) -> Result<Window> {
        let before = self.counters()?;
        let begun = Instant::now();
        self.pass(length, "measuring", true)?;
        let ended = Instant::now();
        let after = self.counters()?;
        let answered = self.clients.answered(begun, ended);
        Ok(Window {
            seconds: (ended - begun).as_secs_f64(),
            response_ms: answered.iter().map(|a| a.took.as_secs_f64() * 1e3).collect(),
            before,
            after,
            distinct: self.clients.distinct(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
        })
    }

    /// Reads all counters. The disk, the replies and the links come first: they change while the rest is read.
    fn counters(&self) -> Result<Counters> {
        let (reads, bytes, sent) = (self.origin.reads(), self.clients.bytes(), self.inputs.net.sent()?);
        let mut nodes = Ticks::default();
        self.nodes.iter().for_each(|node| nodes += node.cpu());
        let engine = self.engine.as_ref().map(Engine::cpu).unwrap_or_default();
        let own = Cpu::of_this_process();
        let origin = self.origin.cpu().box_ticks();
        Ok(Counters { reads, sent, bytes, nodes, origin, engine, own, tiers: self.tiers() })
    }

    fn tiers(&self) -> Option<Tiers> {
        let all = self.nodes.iter().filter_map(Node::tiers);
        all.reduce(|a, b| a.with(b, u64::wrapping_add))
    }

    /// Every fault, each with its phase.
    fn break_parts(&mut self) -> Result<Faulted> {
        let mut faulted = Faulted::default();
        for fault in Fault::ALL {
            let phase = self.phase(fault)?;
            faulted.phases.push(phase);
        }
        faulted.wrong = self.clients.wrong();
        faulted.refused = self.tiers().unwrap_or_default().refused;
        Ok(faulted)
    }

    fn phase(&mut self, fault: Fault) -> Result<Phase> {
        let begun = Instant::now();
        let mut reads = vec![(Duration::ZERO, self.origin.reads().bytes)];
        self.make(fault)?;
        let action = begun.elapsed();
        let mut second = Duration::ZERO;
        while second < self.inputs.options.phase.max(action + SECOND) {
            second += SECOND;
            self.pass(second.saturating_sub(begun.elapsed()), fault.name(), false)?;
            reads.push((begun.elapsed(), self.origin.reads().bytes));
        }
        let seconds = (0..second.as_secs()).map(|n| self.second(begun, Duration::from_secs(n), &reads));
        Ok(Phase { fault, action, seconds: seconds.collect() })
    }

    /// What clients saw in the second that begins `from` after the fault.
    fn second(&self, begun: Instant, from: Duration, reads: &[(Duration, u64)]) -> Second {
        let between = begun + from..begun + from + SECOND;
        let answered = self.clients.answered(between.start, between.end);
        Second {
            response_ms: answered.iter().map(|a| a.took.as_secs_f64() * 1e3).collect(),
            failed: self.clients.failed().iter().filter(|at| between.contains(at)).count() as u64,
            origin: read_until(reads, from + SECOND).saturating_sub(read_until(reads, from)),
            bytes: answered.iter().map(|a| a.bytes).sum(),
        }
    }

    fn make(&mut self, fault: Fault) -> Result<()> {
        let RunInputs { environment, net, .. } = self.inputs;
        match (fault, &mut self.engine) {
            (Fault::EngineKilled, Some(engine)) => engine.kill(KILLED),
            (Fault::EngineStarted, Some(engine)) => engine.start_again(environment, net, KILLED),
            (Fault::LinkCut, _) => net.connect(Host::Engine(CUT), false),
            (Fault::LinkMended, _) => net.connect(Host::Engine(CUT), true),
            (Fault::NodeKilled, _) => self.nodes.get_mut(NODE).map_or(Ok(()), Node::kill),
            (Fault::NodeStarted, _) => {
                self.nodes.get_mut(NODE).map_or(Ok(()), |node| node.start_again(environment, net))
            }
            _ => Ok(()),
        }
    }

    /// Puts the first node's status beside the content, for whoever asks why a run was slow.
    fn keep_status(&self, environment: &Environment<'_>) {
        let file = environment.cache.join("farm").join("last-status.json");
        if let Some(status) = self.nodes.first().and_then(Node::status) {
            let _ = put(&file, &status.to_string());
        }
    }

    /// Tears everything down in order. The first error is reported; the rest is torn down all the same.
    fn tear_down(self) -> Result<()> {
        let Self { mut clients, nodes, engine, origin, .. } = self;
        clients.end();
        let mut result = Ok(());
        for node in nodes {
            result = result.and(node.tear_down());
        }
        let ended = engine.map_or(Ok(()), Engine::tear_down);
        result.and(ended).and(origin.tear_down())
    }
}

/// What the disk had read at a moment, as far as it was asked by then. A moment's delay does not move bytes to the next second.
fn read_until(reads: &[(Duration, u64)], moment: Duration) -> u64 {
    let asked = reads.iter().rev().find(|(at, _)| *at <= moment + TICK / 2);
    asked.map_or(0, |(_, bytes)| *bytes)
}
