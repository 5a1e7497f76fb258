//! Several sessions at once, all to here: what the link carries that one session does not fill, and what a server can do for many.

use std::time::Instant;

use serde::Serialize;

use super::at_once::at_once;
use super::channel::Channel;
use super::{Run, open};
use crate::error::Result;
use crate::plan::session_bytes;
use crate::suite::Suite;

/// What several did together.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sessions {
    /// How many; fewer than asked for where some did not come about.
    pub count: usize,
    /// In which cipher.
    pub suite: Suite,
    /// All of them together, in MB/s.
    pub mb_per_s: f64,
    /// Bytes of all.
    pub bytes: u64,
    /// The share of all CPUs of the far end that was busy meanwhile, 0 to 1.
    pub there_busy: Option<f64>,
}

/// See the module.
pub(super) struct Several<'a> {
    pub run: &'a Run<'a>,
    pub suite: &'a Suite,
    pub count: usize,
    /// MB/s of one.
    pub rate: f64,
    pub began: Instant,
}

impl Several<'_> {
    /// `first` is one that stands already. Others that do not come about are left out.
    ///
    /// # Errors
    /// A channel's, while bytes flow.
    pub fn measure(&self, first: Channel<'_>) -> Result<Sessions> {
        let mut channels = vec![first];
        channels.extend(self.open_more()?);
        let left = self.run.asked.budget.time.saturating_sub(self.began.elapsed());
        let each = session_bytes(self.rate * 1e6, channels.len(), left, &self.run.asked.budget);
        // Connections find their pace with the first megabytes.
        let warm = each / 2;
        at_once(&mut channels, |c| c.get(warm).map(drop))?;
        let before = channels[0].sample(None)?;
        let took = at_once(&mut channels, |c| c.get(each - warm).map(drop))?;
        let used = channels[0].sample(None)?.since(&before).used();
        let count = channels.len() as u64;
        Ok(Sessions {
            count: channels.len(),
            suite: self.suite.clone(),
            mb_per_s: ((each - warm) * count) as f64 / 1e6 / took.as_secs_f64().max(1e-6),
            bytes: each * count,
            there_busy: used.machine_busy,
        })
    }

    /// Side by side where nobody has to type; not more than a few at a time, since servers drop what knocks all at once
    /// (`MaxStartups 10:30:100` in sshd_config(5)).
    fn open_more(&self) -> Result<Vec<Channel<'_>>> {
        const AT_ONCE: usize = 5;
        let Run { ssh, asked, may_ask, shutdown, .. } = *self.run;
        let suite = self.suite;
        let one = || open(ssh, &asked.host, Some(suite), &["-T"], may_ask, shutdown);
        let more = self.count - 1;
        if self.run.may_ask {
            return (0..more).map(|_| one()).collect();
        }
        let mut opened = Vec::new();
        while opened.len() < more {
            let batch = AT_ONCE.min(more - opened.len());
            let results: Vec<Result<Channel<'_>>> = std::thread::scope(|scope| {
                let all: Vec<_> = (0..batch).map(|_| scope.spawn(one)).collect();
                all.into_iter().filter_map(|t| t.join().ok()).collect()
            });
            let before = opened.len();
            opened.extend(results.into_iter().flatten());
            if opened.len() < before + batch {
                break;
            }
        }
        Ok(opened)
    }
}
