//! `eke swap boot-config`: the planned zswap on the kernel's command line.

use eke_apply::boot::{self, BootPlan, ZswapBoot};
use eke_apply::files as kernel_files;
use eke_apply::files::{Change, Content};
use eke_apply::state;
use eke_model::snapshot::Applied;
use eke_model::step::Step;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::putln;
use eke_present::task::{Task, unknown};
use eke_swap::Swap;
use eke_swap::decide::knobs;

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
    let undone = boot::undo(&context.root)?;
    drop(task);
    if undone == boot::Undone::default() {
        putln!("Nothing to undo: eke has not changed the boot configuration.");
    }
    files::show_undone(&undone);
    Ok(Status::Done)
}

/// The applied plan's values, then what the kernel has now.
fn zswap(context: &Context, options: &Options) -> Outcome<ZswapBoot> {
    let applied = state::load::<Applied>(&context.root, state::APPLIED).unwrap_or_default();
    let planned = |name: &str| {
        let steps = applied.plans.iter().flat_map(|p| &p.steps).map(|p| &p.step);
        steps.into_iter().find_map(|s| match s {
            Step::Set { knob, value, .. } if knob == name => Some(value.clone()),
            _ => None,
        })
    };
    // The root directory of a machine that is not running has no zswap.
    let now = Swap.probe(&context.root).ok().and_then(|facts| facts.zswap);
    let compressor = options
        .compressor
        .clone()
        .or_else(|| planned("zswap.compressor"))
        .or_else(|| now.as_ref().map(|z| z.compressor.clone()));
    let compressor = compressor.ok_or_else(|| {
        Failure::new(Status::Usage, "no zswap plan is applied and this root has no zswap: give --compressor NAME and --max-pool-percent N")
    })?;
    let pool = options.max_pool_percent.or_else(|| planned("zswap.max_pool_percent")?.parse().ok());
    let max_pool_percent =
        pool.or_else(|| now.as_ref()?.max_pool_percent).unwrap_or(context.settings.swap.pool_percent);
    Ok(ZswapBoot {
        compressor,
        max_pool_percent,
        zpool: now.as_ref().and_then(|z| z.zpool.as_ref()).map(|_| "zsmalloc".to_owned()),
        accept_threshold_percent: Some(knobs::zswap_accept_percent(max_pool_percent)),
        shrinker: now.as_ref().and_then(|z| z.shrinker).map(|_| true),
    })
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
