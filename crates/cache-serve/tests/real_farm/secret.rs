//! TLS, ACL and sealed blocks, against a real engine.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use eke_testkit::real::{no_program, skip};
use eke_testkit::wait::wait_for;

use crate::common::mount::run;
use crate::engine::{Engine, cluster_with, ports};
use crate::node::{CONTENT, FILES, Origin, cannot_run, shared, wait_offered};
use crate::serves::connected;

fn secret(dir: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    path
}

/// A certificate for 127.0.0.1, signed by an authority of its own.
fn certificate(dir: &Path) {
    let at = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    fs::write(dir.join("ext"), "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n").unwrap();
    let new = ["req", "-newkey", "rsa:2048", "-nodes", "-subj"];
    run(
        "openssl",
        &[&new[..], &["/CN=ca", "-x509", "-days", "2", "-keyout", &at("ca.key"), "-out", &at("ca.pem")]]
            .concat(),
    );
    run("openssl", &[&new[..], &["/CN=engine", "-keyout", &at("key.pem"), "-out", &at("request")]].concat());
    let sign = ["x509", "-req", "-days", "2", "-CAcreateserial", "-in"];
    run(
        "openssl",
        &[
            &sign[..],
            &[
                &at("request"),
                "-CA",
                &at("ca.pem"),
                "-CAkey",
                &at("ca.key"),
                "-extfile",
                &at("ext"),
                "-out",
                &at("cert.pem"),
            ],
        ]
        .concat(),
    );
}

/// An engine with TLS alone, and a user that may do what eke needs.
fn tls_engine(dir: &Path, port: u16) -> Engine {
    certificate(dir);
    let port_text = port.to_string();
    let at = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    Engine::at(
        port,
        &["--port", "0", "--tls-port", &port_text],
        &[
            "--tls-cert-file",
            &at("cert.pem"),
            "--tls-key-file",
            &at("key.pem"),
            "--tls-ca-cert-file",
            &at("ca.pem"),
            "--tls-auth-clients",
            "no",
            "--user",
            "eke",
            "on",
            ">hidden",
            "~eke:*",
            "+mget",
            "+set",
            "+ping",
            "+info",
            "--user",
            "default",
            "off",
        ],
    )
}

/// Its process has the password and shows it nowhere, and has no rights.
fn nobody_sees_the_password(process: u32) {
    for what in ["cmdline", "environ"] {
        let text = fs::read(format!("/proc/{process}/{what}")).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains("hidden"), "{what}");
    }
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    assert!(
        status.contains("CapEff:\t0000000000000000") && status.contains("CapBnd:\t0000000000000000"),
        "{status}"
    );
    assert!(
        status.contains("Uid:\t65534\t65534\t65534\t65534") && status.contains("NoNewPrivs:\t1"),
        "{status}"
    );
}

#[test]
fn by_tls_with_a_user_that_may_do_little() {
    let name = "by_tls_with_a_user_that_may_do_little";
    if cannot_run(name) {
        return;
    }
    if let Some(why) = no_program(&["openssl"]) {
        return skip(name, &why);
    }
    let (origin, dir, [port]) = (Origin::new(), tempfile::tempdir().unwrap(), ports());
    let engine = tls_engine(dir.path(), port);
    let url = format!("rediss://eke@127.0.0.1:{}", engine.port);
    let (password, ca) = (secret(dir.path(), "password", b"hidden\n"), dir.path().join("ca.pem"));
    let node = |password: &Path| {
        origin.node(&url, |shared| {
            (shared.password, shared.ca) = (Some(password.to_owned()), Some(ca.clone()));
        })
    };
    let one = node(&password);
    wait_for("all connections", || shared(&one).connected == 6);
    CONTENT.check(&one, &[]);
    wait_offered(&one);
    let two = node(&password);
    wait_for("all connections", || shared(&two).connected == 6);
    CONTENT.check(&two, &[]);
    assert!(shared(&two).hits >= FILES * 4, "{:?}", shared(&two));
    nobody_sees_the_password(two.server.child_named("eke-cache-share").unwrap());
    // A wrong password, and an authority that did not sign, are no tier.
    let wrong = node(&secret(dir.path(), "wrong", b"guess"));
    wait_for("the reason", || shared(&wrong).why.is_some());
    let other = origin.node(&url, |shared| shared.password = Some(password.clone()));
    wait_for("the reason", || shared(&other).why.is_some());
    for mount in [&wrong, &other] {
        CONTENT.check(mount, &[]);
        assert_eq!((shared(mount).hits, shared(mount).connected), (0, 0));
    }
}

/// What docs/cache.md gives the user of a cluster is enough.
#[test]
fn in_a_cluster_with_a_user_that_may_do_little() {
    if cannot_run("in_a_cluster_with_a_user_that_may_do_little") {
        return;
    }
    let (origin, dir) = (Origin::new(), tempfile::tempdir().unwrap());
    let may = ["~eke:*", "+mget", "+set", "+ping", "+info", "+readonly", "+cluster|slots"];
    let nodes = cluster_with(&[&["--user", "eke", "on", ">hidden"][..], &may].concat());
    let url = format!("redis+cluster://eke@127.0.0.1:{}", nodes[0].port);
    let password = secret(dir.path(), "password", b"hidden\n");
    let node = || {
        let mount = origin.node(&url, |shared| shared.password = Some(password.clone()));
        wait_for("all connections", || shared(&mount).connected == 6);
        mount
    };
    let one = node();
    CONTENT.check(&one, &[]);
    wait_offered(&one);
    let two = node();
    CONTENT.check(&two, &[]);
    assert!(shared(&two).hits >= FILES * 4, "{:?}", shared(&two));
    wait_for("the engine's memory", || shared(&two).engine_memory.0 > 0);
}

#[test]
fn sealed_blocks_are_read_by_their_key_alone() {
    if cannot_run("sealed_blocks_are_read_by_their_key_alone") {
        return;
    }
    let (origin, engine, dir) = (Origin::new(), Engine::start(&[]), tempfile::tempdir().unwrap());
    let url = format!("redis://127.0.0.1:{}", engine.port);
    let keys = [secret(dir.path(), "a", &[1; 32]), secret(dir.path(), "b", &[2; 32])];
    let node = |key: &PathBuf| {
        let mount = origin.node(&url, |shared| shared.key = Some(key.clone()));
        wait_for("all connections", || shared(&mount).connected == 6);
        mount
    };
    let one = node(&keys[0]);
    CONTENT.check(&one, &[]);
    wait_offered(&one);
    let (two, other) = (node(&keys[0]), node(&keys[1]));
    CONTENT.check(&two, &[]);
    CONTENT.check(&other, &[]);
    assert!(shared(&two).hits >= FILES * 4, "{:?}", shared(&two));
    assert_eq!(shared(&other).hits, 0, "{:?}", shared(&other));
    let plain = connected(&origin, &url);
    CONTENT.check(&plain, &[]);
    assert_eq!(shared(&plain).hits, 0);
}
