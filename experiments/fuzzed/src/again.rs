//! Checks that a written value is read back unchanged.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Writes and reads one line of JSON. Fractions may differ in their last digit: serde_json rounds them.
pub fn comes_back<T: Serialize + DeserializeOwned>(value: &T) {
    let text = serde_json::to_string(value).expect("numbers and names");
    assert!(!text.contains('\n'), "one line");
    let again: T = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text:.300}"));
    let (first, second) = (json(value), json(&again));
    assert!(is_alike(&first, &second), "{first:.300}\nbecame\n{second:.300}");
}

fn json<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).expect("numbers and names")
}

fn is_alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) if x.is_f64() || y.is_f64() => {
            let (x, y) = (x.as_f64().unwrap_or(0.0), y.as_f64().unwrap_or(1.0));
            (x - y).abs() <= x.abs().max(y.abs()) * 1e-12
        }
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(a, b)| is_alike(a, b))
        }
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|((k, a), (l, b))| k == l && is_alike(a, b))
        }
        _ => a == b,
    }
}
