//! Generates messages and stubs from the schema, without protoc.

use std::{env, error::Error, fs, path::Path};

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let mut files = Vec::new();
    for entry in fs::read_dir("proto/umg/v1")? {
        files.push(entry?.path());
    }
    files.sort();
    // The validation rules are options of fields, which this set does not carry: no client needs their library.
    let mut schema = protox::compile(&files, ["proto", "third_party"])?;
    schema.file.retain(|file| !file.package().starts_with("buf."));
    for file in &mut schema.file {
        file.dependency.retain(|name| !name.starts_with("buf/"));
    }
    tonic_prost_build::configure().build_server(false).bytes(".umg.v1").compile_fds(schema.clone())?;
    for file in &mut schema.file {
        file.source_code_info = None; // the comments, which are in the generated code
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("schema.bin"), schema.encode_to_vec())?;
    Ok(())
}
