//! Requests to the browser, and its events.

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

/// The longest wait before the stop flag is read again.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum BrowserError {
    /// The browser itself ended, with this signal if any.
    #[error("the browser ended{}", .0.map(|s| format!(" by signal {s}")).unwrap_or_default())]
    Gone(Option<i32>),
    /// A tab's process ended.
    #[error("the process of target {target} ended")]
    Crashed {
        /// The browser's id of the tab.
        target: String,
        /// The signal, if the browser reports it.
        signal: Option<i32>,
    },
    /// The browser did not answer in time.
    #[error("the browser did not answer in time")]
    TooSlow,
    /// This process must end.
    #[error("interrupted")]
    Stopped,
    /// The browser refuses the request.
    #[error("the browser refuses {method}: {why}")]
    Refused {
        /// The request.
        method: String,
        /// The browser's reason.
        why: String,
    },
}

/// A connection to a running browser.
#[derive(Debug)]
pub struct Browser<'a> {
    /// The browser's process.
    pub child: Child,
    to: File,
    from: File,
    inbox: Inbox,
    last: u64,
    replies: BTreeMap<u64, Result<Value, String>>,
    /// The targets and sessions of opened tabs: a browser has other pages too, for parts of its window.
    tab_ids: BTreeSet<String>,
    /// Sessions whose page is loaded.
    loaded: BTreeSet<String>,
    stop: &'a AtomicBool,
}

/// A tab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tab {
    /// The browser's id of the tab.
    pub target: String,
    /// The protocol session attached to it.
    pub session: String,
}

impl<'a> Browser<'a> {
    /// Connects to a started browser. Requests fail once `stop` is set.
    pub fn new(launched: Launched, stop: &'a AtomicBool) -> Self {
        let Launched { child, to, from } = launched;
        Self {
            child,
            to,
            from,
            inbox: Inbox::default(),
            last: 0,
            replies: BTreeMap::new(),
            tab_ids: BTreeSet::new(),
            loaded: BTreeSet::new(),
            stop,
        }
    }

    /// Waits until the browser answers, and subscribes to crashes of tabs.
    ///
    /// # Errors
    /// See [`BrowserError`].
    pub fn ready(&mut self, until: Instant) -> Result<(), BrowserError> {
        self.call(None, "Target.setDiscoverTargets", &json!({ "discover": true }), until).map(drop)
    }

    /// Opens an empty tab in front.
    ///
    /// # Errors
    /// See [`BrowserError`].
    pub fn new_tab(&mut self, until: Instant) -> Result<Tab, BrowserError> {
        let made = self.call(None, "Target.createTarget", &json!({ "url": "about:blank" }), until)?;
        self.attach(word(&made, "targetId"), until)
    }

    fn attach(&mut self, target: String, until: Instant) -> Result<Tab, BrowserError> {
        let params = json!({ "targetId": target, "flatten": true });
        let attached = self.call(None, "Target.attachToTarget", &params, until)?;
        let tab = Tab { target, session: word(&attached, "sessionId") };
        self.tab_ids.extend([tab.target.clone(), tab.session.clone()]);
        self.call(Some(&tab), "Page.enable", &json!({}), until)?;
        Ok(tab)
    }

    /// Navigates to an address and waits until the page and all its resources are loaded.
    ///
    /// # Errors
    /// See [`BrowserError`]; `Refused` also where the address has no page.
    pub fn go_to(&mut self, tab: &Tab, address: &str, until: Instant) -> Result<(), BrowserError> {
        self.loaded.remove(&tab.session);
        let answer = self.call(Some(tab), "Page.navigate", &json!({ "url": address }), until)?;
        if let Some(why) = answer["errorText"].as_str() {
            return Err(BrowserError::Refused { method: format!("page {address}"), why: why.to_owned() });
        }
        while !self.loaded.contains(&tab.session) {
            self.pump(until)?;
        }
        Ok(())
    }

