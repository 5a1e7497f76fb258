//! Build settings of releases that safety depends on.

use toml::Value;

#[test]
fn a_release_checks_integer_overflow_in_all_that_is_ours() {
    let manifest: Value = toml::from_str(include_str!("../../../Cargo.toml")).unwrap();
    let release = &manifest["profile"]["release"];
    assert_eq!(release["overflow-checks"].as_bool(), Some(true));
    assert_eq!(release["panic"].as_str(), Some("abort"), "a process that is wrong ends");
    let exempt: Vec<&str> = release["package"]
        .as_table()
        .unwrap()
        .iter()
        .filter(|(_, how)| how.get("overflow-checks").is_some())
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(exempt, ["fuser", "lz4_flex", "twox-hash", "zlib-rs"]);
}
