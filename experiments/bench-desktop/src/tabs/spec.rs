//! The description of a run with tabs. Its text form is JSON.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A run that opens tabs one after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Chromium, or a program with the same options and protocol.
    pub program: PathBuf,
    /// The port of the [`super::Server`] on 127.0.0.1.
    pub port: u16,
    /// The most tabs; the run ends when so many are usable.
    pub tabs: usize,
    /// The window's width and height in pixels.
    pub window: (u16, u16),
    /// How many screens to scroll through in each new tab, spread over its document.
    pub screens: u32,
    /// How many of the earlier tabs to visit after each new one, those unvisited longest first; all if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visits: Option<usize>,
    /// The longest time for an act to be drawn, in seconds; after it the run ends.
    pub patience_s: f64,
    /// Whether to ask the kernel to merge equal pages of the browser (`PR_SET_MEMORY_MERGE`, Linux 6.4).
    pub merge_same_pages: bool,
}

impl Spec {
    /// The default run with the browser at `program` and the server at `port`.
    pub fn new(program: PathBuf, port: u16) -> Self {
        Self {
            program,
            port,
            tabs: 24,
            window: (1024, 768),
            screens: 6,
            visits: None,
            patience_s: 10.0,
            merge_same_pages: false,
        }
    }

    /// The address of a tab's page. Each tab is its own site: browsers resolve every name below `localhost` to this machine
    /// (RFC 6761), and Chromium gives each site a process.
    pub fn address(&self, tab: usize) -> String {
        format!("http://tab-{tab}.localhost:{}/{tab}/", self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_comes_back_from_its_text_and_a_wrong_key_is_refused() {
        let spec = Spec::new("/usr/bin/chromium".into(), 8123);
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<Spec>(&text).unwrap(), spec);
        assert!(serde_json::from_str::<Spec>(&text.replace("screens", "screans")).is_err());
        assert_eq!(spec.address(3), "http://tab-3.localhost:8123/3/");
    }
}
