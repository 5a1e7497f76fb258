//! Paths in JSON: a string if they are UTF-8, else an array of their bytes, so that no name is lost.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serializer};

/// For `#[serde(with = "...")]`.
///
/// # Errors
/// The serializer's.
pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => to.serialize_str(text),
        None => to.collect_seq(path.as_os_str().as_bytes()),
    }
}

/// For `#[serde(with = "...")]`.
///
/// # Errors
/// The value is neither a string nor an array of bytes.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    Ok(match Form::deserialize(from)? {
        Form::Text(text) => PathBuf::from(text),
        Form::Bytes(bytes) => OsString::from_vec(bytes).into(),
    })
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Form {
    Text(String),
    Bytes(Vec<u8>),
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    proptest::proptest! {
        #[test]
        fn any_name_comes_back(bytes in proptest::collection::vec(1u8.., 0..20)) {
            let path = PathBuf::from(OsStr::from_bytes(&bytes));
            let json = serialize(&path, serde_json::value::Serializer).unwrap();
            proptest::prop_assert_eq!(deserialize(json).unwrap(), path);
        }
    }
}
