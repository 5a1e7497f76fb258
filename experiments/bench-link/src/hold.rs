//! The whole experiment, CPU by CPU.

use std::sync::atomic::Ordering;

use eke_results::report::Report;

use super::client::Client;
use super::error::{Error, Result};
use super::net::Net;
use super::plan::{Cpu, Rate, Setting};
use super::report::{self, Held};
use super::server::Server;
use super::x11::Session;
use super::{Bench, client, net, server, trial};

/// Holds the experiment.
///
/// # Errors
/// What is missing, or the kernel's refusal; a CPU that cannot be had is a note. Whatever happens, the machine is as before.
pub fn run(bench: &Bench<'_>) -> Result<Report> {
    net::sweep(bench.root)?;
    server::sweep(bench.root)?;
    client::sweep(bench.root)?;
    let net = Net::make(bench.root)?;
    let server = Server::start(bench.root, &net)?;
    let mut held = Held::default();
    let session = bench.options.x11.then(|| Session::start(bench, &net)).transpose();
    let session = session.unwrap_or_else(|why| {
        held.notes.push(format!("There is no X session: {why}."));
        None
    });
    bench.progress.planned(bench.options.links.len() * bench.options.cpus.len());
    for cpu in &bench.options.cpus {
        let done =
            one_cpu(bench, &Scene { net: &net, server: &server, session: session.as_ref() }, *cpu, &mut held);
        // A signal goes to ssh too, whose failure is not the news then.
        done.map_err(|e| if bench.shutdown.load(Ordering::Relaxed) { Error::Interrupted } else { e })?;
    }
    bench.progress.done();
    if held.trials.is_empty() {
        return Err(Error::Environment(format!("no setting could be measured: {}", held.notes.join(" "))));
    }
    Ok(report::report(bench, held))
}

/// What all settings share.
struct Scene<'a> {
    net: &'a Net,
    server: &'a Server,
    session: Option<&'a Session<'a>>,
}

fn one_cpu(bench: &Bench<'_>, scene: &Scene<'_>, cpu: Cpu, held: &mut Held) -> Result<()> {
    let net = scene.net;
    net.limit(Rate::Unlimited)?;
    bench.progress.doing(&format!("the CPU: {}", cpu.name()));
    let client = match Client::make(bench, net, scene.server, cpu) {
        Ok(client) => client,
        Err(Error::Environment(why)) => {
            held.notes.push(format!("{} is left out: {why}.", cpu.name()));
            return Ok(());
        }
        Err(e) => return Err(e),
    };
    held.notes.extend(client.permille.zip(client.calibrated_mb_per_s).map(|(permille, rate)| {
        format!(
            "{}: {:.1} % of one CPU, with which AES128-CTR had {rate:.1} MB/s from the server over the unlimited link.",
            cpu.name(),
            permille as f64 / 10.0
        )
    }));
    for link in &bench.options.links {
        let setting = Setting { link: *link, cpu };
        bench.progress.begins(&format!("{}, {}", link.name(), cpu.name()));
        net.limit(*link)?;
        match trial::run(bench, &client.ssh, scene.session) {
            Ok(trial) => held.trials.push((setting, trial)),
            Err(e) if bench.shutdown.load(Ordering::Relaxed) => return Err(e),
            // Keep the other settings.
            Err(e) => held.notes.push(format!("{}, {} is left out: {e}.", link.name(), cpu.name())),
        }
    }
    Ok(())
}
