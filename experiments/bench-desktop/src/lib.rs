//! What a person at a small machine does, done by a program.
//!
//! # Layout
//! - [`session`]: a session as data and events
//! - [`desktop`]: the driver for windows: a real X server, window manager and viewers
//! - [`tabs`]: the driver for browser tabs: Chromium and a local web server
//! - [`documents`]: the PDF files that sessions show

pub mod desktop;
pub mod documents;
pub mod session;
pub mod tabs;
