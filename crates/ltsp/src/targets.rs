//! A file for Prometheus' file-based discovery (`file_sd_configs` in its configuration reference): a JSON list of targets with labels.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::clients::Client;

/// One client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Target {
    /// `ADDRESS:PORT`, one for each client.
    pub targets: Vec<String>,
    /// `client`: its name; `mac`: its hardware address.
    pub labels: BTreeMap<&'static str, String>,
}

/// The clients that serve their metrics and whose address is known.
pub fn targets(clients: &[Client]) -> Vec<Target> {
    clients.iter().filter_map(target).collect()
}

fn target(client: &Client) -> Option<Target> {
    let mut labels = BTreeMap::from([("client", client.name.clone())]);
    labels.extend(client.mac.clone().map(|mac| ("mac", mac)));
    Some(Target { targets: vec![client.address()?.to_string()], labels })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clients_that_can_be_asked_are_targets() {
        let client = |name: &str, port| Client {
            name: name.into(),
            mac: Some("52:54:00:aa:bb:01".into()),
            ip: "192.168.67.21".parse().ok(),
            is_on: true,
            port,
            link: None,
            is_guess: false,
        };
        let json = serde_json::to_string(&targets(&[client("a", Some(7118)), client("b", None)])).unwrap();
        let expected =
            r#"[{"targets":["192.168.67.21:7118"],"labels":{"client":"a","mac":"52:54:00:aa:bb:01"}}]"#;
        assert_eq!(json, expected);
    }
}
