//! What eke's predictor knows, as bytes that outlive the process.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Eke;

/// The form's number. Another one is refused: what was learned is learned again sooner than it is translated.
const VERSION: u32 = 1;

/// The most bytes that are looked at: a full state of 2000 programs has about a tenth.
const MOST_BYTES: usize = 64 << 20;

/// Why bytes are no state.
#[derive(Debug, Error)]
pub enum StateError {
    /// Too many.
    #[error("the predictor's state has {0} bytes, more than it ever writes ({MOST_BYTES})")]
    TooLarge(usize),
    /// Not its form.
    #[error("the predictor's state cannot be read: {0}")]
    Form(#[from] serde_json::Error),
    /// Of another version.
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

/// The bytes.
///
/// # Errors
/// Only for what serde_json cannot write, which this has none of.
pub fn to_state(eke: &Eke) -> Result<Vec<u8>, StateError> {
    Ok(serde_json::to_vec(&Written { version: VERSION, eke })?)
}

/// What the bytes say. Numbers in it that can not be are put right, for the bytes may be anybody's.
///
/// # Errors
/// The bytes are no state of this version.
pub fn from_state(bytes: &[u8]) -> Result<Eke, StateError> {
    if bytes.len() > MOST_BYTES {
        return Err(StateError::TooLarge(bytes.len()));
    }
    let Version { version } = serde_json::from_slice(bytes)?;
    if version != VERSION {
        return Err(StateError::Version(version));
    }
    let Read { mut eke } = serde_json::from_slice(bytes)?;
    eke.mend();
    Ok(eke)
}
