//! `eke up`: measure, apply, stay.

use eke_core::remedy::Remedy;
use eke_core::snapshot::Applied;
use eke_kernel::apply::Session;
use eke_kernel::{journal, state};
use eke_swap::Swap;
use eke_swap::decide;
use eke_swap::measure::figures::Measured;

use super::{Context, plan};
use crate::agent;
use crate::args::{AgentStart, Up};
use crate::documents;
use crate::exit::{Failure, Outcome, Status};
use crate::show;

/// The verb.
pub fn run(context: &Context, up: &Up) -> Outcome {
    context.need_root("`eke up` makes compressed swap and sets kernel settings, which needs root")?;
    if is_up(context)? {
        println!("eke is up already. `eke status` shows it, `eke down` puts everything back.");
        ensure_agent(context, up)?;
        return Ok(Status::Done);
    }
    let document = apply(context, up)?;
    if document.decision.plan.steps.is_empty() {
        println!("Nothing to change.");
        return Ok(Status::Done);
    }
    if !context.json {
        println!("Applied. `eke status` shows what it gains, `eke down` puts everything back.");
    }
    Ok(Status::Done)
}

/// Is a plan in force? What a killed measurement or demo left does not count.
pub fn is_up(context: &Context) -> Outcome<bool> {
    Ok(journal::entries(&context.root)?.iter().any(|e| e.intent.owner == decide::REMEDY))
}

/// Measures, prints, applies, and starts the agent.
pub fn apply(context: &Context, up: &Up) -> Outcome<documents::Plan> {
    let wish = plan::wished(context, &up.wish);
    let document = if up.boot { at_boot(context, &wish)? } else { plan::make(context, &wish)? };
    context.print(&document, |d| print!("{}", show::plan::text(d)))?;
    let plan = &document.decision.plan;
    if plan.steps.is_empty() {
        return Ok(document);
    }
    Session::open(&context.root, decide::REMEDY)?.apply_plan(plan)?;
    remember(context, &document)?;
    ensure_agent(context, up)?;
    Ok(document)
}

/// At boot there is little to sample yet: the figures of the last measurement serve, if there are any.
fn at_boot(context: &Context, wish: &decide::Wish) -> Outcome<documents::Plan> {
    let Some(measured) = state::load::<Measured>(&context.root, state::MEASURED) else {
        return plan::make(context, wish);
    };
    let facts = Swap.probe(&context.root)?;
    let decision = decide::decide(&facts, &measured, wish)?;
    Ok(documents::Plan { facts, measured, decision })
}

fn remember(context: &Context, document: &documents::Plan) -> Outcome<()> {
    let applied = Applied { unix_s: unix_s(), plans: vec![document.decision.plan.clone()] };
    state::save(&context.root, state::APPLIED, &applied)?;
    Ok(state::save(&context.root, state::MEASURED, &document.measured)?)
}

fn unix_s() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

fn ensure_agent(context: &Context, up: &Up) -> Outcome<()> {
    if up.agent == AgentStart::None || !context.root.is_host() || agent::snapshot(&context.root)?.is_some() {
        return Ok(());
    }
    agent::start(&context.root)
        .map(drop)
        .map_err(|e| e.hint("the plan is applied all the same; `eke down` undoes it"))
}

/// Refuses `run` where something is applied already.
pub fn refuse_if_up(context: &Context) -> Outcome<()> {
    if is_up(context)? {
        return Err(Failure::new(Status::Failed, "eke is up already")
            .hint("`eke status` shows it, `eke down` puts everything back"));
    }
    Ok(())
}
