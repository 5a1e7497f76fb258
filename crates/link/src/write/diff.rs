//! The change of a file, for people.

/// The output of `diff -u`; empty if both are equal.
pub fn diff(path: &str, before: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    let old = if before.is_empty() { "/dev/null" } else { path };
    similar::TextDiff::from_lines(before, after)
        .unified_diff()
        .context_radius(3)
        .header(old, path)
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::diff;

    #[test]
    fn the_format_is_that_of_diff() {
        assert_eq!(diff("f", "a\n", "a\n"), "");
        assert_eq!(diff("f", "a\nb\n", "a\nc\n"), "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
        assert!(diff("f", "", "c\n").starts_with("--- /dev/null\n+++ f\n"));
    }
}
