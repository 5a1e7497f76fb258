//! `eke bench disk`: the simulated disk beside what is published of a real one.
//!
//! The real one is Seagate's Exos X24 of 24 TB: its data sheet (DS2080), and fio runs on it that StorageReview published with its review of the
//! Exos M of 30 TB. Runs at depth 4 are not published.

use eke_bench_core::{Environment, Experiment, OnFailure, Results, settings, shuffled};
use eke_linux::Root;
use eke_model::units::Bytes;
use eke_results::report::{Report, Role, Variant, more};
use eke_results::rows::{Rows, params};
use eke_slow_disk::fio::{self, Job};
use eke_slow_disk::{Error, Image, Profile, SlowDisk, SlowDiskSpec};

/// The name of the real drive's column.
const PUBLISHED: &str = "Exos X24, published";
/// Requests per second, or bytes.
const IOPS: &str = "requests";
const RATE: &str = "bytes";
/// Distance is a share of the disk, so a small one behaves like a whole one.
const SIZE: Bytes = Bytes::mib(1024);

/// The simulated disks: the name in the report, the disk, and what it is.
const DISKS: [(&str, &str, &str); 5] = [
    ("in order", "sata", "requests are served in order of arrival, as on the disks of the stored results"),
    (
        "scheduler",
        "sata+queue=4+mq-deadline",
        "in order of arrival, four at a time; mq-deadline orders the others",
    ),
    ("bfq", "sata+queue=4+bfq", "in order of arrival, four at a time; bfq orders the others"),
    ("NCQ", "sata+ncq+none", "the drive orders 32 requests itself and caches writes; no scheduler"),
    ("NCQ, scheduler", "sata+ncq+mq-deadline", "the same below mq-deadline"),
];

/// The jobs, each with what is published of it: data sheet or fio.
const JOBS: [(&str, Job, Option<f64>); 9] = [
    ("random read, depth 1", job("randread", "4k", 1), None),
    ("random read, depth 4", job("randread", "4k", 4), None),
    ("random read, depth 16", job("randread", "4k", 16), Some(168.0)),
    ("random read, depth 32", job("randread", "4k", 32), Some(210.0)),
    ("random write, depth 16", job("randwrite", "4k", 16), Some(550.0)),
    ("random write, depth 32", job("randwrite", "4k", 32), Some(749.0)),
    ("7 random reads to 3 writes, depth 16", Job { read_percent: Some(70), ..job("randrw", "4k", 16) }, None),
    ("sequential read", job("read", "128k", 64), Some(285.0)),
    ("sequential write", job("write", "128k", 64), Some(285.0)),
];

const fn job(rw: &'static str, block: &'static str, depth: usize) -> Job {
    Job { rw, block, depth, read_percent: None }
}

/// The experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// Rounds.
    pub repeats: usize,
    /// Seconds for each job.
    pub seconds: u32,
}

/// One disk in one round: an index into [`DISKS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    disk: usize,
    round: usize,
}

impl Experiment for Published {
    const NEEDS_ROOT: Option<&'static str> = Some("an experiment makes slow disks, which needs root");
    type Fixture<'e> = &'e Environment<'e>;
    type Run = Run;
    /// In the order of [`JOBS`].
    type Measurement = Vec<f64>;
    type Error = Error;

