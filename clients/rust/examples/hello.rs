use std::{env, error::Error};

use umg_client::{connect, text, user, v1::GenerateRequest};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut client = connect(&format!("http://{}", env::var("UMG_ADDRESS")?), &env::var("UMG_API_KEY")?)?;
    let messages = vec![user("Say hello in five languages.")];
    let request = GenerateRequest { model: "famO-5".into(), messages, ..Default::default() };
    println!("{}", text(client.generation.generate(request).await?.get_ref()));
    Ok(())
}
