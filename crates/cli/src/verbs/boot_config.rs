//! `eke swap boot-config`: the planned zswap on the kernel's command line.

use eke_apply::boot::{self, BootPlan, ZswapBoot};
use eke_apply::files as kernel_files;
use eke_apply::files::{Change, Content};
use eke_apply::state;
use eke_model::applied::Applied;
use eke_model::config::SwapSettings;
use eke_model::sample::SwapArea;
use eke_model::step::Step;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::putln;
use eke_present::task::{Task, unknown};
use eke_swap::Swap;
use eke_swap::decide::backend::Backend;
use eke_swap::decide::{self, knobs};
use eke_swap::facts::Facts;

use super::{Context, files};

/// The options.
pub struct Options {
    /// Make the changes.
    pub write: bool,
    /// Put the files back.
    pub undo: bool,
    /// Instead of the planned one.
    pub compressor: Option<String>,
    /// Instead of the planned one.
    pub max_pool_percent: Option<u32>,
}

/// The verb.
pub fn run(context: &Context, options: &Options) -> Outcome {
    if options.undo {
        return undo(context);
    }
    let plan = boot::changes(&context.root, &zswap(context, options)?)?;
    for line in &plan.detected.evidence {
        putln!("{line}");
    }
    putln!("kernel command line: {}", plan.words.join(" "));
    for note in &plan.notes {
        putln!("note: {note}");
    }
    if options.write {
        context.need_root("writing the boot loader's configuration needs root")?;
        let task =
            Task::begin(context.json, "writing the files and regenerating the boot loader's", unknown());
        let written = boot::write(&context.root, &plan)?;
        drop(task);
        files::show_written(&written);
        putln!("This takes effect at the next boot. `eke swap boot-config --undo` restores the files.");
    } else {
        preview(context, &plan)?;
    }
    Ok(Status::Done)
}

fn undo(context: &Context) -> Outcome {
    context.need_root("restoring the boot loader's configuration needs root")?;
    let task = Task::begin(context.json, "restoring the files and regenerating the boot loader's", unknown());
    let (undone, cleaned) = boot::undo(&context.root)?;
    drop(task);
    if undone == boot::Undone::default() && cleaned.is_empty() {
        putln!("Nothing to undo: eke has not changed the boot configuration.");
    }
    files::show_undone(&undone);
    for path in cleaned {
        putln!("took eke's words out of /{path}, which a kernel upgrade wrote");
    }
    Ok(Status::Done)
}

/// By the applied plan and the machine.
fn zswap(context: &Context, options: &Options) -> Outcome<ZswapBoot> {
    let applied = state::load::<Applied>(&context.root, state::APPLIED).unwrap_or_default();
    // The root directory of a machine that is not running has no facts.
    let facts = Swap.probe(&context.root).unwrap_or_default();
    values(&applied, facts, options, &context.settings.swap)
}

/// The applied plan's values, then what the kernel has now.
fn values(applied: &Applied, facts: Facts, options: &Options, settings: &SwapSettings) -> Outcome<ZswapBoot> {
    if options.compressor.is_none() {
        refuse_without_use(&facts, settings, applied.plans.is_empty())?;
    }
    let planned = |name: &str| {
        let steps = applied.plans.iter().flat_map(|p| &p.steps).map(|p| &p.step);
        steps.into_iter().find_map(|s| match s {
            Step::Set { knob, value, .. } if knob == name => Some(value.clone()),
            _ => None,
        })
    };
    let now = facts.zswap;
    let compressor = options
        .compressor
        .clone()
        .or_else(|| planned("zswap.compressor"))
        .or_else(|| now.as_ref().map(|z| z.compressor.clone()));
    let compressor = compressor.ok_or_else(|| {
        Failure::new(Status::Usage, "no zswap plan is applied and this root has no zswap: give --compressor NAME and --max-pool-percent N")
    })?;
    let pool = options.max_pool_percent.or_else(|| planned("zswap.max_pool_percent")?.parse().ok());
    let max_pool_percent = pool.or_else(|| now.as_ref()?.max_pool_percent).unwrap_or(settings.pool_percent);
    Ok(ZswapBoot {
        compressor,
        max_pool_percent,
        zpool: now.as_ref().and_then(|z| z.zpool.as_ref()).map(|_| "zsmalloc".to_owned()),
        accept_threshold_percent: Some(knobs::zswap_accept_percent(max_pool_percent)),
        // The plan leaves it off in front of a disk that wears out.
        shrinker: planned("zswap.shrinker_enabled").map(|on| on == "Y").or(now.and_then(|z| z.shrinker)),
    })
}

/// zswap is a cache in front of swap on a disk, and zram takes its place. `is_unplanned`: no plan is applied yet.
fn refuse_without_use(facts: &Facts, settings: &SwapSettings, is_unplanned: bool) -> Outcome<()> {
    let why = match facts.areas.iter().find_map(SwapArea::zram_name) {
        Some(zram) => {
            format!("{zram} is swap here, and zswap in front of it would compress every page twice")
        }
        None if facts.areas.is_empty() && facts.zswap.is_some() => {
            "no swap on a disk is on, and zswap is a cache in front of one".to_owned()
        }
        None if is_unplanned && !facts.disk_areas.is_empty() => match decide::choose(facts, settings, "") {
            Ok((Backend::Zram, reason)) => format!("`eke up` would use {}", reason.text),
            _ => return Ok(()),
        },
        None => return Ok(()),
    };
    Err(Failure::new(Status::Usage, why).hint("--compressor NAME sets zswap up at boot all the same"))
}

