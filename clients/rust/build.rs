//! Generates messages and stubs from the schema, without protoc.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let out = PathBuf::from(env::var("OUT_DIR")?);
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
    let services = schema.file.iter().flat_map(|file| &file.service);
    fs::write(out.join("client.rs"), client(services.map(|service| service.name())))?;
    for file in &mut schema.file {
        file.source_code_info = None; // the comments, which are in the generated code
    }
    fs::write(out.join("schema.bin"), schema.encode_to_vec())?;
    Ok(())
}

/// Returns the text of the struct that has a client of each service, which `src/lib.rs` includes.
fn client<'a>(services: impl Iterator<Item = &'a str>) -> String {
    let (mut fields, mut values) = (String::new(), String::new());
    for service in services {
        let name = service.trim_end_matches("Service").to_lowercase();
        let path = format!("v1::{name}_service_client::{service}Client");
        let plural = if ["admin", "generation", "rerank"].contains(&&*name) { "" } else { "s" };
        fields += &format!("    pub {name}{plural}: {path}<Calls>,\n");
        values += &format!(
            "            {name}{plural}: {path}::new(calls.clone()).max_decoding_message_size(MAX_ANSWER_BYTES),\n"
        );
    }
    format!(
        "/// Clients of the gateway's services. Calls take `&mut`: each task has a clone of its own, which is cheap.
#[derive(Clone)]
pub struct Client {{
{fields}    pub calls: Calls,
}}

impl From<Calls> for Client {{
    fn from(calls: Calls) -> Self {{
        Self {{
{values}            calls,
        }}
    }}
}}
"
    )
}
