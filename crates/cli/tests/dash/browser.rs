//! A headless Chromium, controlled by its protocol; its console is checked.

use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use eke_bench_desktop::tabs::Spec;
use eke_bench_desktop::tabs::launch::{self, Launched};
use eke_bench_desktop::tabs::wire::{self, Inbox, Message};
use eke_testkit::wait::wait_for;
use serde_json::{Value, json};

use crate::common::CHROMIUM;

pub struct Browser {
    launched: Launched,
    received: Receiver<Vec<u8>>,
    inbox: Inbox,
    last: u64,
    session: Option<String>,
    console: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Browser {
    pub fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        let launched = launch::start(&Spec::new(CHROMIUM.into(), 1), profile.path()).unwrap();
        let (send, received) = channel();
        let mut from = launched.from.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut bytes = [0; 65_536];
            while let Ok(n @ 1..) = from.read(&mut bytes) {
                if send.send(bytes[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        let mut browser = Self {
            launched,
            received,
            inbox: Inbox::default(),
            last: 0,
            session: None,
            console: Vec::new(),
            _profile: profile,
        };
        let made = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = json!({ "targetId": made["targetId"], "flatten": true });
        browser.session =
            Some(browser.call("Target.attachToTarget", target)["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    pub fn go_to(&mut self, address: &str) {
        let gone = self.call("Page.navigate", json!({ "url": address }));
        assert!(gone["errorText"].is_null(), "{address}: {gone}");
    }

    /// Sets size, touch and light or dark.
    pub fn screen(&mut self, (width, height): (u32, u32), dark: bool) {
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = json!({ "name": "prefers-color-scheme", "value": if dark { "dark" } else { "light" } });
        self.call("Emulation.setEmulatedMedia", json!({ "features": [scheme] }));
    }

    pub fn value(&mut self, expression: &str) -> Value {
        let request = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", request);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// The text of an element, with single spaces.
    pub fn text(&mut self, selector: &str) -> String {
        let value = self.value(&format!("document.querySelector({selector:?})?.innerText ?? ''"));
        value.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Waits until the text of an element satisfies `wanted`; returns the text.
    pub fn until(&mut self, selector: &str, what: &str, holds: impl Fn(&str) -> bool) -> String {
        wait_for(&format!("{selector} to be {what}"), || {
            let text = self.text(selector);
            if holds(&text) { Ok(text) } else { Err(format!("{text}; console: {:?}", self.console)) }
        })
    }

    /// Waits until an expression is this number.
    pub fn until_value(&mut self, expression: &str, number: u64) {
        wait_for(&format!("{expression} to be {number}"), || self.value(expression).as_u64() == Some(number));
    }

    pub fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", json!({ "type": kind, "key": key, "code": key }));
        }
    }

    /// The errors and warnings of the page's console.
    pub fn complaints(&mut self) -> Vec<String> {
        self.value("1");
        std::mem::take(&mut self.console)
    }

    /// The whole page as base64 of a PNG.
    pub fn picture(&mut self) -> String {
        let answer =
            self.call("Page.captureScreenshot", json!({ "format": "png", "captureBeyondViewport": true }));
        answer["data"].as_str().unwrap().to_owned()
    }

    /// The visible part of the page as base64 of a PNG.
    pub fn first_screen(&mut self) -> String {
        let answer = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        answer["data"].as_str().unwrap().to_owned()
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let request = wire::encode(self.last, self.session.as_deref(), method, &params);
        self.launched.to.write_all(&request).unwrap();
        loop {
            while let Some(message) = self.inbox.next_message() {
                match message {
                    Message::Reply { id, result } if id == self.last => {
                        return result.unwrap_or_else(|why| panic!("{method}: {why}"));
                    }
                    Message::Event { method, params, .. } => self.heed(&method, &params),
                    _ => {}
                }
            }
            let bytes = self.received.recv_timeout(Duration::from_secs(60));
            self.inbox.push(&bytes.unwrap_or_else(|e| panic!("{method}: no answer: {e}")));
        }
    }

    fn heed(&mut self, method: &str, params: &Value) {
        let is_bad =
            |level: &Value| ["error", "warning", "assert"].contains(&level.as_str().unwrap_or_default());
        let complaint = match method {
            "Runtime.exceptionThrown" => Some(&params["exceptionDetails"]),
            "Runtime.consoleAPICalled" if is_bad(&params["type"]) => Some(&params["args"]),
            "Log.entryAdded" if is_bad(&params["entry"]["level"]) => Some(&params["entry"]),
            _ => None,
        };
        self.console.extend(complaint.map(Value::to_string));
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.launched.child.kill();
        let _ = self.launched.child.wait();
    }
}
