//! What the supervisor tells the process, as JSON on its standard input.

use eke_cache_mounts::engine_url::EngineUrl;
use serde::{Deserialize, Serialize};

/// See the module.
#[derive(Clone, Serialize, Deserialize)]
pub struct EngineConfig {
    /// Where the engine is.
    pub url: EngineUrl,
    /// Its password.
    pub password: Option<String>,
    /// Certificates of authorities (PEM), instead of this machine's.
    pub ca: Option<String>,
}

impl std::fmt::Debug for EngineConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineConfig").field("url", &self.url).finish_non_exhaustive()
    }
}