    fn set_up<'e>(
        &'e self,
        environment: &'e Environment<'e>,
        _notes: &mut Vec<String>,
    ) -> Result<&'e Environment<'e>, Error> {
        fio::ensure()?;
        Ok(environment)
    }

    fn plan(&self, _fixture: &&Environment<'_>) -> Vec<Run> {
        let disks: Vec<usize> = (0..DISKS.len()).collect();
        let round = |round| shuffled(&disks, round).into_iter().map(move |disk| Run { disk, round });
        (0..self.repeats).flat_map(round).collect()
    }

    fn name(&self, _fixture: &&Environment<'_>, run: &Run) -> String {
        format!("{}, {} of {}", DISKS[run.disk].0, run.round + 1, self.repeats)
    }

    fn measure(
        &self,
        environment: &mut &Environment<'_>,
        run: &Run,
        _notes: &mut Vec<String>,
    ) -> Result<Option<Vec<f64>>, Error> {
        let name = DISKS[run.disk].1;
        let profile = Profile::named(name).ok_or_else(|| Error::Spec(format!("no disk is called {name}")))?;
        // Disks belong to the real machine, whatever tree holds the settings.
        let host = Root::host();
        let disk = SlowDisk::attach(&host, SlowDiskSpec::new(Image::Memory, SIZE, profile.clone()))?;
        settings::note_disk(&host, &profile, disk.device(), "in memory".as_ref());
        let mut measured = Vec::new();
        for (what, job, _) in &JOBS {
            environment.progress.doing(what);
            let result = job.run(disk.device(), self.seconds)?;
            measured.push(if is_random(job) { result.iops } else { result.bw_bytes / 1e6 });
            if environment.is_interrupted() {
                return Err(Error::Interrupted);
            }
        }
        disk.detach()?;
        Ok(Some(measured))
    }

    fn on_failure(&self, _fixture: &&Environment<'_>, _error: &Error, _tried: usize) -> OnFailure {
        OnFailure::Abort
    }

    fn report(
        &self,
        environment: &Environment<'_>,
        _fixture: &mut &Environment<'_>,
        results: Results<Run, Vec<f64>>,
    ) -> Report {
        let mut rows = Rows::default();
        for (run, measured) in &results.measured {
            for ((what, job, _), sample) in JOBS.iter().zip(measured) {
                add(&mut rows, DISKS[run.disk].0, what, job, *sample);
            }
        }
        for (what, job, published) in &JOBS {
            published.iter().for_each(|published| add(&mut rows, PUBLISHED, what, job, *published));
        }
        let notes = [results.notes, NOTES.iter().map(|note| (*note).to_owned()).collect()].concat();
        Report {
            variants: variants(),
            metrics: metrics(),
            rows: rows.done(),
            notes,
            ..environment.report("disk")
        }
    }
}

const NOTES: [&str; 4] = [
    "The disk is fitted by two numbers: its 85 requests per second at depth 1, so that depth 16 comes to the data sheet's 168, and the 256 stretches that its cache of writes has, so that random writes come to what drives of this kind have. All else follows.",
    "The published values are of the data sheet at depth 16 and in sequence, and of fio at depth 32. By the same fio runs, six drives of 7200 rpm read 198 to 214 times a second, and wrote 301 to 749 times.",
    "On a SATA disk of 7200 rpm, 32 readers were served no faster than one without queue and scheduler, half as fast again with deadline alone or NCQ alone, and fastest with both (ilsistemista.net, \"A look at how NCQ, software queue and I/O schedulers impact disk performance\").",
    "A Deskstar 7K500 takes 55.5 s for 4096 random reads, one at a time: 74 a second (its specification, 4.4.5.2).",
];

fn is_random(job: &Job) -> bool {
    job.rw.starts_with("rand")
}

fn add(rows: &mut Rows, variant: &str, what: &str, job: &Job, sample: f64) {
    let (metric, unit) = if is_random(job) { (IOPS, "1/s") } else { (RATE, "MB/s") };
    rows.add(variant, &params([("job", what.into())]), metric, unit, [sample]);
}

fn variants() -> Vec<Variant> {
    let real = Variant {
        name: PUBLISHED.to_owned(),
        role: Role::Baseline,
        set_up: "Seagate Exos X24, 7200 rpm: data sheet DS2080, and fio by StorageReview".to_owned(),
    };
    let simulated = DISKS.iter().map(|(name, disk, what)| Variant {
        name: (*name).to_owned(),
        role: Role::Variation,
        set_up: format!("{disk}: {what}"),
    });
    std::iter::once(real).chain(simulated).collect()
}

fn metrics() -> Vec<eke_results::report::Metric> {
    vec![
        more(IOPS, "Requests of 4 KiB per second, by fio with direct I/O."),
        more(RATE, "MB/s of requests of 128 KiB in sequence, by fio with direct I/O."),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_disk_exists_and_is_in_each_round() {
        for (_, disk, _) in DISKS {
            assert!(Profile::named(disk).is_some(), "{disk}");
        }
        let (root, shutdown) = (Root::host(), std::sync::atomic::AtomicBool::new(false));
        let environment = Environment {
            root: &root,
            program: "/nonexistent".into(),
            cache: "/nonexistent".into(),
            command: String::new(),
            provenance: eke_results::report::Provenance::default(),
            progress: &eke_present::progress::Shown::on_terminal(true),
            shutdown: &shutdown,
        };
        let runs = Published { repeats: 2, seconds: 1 }.plan(&&environment);
        for round in 0..2 {
            let mut disks: Vec<usize> =
                runs.iter().filter(|run| run.round == round).map(|run| run.disk).collect();
            disks.sort_unstable();
            assert_eq!(disks, (0..DISKS.len()).collect::<Vec<_>>());
        }
    }
}
