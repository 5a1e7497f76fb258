//! A connection that is made anew after it broke. One to a cluster does not break: another one takes its place when it is ready.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Instant;

use redis::{Cmd, RedisResult, Value};

use crate::cluster::Cluster;
use crate::connect::{Connection, Connector, Request};
use crate::lost::To;
use crate::pause::Pause;
use crate::renewal::Renewal;

/// See the module.
#[derive(Debug)]
pub struct Line {
    connector: Arc<Connector>,
    to: To,
    connection: Option<Connection>,
    pause: Pause,
    renewal: Renewal<RedisResult<Connection>>,
}

impl Line {
    /// Not connected yet.
    pub fn new(connector: &Arc<Connector>, to: To) -> Self {
        let (connector, pause) = (Arc::clone(connector), Pause::default());
        Self { connector, to, connection: None, pause, renewal: Renewal::default() }
    }

    /// Connects, unless it is connected or that was tried just now. `None`: nothing was tried. A stale connection to a cluster stays until another one is ready.
    pub fn connect(&mut self) -> Option<RedisResult<()>> {
        if self.connection.is_some() {
            return self.renew();
        }
        let now = Instant::now();
        if !self.pause.is_over(now) {
            return None;
        }
        self.pause.begin(now, chance());
        Some(self.connector.connect(self.to).map(|connection| self.connection = Some(connection)))
    }

    fn renew(&mut self) -> Option<RedisResult<()>> {
        let outcome = self.renewal.take();
        match outcome? {
            Ok(connection) => {
                self.connection = Some(connection);
                Some(Ok(()))
            }
            Err(e) => {
                // An engine keeps connections whose password has changed.
                if self.cluster().is_some_and(|cluster| cluster.is_dead()) {
                    self.drop_connection();
                }
                Some(Err(e))
            }
        }
    }

    /// Has another connection made beside this one if this one is stale, or in any case.
    pub fn prepare(&mut self, in_any_case: bool) {
        if self.cluster().is_some_and(|cluster| in_any_case || cluster.is_stale()) {
            let (connector, to) = (Arc::clone(&self.connector), self.to);
            self.renewal.begin(Instant::now(), chance(), move || connector.connect(to));
        }
    }

    fn cluster(&mut self) -> Option<&mut Cluster> {
        self.connection.as_mut()?.cluster()
    }

    /// Whether it has a connection.
    pub fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Whether it has a member of a cluster that can be asked for a slot, also after an answer that did not come.
    pub fn has_route(&mut self, slot: u16) -> bool {
        self.cluster().is_some_and(|cluster| cluster.has_route(slot))
    }

    /// What of a cluster is lost, as a sentence.
    pub fn loss(&mut self) -> Option<&str> {
        self.cluster()?.loss()
    }

    /// Sends these requests and passes each answer on: see [`Connection::query`]. `None`: there is no connection.
    pub fn query(
        &mut self,
        requests: &[Request],
        mut answer: impl FnMut(RedisResult<Value>),
    ) -> Option<RedisResult<()>> {
        let connection = self.connection.as_mut()?;
        let pause = &mut self.pause;
        let outcome = connection.query(requests, |given| {
            if given.is_ok() {
                pause.answered();
            }
            answer(given);
        });
        if outcome.is_err() && !connection.survives() {
            self.drop_connection();
        }
        Some(outcome)
    }

    /// The answers of all masters that live to a command. `None`: there is no connection.
    pub fn query_masters(&mut self, command: &Cmd) -> Option<RedisResult<Vec<Value>>> {
        let connection = self.connection.as_mut()?;
        let answers = connection.query_masters(command);
        if answers.is_ok() {
            self.pause.answered();
        } else if !connection.survives() {
            self.drop_connection();
        }
        Some(answers)
    }

    /// The next attempt makes another one.
    pub fn drop_connection(&mut self) {
        self.connection = None;
        self.renewal.forget();
    }
}

/// A number from 0 to 1: the standard library seeds its hash tables at random.
fn chance() -> f64 {
    RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64
}