    /// Brings a tab to the front.
    ///
    /// # Errors
    /// See [`BrowserError`].
    pub fn activate(&mut self, tab: &Tab, until: Instant) -> Result<(), BrowserError> {
        self.call(None, "Target.activateTarget", &json!({ "targetId": tab.target }), until).map(drop)
    }

    /// Evaluates an expression in a tab's page. Awaits a promise.
    ///
    /// # Errors
    /// See [`BrowserError`]; `Refused` also for an exception.
    pub fn value(&mut self, tab: &Tab, expression: &str, until: Instant) -> Result<Value, BrowserError> {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut answer = self.call(Some(tab), "Runtime.evaluate", &params, until)?;
        if let Some(exception) = answer.get("exceptionDetails") {
            let why = exception["exception"]["description"].as_str().or(exception["text"].as_str());
            let why = why.unwrap_or("an exception").to_owned();
            return Err(BrowserError::Refused { method: expression.to_owned(), why });
        }
        Ok(answer["result"].get_mut("value").map(Value::take).unwrap_or_default())
    }

    /// Redraws a tab in front and returns the hash of the whole frame.
    ///
    /// # Errors
    /// See [`BrowserError`].
    pub fn screenshot(&mut self, tab: &Tab, until: Instant) -> Result<u64, BrowserError> {
        let params = json!({ "format": "jpeg", "quality": 40, "optimizeForSpeed": true });
        let answer = self.call(Some(tab), "Page.captureScreenshot", &params, until)?;
        Ok(hash(answer["data"].as_str().unwrap_or_default()))
    }

    fn call(
        &mut self,
        tab: Option<&Tab>,
        method: &str,
        params: &Value,
        until: Instant,
    ) -> Result<Value, BrowserError> {
        self.last += 1;
        let id = self.last;
        let request = wire::encode(id, tab.map(|t| t.session.as_str()), method, params);
        if self.to.write_all(&request).is_err() {
            return Err(self.gone());
        }
        loop {
            if let Some(result) = self.replies.remove(&id) {
                return result.map_err(|why| BrowserError::Refused { method: method.to_owned(), why });
            }
            self.pump(until)?;
        }
    }

    /// Processes the messages that have arrived, or waits for them at most a tick.
    fn pump(&mut self, until: Instant) -> Result<(), BrowserError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(BrowserError::Stopped);
        }
        let ready = poll(&mut [PollFd::new(&self.from, PollFlags::IN)], Some(&TICK)).unwrap_or(0);
        if ready == 0 {
            // A child of the browser may keep the pipe open after the browser ended.
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(BrowserError::Gone(status.signal()));
            }
            return if Instant::now() > until { Err(BrowserError::TooSlow) } else { Ok(()) };
        }
        let mut bytes = [0; 65536];
        match self.from.read(&mut bytes) {
            Ok(0) | Err(_) => return Err(self.gone()),
            Ok(n) => self.inbox.push(&bytes[..n]),
        }
        while let Some(message) = self.inbox.next_message() {
            self.process(message)?;
        }
        Ok(())
    }

    fn process(&mut self, message: Message) -> Result<(), BrowserError> {
        match message {
            Message::Reply { id, result } => {
                self.replies.insert(id, result);
            }
            Message::Event { method, session: Some(session), .. } if method == "Page.loadEventFired" => {
                self.loaded.insert(session);
            }
            Message::Event { method, params, .. } => {
                let lost = wire::lost(&method, &params);
                let tab = lost.filter(|(id, _)| self.tab_ids.contains(id));
                if let Some((target, signal)) = tab {
                    return Err(BrowserError::Crashed { target, signal });
                }
            }
            Message::Foreign => {}
        }
        Ok(())
    }

    /// The error after the pipe closed: the process has ended, or ends soon.
    fn gone(&mut self) -> BrowserError {
        for _ in 0..50 {
            if let Ok(Some(status)) = self.child.try_wait() {
                return BrowserError::Gone(status.signal());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        BrowserError::Gone(None)
    }
}

fn word(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// FNV-1a, 64 bits.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}
