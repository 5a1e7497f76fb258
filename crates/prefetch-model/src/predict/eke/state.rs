//! The predictor's state as bytes.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Eke;

/// The version of the format. Other versions are rejected: relearning is simpler than conversion.
const VERSION: u32 = 2;

/// The most bytes accepted: a full state of 2000 programs has about a tenth.
const MOST_BYTES: usize = 64 << 20;

/// Why bytes are not a state.
#[derive(Debug, Error)]
pub enum StateError {
    /// Too many bytes.
    #[error("the predictor's state has {0} bytes, more than it ever writes ({MOST_BYTES})")]
    TooLarge(usize),
    /// Not the JSON of a state.
    #[error("the predictor's state cannot be read: {0}")]
    Form(#[from] serde_json::Error),
    /// Another version.
    #[error("the predictor's state has form {0}; this eke reads and writes form {VERSION}")]
    Version(u32),
}

#[derive(Serialize)]
struct Written<'a> {
    version: u32,
    eke: &'a Eke,
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

#[derive(Deserialize)]
struct Read {
    eke: Eke,
}

/// Writes the state.
///
/// # Errors
/// serde_json cannot write it, which does not happen for this type.
pub fn to_state(eke: &Eke) -> Result<Vec<u8>, StateError> {
    Ok(serde_json::to_vec(&Written { version: VERSION, eke })?)
}

/// Reads a state and resets invalid numbers in it, because the bytes are untrusted.
///
/// # Errors
/// The bytes are not a state of this version.
pub fn from_state(bytes: &[u8]) -> Result<Eke, StateError> {
    if bytes.len() > MOST_BYTES {
        return Err(StateError::TooLarge(bytes.len()));
    }
    let Version { version } = serde_json::from_slice(bytes)?;
    if version != VERSION {
        return Err(StateError::Version(version));
    }
    let Read { mut eke } = serde_json::from_slice(bytes)?;
    eke.sanitize();
    Ok(eke)
}
