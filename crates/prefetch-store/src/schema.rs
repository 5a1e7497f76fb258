//! The tables; `docs/prefetch-store.md` explains their columns.

/// The file's name.
pub const NAME: &str = "prefetch.db";
/// `application_id` of the file: "ekep".
pub const APPLICATION_ID: u32 = 0x656b_6570;
/// `user_version` of the file.
pub const SCHEMA: i64 = 4;

/// The schema before, which lacks a table.
pub(super) const WITHOUT_ACCOUNTS: i64 = 3;
/// The schema before that, and its table of programs.
pub(super) const WITHOUT_USER: i64 = 2;
pub(super) const PROGRAM_WITHOUT_USER: &str = "CREATE TABLE program (key INTEGER PRIMARY KEY, id INTEGER NOT NULL UNIQUE, exe BLOB NOT NULL, script BLOB, \
     launches INTEGER NOT NULL, learned INTEGER NOT NULL, last_seen_s INTEGER NOT NULL, took_ms INTEGER NOT NULL, \
     cold_bytes INTEGER NOT NULL, coldest_ms INTEGER NOT NULL, coldest_bytes INTEGER NOT NULL, \
     weight REAL NOT NULL, weight_s INTEGER NOT NULL) STRICT";

/// The table that the schema before lacks.
pub(super) const ACCOUNT: &str = "account";

/// Tables by name. File keys are never reused, so that entries of a forgotten file never refer to another.
pub(super) const TABLES: [(&str, &str); 8] = [
    ("meta", "CREATE TABLE meta (name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID"),
    (
        "program",
        "CREATE TABLE program (key INTEGER PRIMARY KEY, id INTEGER NOT NULL UNIQUE, exe BLOB NOT NULL, script BLOB, \
         user INTEGER NOT NULL, launches INTEGER NOT NULL, learned INTEGER NOT NULL, last_seen_s INTEGER NOT NULL, took_ms INTEGER NOT NULL, \
         cold_bytes INTEGER NOT NULL, coldest_ms INTEGER NOT NULL, coldest_bytes INTEGER NOT NULL, \
         weight REAL NOT NULL, weight_s INTEGER NOT NULL) STRICT",
    ),
    (
        "file",
        "CREATE TABLE file (key INTEGER PRIMARY KEY AUTOINCREMENT, hash INTEGER NOT NULL, path BLOB NOT NULL, \
         kind INTEGER NOT NULL, dev INTEGER NOT NULL, ino INTEGER NOT NULL, size INTEGER NOT NULL, \
         mtime_ns INTEGER NOT NULL, boot INTEGER NOT NULL, version INTEGER NOT NULL) STRICT",
    ),
    ("touched", "CREATE TABLE touched (program INTEGER PRIMARY KEY, files BLOB NOT NULL) STRICT"),
    (
        ACCOUNT,
        "CREATE TABLE account (program INTEGER PRIMARY KEY, users BLOB NOT NULL, files BLOB NOT NULL) STRICT",
    ),
    (
        "event",
        "CREATE TABLE event (key INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, user INTEGER NOT NULL, \
         kind INTEGER NOT NULL, program INTEGER) STRICT",
    ),
    (
        "decision",
        "CREATE TABLE decision (key INTEGER PRIMARY KEY AUTOINCREMENT, at_s INTEGER NOT NULL, occasion TEXT NOT NULL, \
         program INTEGER NOT NULL, probability REAL NOT NULL, outcome TEXT NOT NULL, used_bytes INTEGER, \
         wasted_bytes INTEGER) STRICT",
    ),
    (
        "state",
        "CREATE TABLE state (name TEXT PRIMARY KEY, version INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT, WITHOUT ROWID",
    ),
];

/// The script that creates the tables.
pub(super) fn script() -> String {
    let tables: Vec<&str> = TABLES.iter().map(|(_, sql)| *sql).collect();
    format!(
        "PRAGMA page_size = 4096; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -256;\n\
         BEGIN;\n\
         PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA};\n\
         {};\n\
         CREATE INDEX file_by_hash ON file (hash);\n\
         COMMIT;",
        tables.join(";\n")
    )
}

/// Settings of a connection that cannot write.
pub(super) const READER: &str = "PRAGMA cache_size = -256; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY; \
     PRAGMA cell_size_check = ON;";

/// Settings of each other connection: a cache of 256 KiB, no mapped file, a log of 1 MiB that is written back automatically.
pub(super) const CONNECTION: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -256; \
     PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 128; \
     PRAGMA journal_size_limit = 1048576; PRAGMA cell_size_check = ON; PRAGMA secure_delete = FAST;";
