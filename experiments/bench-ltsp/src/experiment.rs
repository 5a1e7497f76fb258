//! The experiment: for each run the clients' boot files, a server, all clients at once, and what became of each.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use eke_bench_core::fault::on;
use eke_bench_core::kept::{self, Kept, Measured};
use eke_bench_core::{Environment, Experiment, OnFailure, Results};
use eke_bench_desktop::documents::{self, Document, Requirements};
use eke_bench_desktop::session::Spec;
use eke_results::report::Report;
use eke_results::rows::Rows;
use eke_vm::run_to_end;

use crate::boot_files::{self, Wanted};
use crate::client::Client;
use crate::echo::Login;
use crate::error::{Error, Result};
use crate::faults::{Faults, Survived};
use crate::network::Network;
use crate::outcome::{self, Measurement, Stage};
use crate::plan::{Means, Round, rounds, with_faults};
use crate::server::{Server, last};
use crate::session::{limit, spec};
use crate::trees::Trees;

const LOOK: Duration = Duration::from_millis(200);

/// What the user asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// RAM of the clients, in turn.
    pub sizes_mib: Vec<u32>,
    /// Clients at once.
    pub clients: usize,
    /// Only these; all if empty.
    pub means: Vec<Means>,
    /// Rounds.
    pub repeats: usize,
    /// Instead of comparing: the server hangs and is restarted while eke's clients work.
    pub faults: bool,
    /// Documents to open.
    pub documents: usize,
    /// Debian's mirror.
    pub mirror: String,
    /// The directory of the trees; `None` for one in the experiments' cache.
    pub cache: Option<PathBuf>,
    /// Whether to continue what another commit has measured.
    pub any_commit: bool,
}

/// The experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lab(pub Options);

/// What runs share.
pub struct Fixture<'e> {
    environment: &'e Environment<'e>,
    trees: Trees,
    network: Network,
    place: tempfile::TempDir,
    documents: Vec<PathBuf>,
    kept: Kept<Vec<Measurement>>,
}

impl Experiment for Lab {
    const NEEDS_ROOT: Option<&'static str> =
        Some("an experiment makes a network namespace with an LTSP server, which needs root");
    type Fixture<'e> = Fixture<'e>;
    type Run = Round;
    type Measurement = Measured<Vec<Measurement>>;
    type Error = Error;

    fn set_up<'e>(
        &'e self,
        environment: &'e Environment<'e>,
        notes: &mut Vec<String>,
    ) -> Result<Fixture<'e>> {
        let chosen = choose(environment, self.0.documents, notes)?;
        let cache = self.cache(environment);
        let own = environment.installed("eke-bench");
        let own = own.parent().unwrap_or(Path::new(""));
        let doing = |what: &str| environment.progress.print(&format!("Preparing: {what}."));
        let trees = Trees::ensure(&cache, &self.0.mirror, own, &chosen, &doing)?;
        let kept = Kept::open(&cache, &environment.command, &trees.key, &environment.provenance.commit);
        kept.check(self.0.any_commit)?;
        let place = tempfile::Builder::new().prefix("eke-ltsp-").tempdir();
        let place = place.map_err(on("make a directory in", &std::env::temp_dir()))?;
        let key = place.path().join("key");
        run_to_end(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key))?;
        let network = Network::make(environment.root, self.0.clients)?;
        let documents = chosen.iter().map(|d| Path::new("/srv/documents").join(&d.name)).collect();
        Ok(Fixture { environment, trees, network, place, documents, kept })
    }

    fn plan(&self, _fixture: &Fixture<'_>) -> Vec<Round> {
        let plan = if self.0.faults { with_faults } else { rounds };
        let mut runs = plan(&self.0.sizes_mib, self.0.repeats);
        runs.retain(|round| self.0.means.is_empty() || self.0.means.contains(&round.means));
        runs
    }

    fn name(&self, _fixture: &Fixture<'_>, round: &Round) -> String {
        round.name()
    }

    fn measure(
        &self,
        fixture: &mut Fixture<'_>,
        round: &Round,
        _notes: &mut Vec<String>,
    ) -> Result<Option<Measured<Vec<Measurement>>>> {
        let name = round.name();
        if let Some(kept) = fixture.kept.get(&name) {
            return Ok(Some(kept));
        }
        let spec = spec(round.memory_mib, &fixture.documents);
        let faults = round.has_faults.then(Faults::default);
        let measured = fixture.run(round.means, &spec, self.0.clients, round.memory_mib, faults)?;
        Ok(Some(fixture.kept.add(&name, measured)?))
    }

    fn on_failure(&self, _fixture: &Fixture<'_>, error: &Error, _tried: usize) -> OnFailure {
        match error {
            Error::Client { .. } => OnFailure::LeaveOut,
            _ => OnFailure::Abort,
        }
    }

    fn report(
        &self,
        environment: &Environment<'_>,
        _fixture: &mut Fixture<'_>,
        results: Results<Round, Measured<Vec<Measurement>>>,
    ) -> Report {
        let mut rows = Rows::default();
        let mut notes = results.notes;
        for (round, measured) in &results.measured {
            rows.of_commit(&measured.commit);
            for (number, client) in measured.of.iter().enumerate() {
                outcome::add(round, client, &mut rows);
                notes.push(outcome::note(round, number, client));
            }
        }
        notes.extend(self.notes());
        Report {
            variants: Means::ALL.map(Means::variant).into(),
            metrics: outcome::metrics(),
            rows: rows.done(),
            notes,
            ..environment.report("LTSP clients")
        }
        .settled()
    }

    fn is_usage(error: &Error) -> bool {
        matches!(error, Error::Kept(kept::Error::Others { .. }))
    }

    fn written(&self, environment: &Environment<'_>) {
        kept::forget(&self.cache(environment), &environment.command);
    }
}

