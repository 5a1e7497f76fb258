//! What is asked of the browser, and what it says by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use super::launch::Launched;
use super::wire::{self, Inbox, Message};

/// How often it is looked whether to stop.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The browser itself ended.
    #[error("the browser ended{}", .0.map(|s| format!(" by signal {s}")).unwrap_or_default())]
    Gone(Option<i32>),
    /// A tab's process ended; with what, if the browser says so.
    #[error("the process of target {target} ended")]
    Crashed {
        /// Which, by the browser's name for it.
        target: String,
        /// The signal.
        signal: Option<i32>,
    },
    /// It did not answer in time.
    #[error("the browser did not answer in time")]
    TooSlow,
    /// This process was asked to end.
    #[error("interrupted")]
    Stopped,
    /// It does not do what it was asked.
    #[error("the browser refuses {method}: {why}")]
    Refused {
        /// What it was asked.
        method: String,
        /// What it said.
        why: String,
    },
}

/// A browser to talk to.
#[derive(Debug)]
pub struct Browser<'a> {
    /// The process.
    pub child: Child,
    to: File,
    from: File,
    inbox: Inbox,
    last: u64,
    replies: BTreeMap<u64, Result<Value, String>>,
    /// The targets and sessions of its tabs: a browser has other pages too, for parts of its window.
    ours: BTreeSet<String>,
    /// Sessions whose page is loaded.
    loaded: BTreeSet<String>,
    stop: &'a AtomicBool,
}

/// A tab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tab {
    /// The browser's name for it.
    pub target: String,
    /// The session in which it is talked to.
    pub session: String,
}

impl<'a> Browser<'a> {
    /// Talks to what was started; ends early once `stop` is set.
    pub fn new(launched: Launched, stop: &'a AtomicBool) -> Self {
        let Launched { child, to, from } = launched;
        Self {
            child,
            to,
            from,
            inbox: Inbox::default(),
            last: 0,
            replies: BTreeMap::new(),
            ours: BTreeSet::new(),
            loaded: BTreeSet::new(),
            stop,
        }
    }

    /// Waits until it answers at all, and asks it to tell of tabs that crash.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn ready(&mut self, until: Instant) -> Result<(), Broken> {
        self.call(None, "Target.setDiscoverTargets", &json!({ "discover": true }), until).map(drop)
    }

    /// An empty tab in front.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn new_tab(&mut self, until: Instant) -> Result<Tab, Broken> {
        let made = self.call(None, "Target.createTarget", &json!({ "url": "about:blank" }), until)?;
        self.attach(word(&made, "targetId"), until)
    }

    fn attach(&mut self, target: String, until: Instant) -> Result<Tab, Broken> {
        let wish = json!({ "targetId": target, "flatten": true });
        let attached = self.call(None, "Target.attachToTarget", &wish, until)?;
        let tab = Tab { target, session: word(&attached, "sessionId") };
        self.ours.extend([tab.target.clone(), tab.session.clone()]);
        self.call(Some(&tab), "Page.enable", &json!({}), until)?;
        Ok(tab)
    }

    /// Goes to an address and waits until the page and all that belongs to it are loaded.
    ///
    /// # Errors
    /// See [`Broken`]; `Refused` also where the address gives no page.
    pub fn go_to(&mut self, tab: &Tab, address: &str, until: Instant) -> Result<(), Broken> {
        self.loaded.remove(&tab.session);
        let gone = self.call(Some(tab), "Page.navigate", &json!({ "url": address }), until)?;
        if let Some(why) = gone["errorText"].as_str() {
            return Err(Broken::Refused { method: format!("page {address}"), why: why.to_owned() });
        }
        while !self.loaded.contains(&tab.session) {
            self.pump(until)?;
        }
        Ok(())
    }

    /// Brings a tab to the front.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn activate(&mut self, tab: &Tab, until: Instant) -> Result<(), Broken> {
        self.call(None, "Target.activateTarget", &json!({ "targetId": tab.target }), until).map(drop)
    }

    /// The value of an expression in a tab's page, once it is settled.
    ///
    /// # Errors
    /// See [`Broken`]; `Refused` also for an exception.
    pub fn value(&mut self, tab: &Tab, expression: &str, until: Instant) -> Result<Value, Broken> {
        let wish = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut answer = self.call(Some(tab), "Runtime.evaluate", &wish, until)?;
        if let Some(exception) = answer.get("exceptionDetails") {
            let why = exception["exception"]["description"].as_str().or(exception["text"].as_str());
            let why = why.unwrap_or("an exception").to_owned();
            return Err(Broken::Refused { method: expression.to_owned(), why });
        }
        Ok(answer["result"].get_mut("value").map(Value::take).unwrap_or_default())
    }

    /// What a tab in front shows, drawn anew, as a hash: the browser gives the picture of a whole frame.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn picture(&mut self, tab: &Tab, until: Instant) -> Result<u64, Broken> {
        let wish = json!({ "format": "jpeg", "quality": 40, "optimizeForSpeed": true });
        let answer = self.call(Some(tab), "Page.captureScreenshot", &wish, until)?;
        Ok(hash(answer["data"].as_str().unwrap_or_default()))
    }

    fn call(
        &mut self,
        tab: Option<&Tab>,
        method: &str,
        params: &Value,
        until: Instant,
    ) -> Result<Value, Broken> {
        self.last += 1;
        let id = self.last;
        let request = wire::encode(id, tab.map(|t| t.session.as_str()), method, params);
        if self.to.write_all(&request).is_err() {
            return Err(self.gone());
        }
        loop {
            if let Some(result) = self.replies.remove(&id) {
                return result.map_err(|why| Broken::Refused { method: method.to_owned(), why });
            }
            self.pump(until)?;
        }
    }

    /// Takes in what has come, or waits a tick for it.
    fn pump(&mut self, until: Instant) -> Result<(), Broken> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Broken::Stopped);
        }
        let ready = poll(&mut [PollFd::new(&self.from, PollFlags::IN)], Some(&TICK)).unwrap_or(0);
        if ready == 0 {
            // A helper of the browser's may hold its end of the pipe.
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(Broken::Gone(status.signal()));
            }
            return if Instant::now() > until { Err(Broken::TooSlow) } else { Ok(()) };
        }
        let mut bytes = [0; 65536];
        match self.from.read(&mut bytes) {
            Ok(0) | Err(_) => return Err(self.gone()),
            Ok(n) => self.inbox.take_in(&bytes[..n]),
        }
        while let Some(message) = self.inbox.next_message() {
            self.note(message)?;
        }
        Ok(())
    }

    fn note(&mut self, message: Message) -> Result<(), Broken> {
        match message {
            Message::Reply { id, result } => {
                self.replies.insert(id, result);
            }
            Message::Event { method, session: Some(session), .. } if method == "Page.loadEventFired" => {
                self.loaded.insert(session);
            }
            Message::Event { method, params, .. } => {
                let lost = wire::lost(&method, &params);
                let tab = lost.filter(|(name, _)| self.ours.contains(name));
                if let Some((target, signal)) = tab {
                    return Err(Broken::Crashed { target, signal });
                }
            }
            Message::Foreign => {}
        }
        Ok(())
    }

    /// The pipe is closed: the process has ended or does so now.
    fn gone(&mut self) -> Broken {
        for _ in 0..50 {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Broken::Gone(status.signal());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Broken::Gone(None)
    }
}

fn word(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// FNV-1a, 64 bits.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}
