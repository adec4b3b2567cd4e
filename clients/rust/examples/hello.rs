use std::{env, error::Error};

use tokio_stream::StreamExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let url = format!("http://{}", env::var("UMG_ADDRESS")?);
    let mut client = umg_client::connect(&url, &env::var("UMG_API_KEY")?)?;
    let mut answer = client.chat("famO-5", "Say hello in five languages.", "").await?;
    while let Some(text) = answer.next().await {
        print!("{}", text?);
    }
    Ok(())
}
