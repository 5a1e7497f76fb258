//! The experiment, CPU by CPU.

use eke_bench_core::{Environment, Experiment, OnFailure, Results};
use eke_results::report::Report;

use super::client::Client;
use super::error::{Error, Result};
use super::net::Net;
use super::plan::{Cpu, Rate, Setting, settings};
use super::server::Server;
use super::trial::Trial;
use super::x11::Session;
use super::{Options, client, net, report, server, trial};

/// The experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link(pub Options);

/// The client and the server, joined by the link. Fields are dropped in this order.
pub struct Ends<'e> {
    environment: &'e Environment<'e>,
    session: Option<Session>,
    /// The client with its CPU. The inner `None` is a CPU that this machine cannot provide.
    client: Option<(Cpu, Option<Client>)>,
    server: Server,
    net: Net,
}

impl Experiment for Link {
    const NEEDS_ROOT: Option<&'static str> =
        Some("an experiment makes network namespaces and a link between them, which needs root");

    type Fixture<'e> = Ends<'e>;
    type Run = Setting;
    type Measurement = Trial;
    type Error = Error;

    fn set_up<'e>(&'e self, environment: &'e Environment<'e>, notes: &mut Vec<String>) -> Result<Ends<'e>> {
        let root = environment.root;
        net::sweep(root)?;
        server::sweep(root)?;
        client::sweep(root)?;
        let net = Net::make(root)?;
        let server = Server::start(root, &net)?;
        let session = self.0.x11.then(|| Session::start(environment, &self.0, &net)).transpose();
        let session = session.unwrap_or_else(|why| {
            notes.push(format!("There is no X session: {why}."));
            None
        });
        Ok(Ends { environment, session, client: None, server, net })
    }

    fn plan(&self, _ends: &Ends<'_>) -> Vec<Setting> {
        settings(&self.0.links, &self.0.cpus)
    }

    fn name(&self, _ends: &Ends<'_>, setting: &Setting) -> String {
        format!("{}, {}", setting.link.name(), setting.cpu.name())
    }

    /// Calibrates a CPU before its first setting.
    fn prepare(&self, ends: &mut Ends<'_>, setting: &Setting, notes: &mut Vec<String>) -> Result<bool> {
        if ends.client.as_ref().is_none_or(|(cpu, _)| *cpu != setting.cpu) {
            ends.client = None;
            ends.net.limit(Rate::Unlimited)?;
            ends.client = Some((setting.cpu, ends.calibrated(setting.cpu, notes)?));
        }
        Ok(ends.client.as_ref().is_some_and(|(_, client)| client.is_some()))
    }

    fn measure(
        &self,
        ends: &mut Ends<'_>,
        setting: &Setting,
        _notes: &mut Vec<String>,
    ) -> Result<Option<Trial>> {
        let Some((_, Some(client))) = &ends.client else { return Ok(None) };
        ends.net.limit(setting.link)?;
        trial::run(ends.environment, &self.0, &client.ssh, ends.session.as_ref()).map(Some)
    }

    /// A failed setting does not end the others.
    fn on_failure(&self, _ends: &Ends<'_>, _error: &Error, _tried: usize) -> OnFailure {
        OnFailure::LeaveOut
    }

    fn report(
        &self,
        environment: &Environment<'_>,
        _ends: &mut Ends<'_>,
        results: Results<Setting, Trial>,
    ) -> Report {
        report::report(environment, results)
    }
}

impl Ends<'_> {
    /// Makes a client and calibrates its CPU; `None` with a note if this machine cannot provide the CPU.
    fn calibrated(&self, cpu: Cpu, notes: &mut Vec<String>) -> Result<Option<Client>> {
        self.environment.progress.doing(&format!("the CPU: {}", cpu.name()));
        let client = match Client::make(self.environment, &self.net, &self.server, cpu) {
            Ok(client) => client,
            Err(Error::Environment(why)) => {
                notes.push(format!("{} is left out: {why}.", cpu.name()));
                return Ok(None);
            }
            Err(e) => return Err(e),
        };
        notes.extend(client.permille.zip(client.calibrated_mb_per_s).map(|(permille, rate)| {
            format!(
                "{}: {:.1} % of one CPU, with which AES128-CTR had {rate:.1} MB/s from the server over the unlimited link.",
                cpu.name(),
                permille as f64 / 10.0
            )
        }));
        Ok(Some(client))
    }
}
