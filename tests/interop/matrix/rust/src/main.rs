//! Does what it is asked for with fe2o3-amqp, and says one line of JSON a behaviour: `driver URL BEHAVIOUR...`.

mod defaults;
mod flows;
mod peer;
mod queues;
mod times;
mod topics;
mod transactions;

use std::time::Duration;

use peer::Shown;
use tokio::io::AsyncBufReadExt;
use tokio::time::timeout;

/// How long one behaviour may take.
const PATIENCE: Duration = Duration::from_secs(40);

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().expect("the URL of the broker");
    for name in arguments {
        // What panics or hangs costs its own behaviour.
        let showing = tokio::spawn(show(url.clone(), name.clone()));
        let (verdict, detail) = match timeout(PATIENCE, showing).await {
            Ok(Ok(Ok(detail))) => ("passed", detail),
            Ok(Ok(Err(wrong))) => ("failed", wrong.to_string()),
            Ok(Err(panic)) => ("failed", panic.to_string()),
            Err(_) => ("failed", format!("it took more than {} s", PATIENCE.as_secs())),
        };
        println!("{}", serde_json::json!({"behaviour": name, "verdict": verdict, "detail": detail}));
    }
    // What a behaviour that hangs has left open ends with the process.
    std::process::exit(0);
}

async fn show(url: String, name: String) -> Shown {
    match name.as_str() {
        "send" => queues::send(&url, &name).await,
        "receive" => queues::receive(&url, &name).await,
        "accepted" => queues::accepted(&url, &name).await,
        "rejected" => queues::rejected(&url, &name).await,
        "released" => queues::released(&url, &name).await,
        "modified" => queues::modified(&url, &name).await,
        "lost-link" => queues::lost_link(&url, &name).await,
        "browse" => queues::browse(&url, &name).await,
        "selector" => queues::selector(&url, &name).await,
        "temporary-queue" => queues::temporary_queue(&url, &name).await,
        "anonymous-relay" => queues::anonymous_relay(&url, &name).await,
        "groups" => queues::groups(&url, &name).await,
        "large-message" => queues::large_message(&url, &name).await,
        "topic" => topics::topic(&url, &name).await,
        "temporary-topic" => topics::temporary_topic(&url, &name).await,
        "durable-subscription" => topics::durable_subscription(&url, &name).await,
        "shared-subscription" => topics::shared_subscription(&url, &name).await,
        "credit" => flows::credit(&url, &name).await,
        "drain" => flows::drain(&url, &name).await,
        "transaction" => transactions::transaction(&url, &name).await,
        "default-messages" => defaults::default_messages(&url).await,
        "priority" => times::priority(&url, &name).await,
        "expiry" => times::expiry(&url, &name).await,
        "delivery-delay" => times::delivery_delay(&url, &name).await,
        "reconnect" => flows::reconnect(&url, &name).await,
        _ => Err("the driver does not know it".into()),
    }
}

/// Have the broker killed and started again; returns when it is back.
async fn restart() -> Result<(), std::io::Error> {
    println!("restart");
    let mut line = String::new();
    tokio::io::BufReader::new(tokio::io::stdin()).read_line(&mut line).await?;
    Ok(())
}