impl Lab {
    fn cache(&self, environment: &Environment<'_>) -> PathBuf {
        self.0.cache.clone().unwrap_or_else(|| environment.cache.join("ltsp"))
    }

    fn notes(&self) -> Vec<String> {
        vec![
            format!(
                "{} at once on one server: Debian 12 with its package ltsp. rpcbind and NFS in user space (ganesha), dnsmasq for addresses; the clients' \
                 root is a squashfs image over NFS, as LTSP's default. Each client is QEMU in software emulation with one CPU and Debian's kernel.",
                match self.0.clients {
                    1 => "One client".to_owned(),
                    n => format!("{n} clients"),
                }
            ),
            "Clients boot by PXE: iPXE in the network card's ROM, LTSP's own menu, kernel and initrd by TFTP. What the server sent until the login includes \
             them; the time begins with the kernel."
                .to_owned(),
            "Not measured: real network cards and links; a desktop \
             environment (the desktop is Xvfb, openbox and xpdf, which log in by themselves; LTSP's PAM_AUTH_TYPE=0)."
                .to_owned(),
            "The initrd has only the drivers of these clients. With the drivers of all network cards, as LTSP's hook adds them, it has 73 MB unpacked, and \
             a client of 124 MB cannot hold it."
                .to_owned(),
            "eke has its defaults: each client measures itself at its boot, before the desktop, and its budgets for time are those of a real CPU, although \
             the emulated one is about 15 times slower. Its agent and the metrics for the server ran."
                .to_owned(),
        ]
    }
}

