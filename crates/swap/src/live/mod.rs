//! What the agent does while a plan is applied: maintenance of the zram devices that eke made, and growing.
//!
//! # Layout
//! - [`facts`]: the devices and the machine's mood, as data; read by [`facts::read`]
//! - [`action`]: what can be done to a device, as data
//! - [`maintain`]: what to recompress or write back and when; pure, with its state as data
//! - [`gate`]: may it cost CPU and disk now; pure
//! - [`grow`]: whether a further device is worth its memory; pure
//! - [`ledger`]: how much was written to the backing device today; pure
//! - [`act`]: those decisions as writes to the kernel
//!
//! Invariants: only devices in the journal of eke's are touched; never more than the day's budget is written to a
//! disk, not even across a crash; while the gate is closed nothing is recompressed or written back.

pub mod act;
pub mod action;
pub mod facts;
pub mod gate;
pub mod grow;
pub mod ledger;
pub mod maintain;

use eke_linux::Root;
use eke_model::config::SwapSettings;
use eke_model::model::Model;
use eke_model::sample::{Sample, SwapArea};
use eke_model::step::ZramSpec;

use act::Outcome;
use action::Action;
use facts::{Facts, Figures};
use maintain::Now;

/// After a device could not be added, none is tried for this long.
const GROW_PAUSE_MS: u64 = 600_000;

/// One tick, as the agent sees it.
#[derive(Debug)]
pub struct Moment<'a> {
    /// The machine.
    pub root: &'a Root,
    /// The user's settings.
    pub settings: &'a SwapSettings,
    /// The tick's sample.
    pub now: &'a Sample,
    /// The sample of the tick before.
    pub before: &'a Sample,
    /// What the two amount to.
    pub model: &'a Model,
    /// Seconds since 1970, for the wear ledger's day.
    pub unix_s: u64,
}

/// What is remembered from tick to tick.
#[derive(Debug, Default)]
pub struct Live {
    maintenance: maintain::State,
    grow_not_before_ms: u64,
    /// The zram devices that were swap when the journal was last read, and those of them that eke made.
    known: Vec<String>,
    own: Vec<(String, ZramSpec)>,
}

impl Live {
    /// Decides and acts; gives what is worth telling, in full sentences.
    pub fn tick(&mut self, moment: &Moment<'_>) -> Vec<String> {
        self.look_whose(moment);
        if self.own.is_empty() {
            return Vec::new();
        }
        let facts = facts::read(moment.root, moment.settings, moment.now, &self.own);
        let figures = Figures::new(moment.now, moment.before, moment.model);
        let mut told = self.maintain(moment, &facts, &figures);
        told.extend(self.grow(moment, &facts, &figures));
        told
    }

    /// The journal is read again only when there are other zram devices than before.
    fn look_whose(&mut self, moment: &Moment<'_>) {
        let names: Vec<String> =
            moment.now.swaps.iter().filter_map(SwapArea::zram_name).map(str::to_owned).collect();
        if names != self.known {
            self.own = act::made_by_eke(moment.root, &names);
            self.known = names;
        }
    }

    fn maintain(&mut self, moment: &Moment<'_>, facts: &Facts, figures: &Figures) -> Vec<String> {
        let now = Now { ms: moment.now.time_ms, day: moment.unix_s / 86_400 };
        let ledger = act::ledger(moment.root);
        let decision = maintain::decide(facts, figures, &ledger, &self.maintenance, now);
        self.maintenance = decision.state;
        let told = decision.actions.iter().filter_map(|action| self.perform(moment, action, now));
        decision.told.into_iter().chain(told).collect()
    }

    fn perform(&mut self, moment: &Moment<'_>, action: &Action, now: Now) -> Option<String> {
        let outcome = act::perform(moment.root, action, now.day);
        let failed = match &outcome {
            Outcome::Failed(why) => {
                Some(format!("Maintenance of {} stopped at \"{action}\": {why}.", action.device()))
            }
            _ => None,
        };
        failed.or(self.maintenance.note(action, &outcome, now.ms))
    }

    fn grow(&mut self, moment: &Moment<'_>, facts: &Facts, figures: &Figures) -> Option<String> {
        if moment.now.time_ms < self.grow_not_before_ms {
            return None;
        }
        let may_wait = self.maintenance.is_busy() && gate::closed_by(facts, figures).is_none();
        let planned = grow::decide(facts, moment.model, self.own.first().map(|(_, spec)| spec)?, may_wait)?;
        let added = act::grow(moment.root, &planned).transpose()?;
        self.grow_not_before_ms = moment.now.time_ms + GROW_PAUSE_MS;
        Some(match added {
            Ok(device) => format!("Swap on {device} was added. {}", planned.reason.text),
            Err(e) => format!("No further zram device could be added: {e}."),
        })
    }
}
