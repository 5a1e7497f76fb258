//! TLS, ACL and sealed blocks, against a real engine.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use eke_cache_mounts::shared::SharedSettings;
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

/// An authority, and what it signed: `engine.pem` for 127.0.0.1, `client.pem`, and their keys.
fn certificates(dir: &Path) {
    let at = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    fs::write(dir.join("ext"), "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n").unwrap();
    let new = ["req", "-newkey", "rsa:2048", "-nodes", "-subj"];
    let (ca, ca_key, ext, request) = (at("ca.pem"), at("ca.key"), at("ext"), at("request"));
    let authority = ["/CN=ca", "-x509", "-days", "2", "-keyout", &ca_key, "-out", &ca];
    run("openssl", &[&new[..], &authority].concat());
    let sign = ["x509", "-req", "-days", "2", "-CAcreateserial", "-in", &request];
    let by = ["-CA", &ca, "-CAkey", &ca_key, "-extfile", &ext, "-out"];
    for name in ["engine", "client"] {
        let key = at(&format!("{name}.key"));
        run("openssl", &[&new[..], &[&format!("/CN={name}"), "-keyout", &key, "-out", &request]].concat());
        run("openssl", &[&sign[..], &by, &[&at(&format!("{name}.pem"))]].concat());
        fs::set_permissions(key, Permissions::from_mode(0o600)).unwrap();
    }
}

/// An engine with TLS alone, which wants a certificate of its clients as by its default, and a user that may do what eke needs.
fn tls_engine(dir: &Path, port: u16) -> Engine {
    certificates(dir);
    let port_text = port.to_string();
    let at = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    Engine::at(
        port,
        &["--port", "0", "--tls-port", &port_text],
        &[
            "--tls-cert-file",
            &at("engine.pem"),
            "--tls-key-file",
            &at("engine.key"),
            "--tls-ca-cert-file",
            &at("ca.pem"),
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
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains("hidden") && !text.contains("PRIVATE KEY"), "{what}");
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
    let password = secret(dir.path(), "password", b"hidden\n");
    let at = |name: &str| Some(dir.path().join(name));
    let node_with = |password: &Path, change: &dyn Fn(&mut SharedSettings)| {
        origin.node(&url, |shared| {
            (shared.password, shared.ca) = (Some(password.to_owned()), at("ca.pem"));
            (shared.cert, shared.private_key) = (at("client.pem"), at("client.key"));
            change(shared);
        })
    };
    let node = |password: &Path| node_with(password, &|_| ());
    let one = node(&password);
    wait_for("all connections", || shared(&one).connected == 6);
    CONTENT.check(&one, &[]);
    wait_offered(&one);
    let two = node(&password);
    wait_for("all connections", || shared(&two).connected == 6);
    CONTENT.check(&two, &[]);
    assert!(shared(&two).hits >= FILES * 4, "{:?}", shared(&two));
    nobody_sees_the_password(two.server.child_named("eke-cache-share").unwrap());
    // A wrong password, an authority that did not sign, and no certificate of the client are no tier.
    let wrong = node(&secret(dir.path(), "wrong", b"guess"));
    wait_for("the reason", || shared(&wrong).why.is_some());
    let other = node_with(&password, &|shared| shared.ca = None);
    wait_for("the reason", || shared(&other).why.is_some());
    let without = node_with(&password, &|shared| (shared.cert, shared.private_key) = (None, None));
    wait_for("the reason", || shared(&without).why.is_some());
    for mount in [&wrong, &other, &without] {
        CONTENT.check(mount, &[]);
        assert_eq!((shared(mount).hits, shared(mount).connected), (0, 0));
    }
}

/// As after a change of the engine's password: the process that is refused ends, and the next one has the file as it is then.
#[test]
fn a_password_that_was_changed_is_read_again() {
    if cannot_run("a_password_that_was_changed_is_read_again") {
        return;
    }
    let (origin, dir) = (Origin::new(), tempfile::tempdir().unwrap());
    let engine = Engine::start(&["--requirepass", "new"]);
    let url = format!("redis://127.0.0.1:{}", engine.port);
    let password = secret(dir.path(), "password", b"old");
    let mount = origin.node(&url, |shared| shared.password = Some(password.clone()));
    wait_for("the refusal", || shared(&mount).why.is_some_and(|why| why.contains("uthentication")));
    fs::write(&password, "new").unwrap();
    wait_for("all connections with the new password", || shared(&mount).connected == 6);
    CONTENT.check(&mount, &[]);
}

/// What docs/cache.md gives the user of a cluster is enough.
#[test]
fn in_a_cluster_with_a_user_that_may_do_little() {
    if cannot_run("in_a_cluster_with_a_user_that_may_do_little") {
        return;
    }
    let (origin, dir) = (Origin::new(), tempfile::tempdir().unwrap());
    let may = ["~eke:*", "+mget", "+set", "+ping", "+info", "+readonly", "+asking", "+cluster|slots"];
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