/// Prints the changed lines without writing them.
fn preview(context: &Context, plan: &BootPlan) -> Outcome<()> {
    for change in &plan.changes {
        putln!("\nwould change /{}:", change.path);
        let before = kernel_files::read(&context.root, &change.path)?.unwrap_or_default();
        for line in lines_of(change).lines().filter(|l| !before.lines().any(|b| b == *l)) {
            putln!("+ {line}");
        }
    }
    for command in &plan.commands {
        putln!("would run: {command} ({})", command.why);
    }
    if plan.changes.is_empty() && plan.commands.is_empty() {
        putln!("Nothing to change.");
    } else {
        putln!("\nNothing was changed. --write makes these changes.");
    }
    Ok(())
}

fn lines_of(change: &Change) -> String {
    match &change.new {
        Content::Text { text, .. } => text.clone(),
        Content::Symlink(target) => format!("(a link to {target})"),
        Content::Absent => "(removed)".into(),
    }
}

#[cfg(test)]
mod tests {
    use eke_model::config::{BackendChoice, Settings};
    use eke_model::step::{Plan, Reason};
    use eke_model::units::Bytes;
    use eke_swap::facts::{DiskArea, ZswapFacts};

    use super::*;

    fn machine(area: &str) -> Facts {
        let zswap = ZswapFacts { compressor: "lzo".into(), shrinker: Some(false), ..ZswapFacts::default() };
        let device = area.strip_prefix("/dev/").map(str::to_owned);
        let area = SwapArea { path: area.into(), device, ..SwapArea::default() };
        let areas = if area.path.is_empty() { Vec::new() } else { vec![area] };
        Facts { areas, zswap: Some(zswap), ..Facts::default() }
    }

    fn settings(backend: BackendChoice) -> SwapSettings {
        SwapSettings { backend, ..Settings::from_sources(&[]).unwrap().swap }
    }

    fn options(compressor: Option<&str>) -> Options {
        let compressor = compressor.map(str::to_owned);
        Options { write: false, undo: false, compressor, max_pool_percent: None }
    }

    /// In front of a card the plan leaves it off.
    #[test]
    fn the_shrinker_is_on_only_if_the_plan_or_the_kernel_has_it_on() {
        let shrinker = |steps: &[Step]| {
            let mut plan = Plan::default();
            steps.iter().for_each(|step| plan.push(step.clone(), Reason::new("")));
            let applied = Applied { plans: vec![plan], ..Applied::default() };
            values(&applied, machine("/dev/sda2"), &options(None), &settings(BackendChoice::Auto))
                .unwrap()
                .words()
                .pop()
                .unwrap()
        };
        assert_eq!(shrinker(&[Step::set("zswap.enabled", "Y")]), "zswap.shrinker_enabled=0");
        assert_eq!(shrinker(&[Step::set("zswap.shrinker_enabled", "Y")]), "zswap.shrinker_enabled=1");
    }

    #[test]
    fn zswap_without_use_needs_a_request() {
        let why = |area: &str, compressor| {
            let given = values(
                &Applied::default(),
                machine(area),
                &options(compressor),
                &settings(BackendChoice::Auto),
            );
            given.err().map(|e| e.to_string()).unwrap_or_default()
        };
        assert!(why("/dev/zram0", None).contains("zram0 is swap here"), "{}", why("/dev/zram0", None));
        assert!(why("", None).contains("no swap on a disk is on"), "{}", why("", None));
        assert_eq!([why("/dev/sda2", None), why("/dev/zram0", Some("zstd"))], ["", ""]);
    }

    #[test]
    fn before_the_first_plan_zswap_is_refused_where_the_plan_would_use_zram() {
        let why = |mib, plans, backend| {
            let mut facts = Facts { ram: Bytes::mib(16_384), ..machine("/dev/sda2") };
            facts.zram.loadable = true;
            facts.areas[0].size = Bytes::mib(mib);
            facts.disk_areas = vec![DiskArea { path: "/dev/sda2".into(), ..DiskArea::default() }];
            let applied = Applied { plans, ..Applied::default() };
            let given = values(&applied, facts, &options(None), &settings(backend));
            given.err().map(|e| e.to_string()).unwrap_or_default()
        };
        let small = why(976, Vec::new(), BackendChoice::Auto);
        assert!(small.starts_with("`eke up` would use zram in front of /dev/sda2"), "{small}");
        let large = why(9000, Vec::new(), BackendChoice::Auto);
        assert_eq!([large, why(976, vec![Plan::default()], BackendChoice::Auto)], ["", ""]);
        assert_eq!(why(976, Vec::new(), BackendChoice::Zswap), "");
        let requested = why(9000, Vec::new(), BackendChoice::Zram);
        assert!(requested.starts_with("`eke up` would use zram, because it was requested"), "{requested}");
    }
}
