//! Several sessions at once, all from the far end: the rate of a link that one session does not fill, and of a server for many clients.

use std::time::Instant;

use serde::Serialize;

use super::at_once::at_once;
use super::channel::Channel;
use super::{Measurement, open};
use crate::error::Result;
use crate::plan::session_bytes;
use crate::suite::Suite;

/// The rate of several sessions together.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sessions {
    /// The number of sessions; fewer than requested if some failed to connect.
    pub count: usize,
    /// The cipher.
    pub suite: Suite,
    /// MB/s of all of them together.
    pub mb_per_s: f64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// The busy share of all CPUs of the far end, 0 to 1.
    pub there_busy: Option<f64>,
}

/// See the module.
pub(super) struct Several<'a> {
    pub run: &'a Measurement<'a>,
    pub suite: &'a Suite,
    pub count: usize,
    /// MB/s of one.
    pub rate: f64,
    pub began: Instant,
}

impl Several<'_> {
    /// `first` is an open connection. Others that fail to connect are left out.
    ///
    /// # Errors
    /// A channel failed while bytes flowed.
    pub fn measure(&self, first: Channel<'_>) -> Result<Sessions> {
        let mut channels = vec![first];
        channels.extend(self.open_more()?);
        let end = self.began + self.run.options.budget.most_time();
        channels.iter_mut().for_each(|channel| channel.end_by(end));
        let left = self.run.options.budget.time.saturating_sub(self.began.elapsed());
        let each = session_bytes(self.rate * 1e6, channels.len(), left, &self.run.options.budget);
        // connections start slowly: the first half does not count
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

    /// Connects in parallel if no password is typed, but only a few at a time: servers drop many connections at once (`MaxStartups 10:30:100`
    /// in sshd_config(5)).
    fn open_more(&self) -> Result<Vec<Channel<'_>>> {
        const AT_ONCE: usize = 5;
        let Measurement { ssh, options, may_ask, shutdown, .. } = *self.run;
        let suite = self.suite;
        let one = || open(ssh, &options.host, Some(suite), &["-T"], may_ask, shutdown);
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