impl Fixture<'_> {
    /// Boots the clients with a server of their own, and waits until all are off.
    fn run(
        &self,
        means: Means,
        spec: &Spec,
        clients: usize,
        memory_mib: u32,
        faults: Option<Faults>,
    ) -> Result<Vec<Measurement>> {
        let place = self.place.path();
        let key = place.join("key");
        let public = key.with_extension("pub");
        let public_key = std::fs::read_to_string(&public).map_err(on("read", &public))?;
        let wanted = Wanted { means, spec, clients, public_key: &public_key };
        boot_files::make(&self.trees, &wanted)?;
        let mut server = Some(Server::start(&self.network, &self.trees.server, place.join("server.log"))?);
        let mut running = Vec::new();
        for number in 0..clients {
            let client = Client::start(&self.network, place, number, memory_mib)?;
            running.push(Watched {
                client,
                number,
                stage: Stage::Boot,
                login: None,
                marks: Marks::default(),
            });
        }
        let mut faults = faults;
        self.watch(&mut running, &key, &mut server, &mut faults)?;
        for watched in &mut running {
            watched.marks.faults = faults.as_ref().map(Faults::survived).unwrap_or_default();
        }
        running.into_iter().map(Watched::measurement).collect()
    }

    /// Follows the clients until all are off, or the time is over.
    fn watch(
        &self,
        running: &mut [Watched],
        key: &Path,
        server: &mut Option<Server>,
        faults: &mut Option<Faults>,
    ) -> Result<()> {
        let begin = Instant::now();
        loop {
            let mut is_over = true;
            for watched in running.iter_mut() {
                watched.follow(&self.network, key)?;
                is_over &= watched.client.is_off();
            }
            if let Some(faults) = faults {
                let opened = running.iter().map(|watched| outcome::opened(&watched.client.output())).min();
                let log = self.place.path().join("server.log");
                faults.follow(opened.unwrap_or(0), &self.network, server, &self.trees.server, log)?;
            }
            if self.environment.is_interrupted() {
                return Err(Error::Interrupted);
            }
            if is_over {
                return Ok(());
            }
            if begin.elapsed() > limit(running.len()) {
                running.iter_mut().for_each(|watched| watched.marks.timed_out = !watched.client.is_off());
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// A client with what the host saw of it.
struct Watched {
    client: Client,
    number: usize,
    stage: Stage,
    login: Option<Login>,
    marks: Marks,
}

#[derive(Default)]
struct Marks {
    desktop_bytes: Option<u64>,
    session_bytes: Option<u64>,
    begin_bytes: Option<u64>,
    echoes: Vec<f64>,
    timed_out: bool,
    faults: Survived,
}

impl Watched {
    /// Notes what the client has reached, and begins and ends the login.
    fn follow(&mut self, network: &Network, key: &Path) -> Result<()> {
        if self.marks.begin_bytes.is_none() {
            self.marks.begin_bytes = Some(network.traffic(self.number)?.sent);
        }
        let stage = outcome::stage(&self.client.output());
        if self.stage < Stage::Desktop && stage >= Stage::Desktop {
            self.marks.desktop_bytes = Some(network.traffic(self.number)?.sent);
        }
        if self.stage < Stage::Load && stage >= Stage::Load {
            self.marks.session_bytes = Some(network.traffic(self.number)?.sent);
            self.login = Some(Login::begin(network, key, self.number)?);
        }
        if stage == Stage::Done || self.client.is_off() {
            if let Some(login) = self.login.take() {
                self.marks.echoes = login.end();
            }
        }
        if stage == Stage::Done {
            // It has said all, and would take time and bytes from the others.
            self.client.switch_off();
        }
        self.stage = stage;
        Ok(())
    }

    fn measurement(mut self) -> Result<Measurement> {
        if let Some(login) = self.login.take() {
            self.marks.echoes = login.end();
        }
        let output = self.client.output();
        if outcome::stage(&output) == Stage::Boot {
            let what = format!("client {} did not reach its desktop", self.number + 1);
            return Err(Error::Client { what, console: last(&self.client.console()) });
        }
        let since = |later: Option<u64>, earlier: Option<u64>| Some(later?.saturating_sub(earlier?));
        let marks = self.marks;
        Ok(Measurement {
            boot_bytes: since(marks.desktop_bytes, marks.begin_bytes),
            session_bytes: since(marks.session_bytes, marks.desktop_bytes),
            echoes: marks.echoes,
            timed_out: marks.timed_out,
            faults: marks.faults,
            ..outcome::parse(&output)
        })
    }
}

/// Documents of this machine's packages.
fn choose(environment: &Environment<'_>, count: usize, notes: &mut Vec<String>) -> Result<Vec<Document>> {
    let directories = documents::DIRECTORIES.map(PathBuf::from);
    let found = documents::find(&directories, &environment.cache.join("documents"));
    let choice = documents::choose(&found.documents, &Requirements::of_the_study(count))?;
    notes.extend(choice.notes);
    Ok(choice.documents)
}
