//! Compresses the JSON schemas: as text they would be a thirtieth of the program.

use std::io::Write;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::ZlibEncoder;

const SCHEMAS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas.json");

#[expect(clippy::disallowed_methods, reason = "a file of the build")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={SCHEMAS}");
    let to = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?).join("schemas.z");
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&std::fs::read(SCHEMAS)?)?;
    std::fs::write(to, encoder.finish()?)?;
    Ok(())
}
