//! What a refusal by the engine says of the connection. Pure.

/// Codes of refusals that pass by themselves, on the same connection: slots that move or have moved.
const PASS: [&str; 3] = ["TRYAGAIN", "MOVED", "ASK"];

/// The same of members that answer nothing now: a part of a cluster without most masters, a replica without its master, an engine that loads its file.
const AWAY: [&str; 3] = ["CLUSTERDOWN", "MASTERDOWN", "LOADING"];

/// Codes of an engine that stores no block at all until somebody changes it: its memory is full, or its user may not write.
const STORES_NOTHING: [&str; 2] = ["OOM", "NOPERM"];

/// Words of errors of the library, of TLS and of engines that refuse this machine's password or certificate, or of an engine's certificate that is refused
/// here.
const CREDENTIALS: [&str; 9] = [
    "certificate",
    "authentication failed",
    "noauth",
    "wrongpass",
    "unknownca",
    "decrypterror",
    // A certificate and its key, of which one was replaced before the other.
    "keys may not be consistent",
    "private key",
    "trust anchor",
];

/// True if other files of passwords and certificates may help.
pub fn is_of_credentials(error: &str) -> bool {
    let error = error.to_ascii_lowercase();
    CREDENTIALS.iter().any(|word| error.contains(word))
}

/// True if only another connection may help. No code: the answer was no refusal, or a strange one.
pub fn breaks(code: Option<&str>) -> bool {
    code.is_none_or(|code| !PASS.contains(&code) && !AWAY.contains(&code))
}

/// True if another member of a cluster may answer instead. No code: no answer came, or a strange one.
pub fn is_away(code: Option<&str>) -> bool {
    code.is_none_or(|code| AWAY.contains(&code))
}

/// True if the next blocks would be refused, too.
pub fn stores_nothing(code: Option<&str>) -> bool {
    code.is_some_and(|code| STORES_NOTHING.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_passes_by_itself_keeps_the_connection() {
        for code in ["NOAUTH", "WRONGPASS", "NOPERM", "ERR", "READONLY", "SOMETHING"] {
            assert!(breaks(Some(code)), "{code}");
        }
        assert!(breaks(None) && !PASS.iter().chain(&AWAY).any(|code| breaks(Some(code))));
    }

    #[test]
    fn another_member_is_asked_only_instead_of_one_that_answers_nothing() {
        assert!([None, Some("LOADING"), Some("MASTERDOWN"), Some("CLUSTERDOWN")].into_iter().all(is_away));
        let here = ["MOVED", "ASK", "TRYAGAIN", "READONLY", "OOM", "NOPERM", "ERR"];
        assert!(!here.into_iter().any(|code| is_away(Some(code))));
    }

    #[test]
    fn errors_of_credentials_are_known() {
        for error in [
            "Password authentication failed - AuthenticationFailed",
            "invalid peer certificate: UnknownIssuer",
            "received fatal alert: CertificateExpired",
            "\"NOAUTH\": Authentication required.",
            "received fatal alert: UnknownCA",
            "keys may not be consistent: KeyMismatch",
            "Unable to extract private key from PEM",
        ] {
            assert!(is_of_credentials(error), "{error}");
        }
        assert!(!is_of_credentials("Connection refused (os error 111)"));
    }

    #[test]
    fn a_refusal_that_passes_stops_no_offers() {
        assert!(stores_nothing(Some("OOM")) && stores_nothing(Some("NOPERM")));
        assert!(
            !stores_nothing(None) && !["TRYAGAIN", "READONLY"].iter().any(|code| stores_nothing(Some(code)))
        );
    }
}
