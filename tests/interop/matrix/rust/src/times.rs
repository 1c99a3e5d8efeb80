//! When a message is delivered: its priority, its time to live, its delivery delay.

use std::time::{Duration, Instant};

use fe2o3_amqp::types::messaging::{Header, Message, MessageAnnotations, Priority};
use fe2o3_amqp::types::primitives::Symbol;
use serde_amqp::Value;
use tokio::time::sleep;

use crate::peer::{Peer, Shown, Text, left, put, same, take, texts};

const LEVELS: u8 = 10;
const SHORT: Duration = Duration::from_millis(300);
const DELAY: Duration = Duration::from_secs(1);

pub async fn priority(url: &str, name: &str) -> Shown {
    let mut peer = Peer::dial(url).await?;
    let mut sender = peer.sender(name).await?;
    let mut expected = Vec::new();
    for level in 0..LEVELS {
        let text = format!("level {level}");
        put(&mut sender, headed(&text, Header::builder().durable(true).priority(Priority(level)).build())).await?;
        expected.insert(0, text);
    }
    sender.close().await?;
    let mut receiver = peer.receiver(name).await?;
    same(expected, take(&mut receiver, LEVELS.into()).await?, "the order")?;
    receiver.close().await?;
    peer.close().await?;
    Ok(String::new())
}

pub async fn expiry(url: &str, name: &str) -> Shown {
    let mut peer = Peer::dial(url).await?;
    let mut sender = peer.sender(name).await?;
    let ttl = u32::try_from(SHORT.as_millis())?;
    put(&mut sender, headed("short", Header::builder().durable(true).ttl(ttl).build())).await?;
    sender.close().await?;
    peer.send(name, &["long"]).await?;
    sleep(2 * SHORT).await;
    peer.close().await?;
    same(texts(&["long"]), left(url, name).await?, "what is left")?;
    Ok(String::new())
}

pub async fn delivery_delay(url: &str, name: &str) -> Shown {
    let mut peer = Peer::dial(url).await?;
    let mut receiver = peer.receiver(name).await?;
    let began = Instant::now();
    let mut sender = peer.sender(name).await?;
    let delay = Value::Long(i64::try_from(DELAY.as_millis())?);
    let annotations = MessageAnnotations::builder().insert(Symbol::from("x-opt-delivery-delay"), delay).build();
    let header = Header::builder().durable(true).build();
    let late = Message::builder().header(header).message_annotations(annotations).value("late".to_string()).build();
    put(&mut sender, late).await?;
    sender.close().await?;
    peer.send(name, &["at once"]).await?;
    same(texts(&["at once", "late"]), take(&mut receiver, 2).await?, "what comes")?;
    same(true, began.elapsed() >= DELAY, "it comes after its delay")?;
    receiver.close().await?;
    peer.close().await?;
    Ok("by x-opt-delivery-delay".into())
}

fn headed(text: &str, header: Header) -> Message<Text> {
    Message::builder().header(header).value(text.to_string()).build()
}
