//! Credit, drain, and a connection that comes back.

use std::time::Duration;

use tokio::time::sleep;

use crate::peer::{Peer, Shown, Wrong, left, same, take, texts};
use crate::restart;

const PAUSE: Duration = Duration::from_millis(20);
const TRIES: u32 = 1000;

pub async fn credit(url: &str, name: &str) -> Shown {
    let mut peer = Peer::dial(url).await?;
    let all = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
    peer.send(name, &all).await?;
    let mut receiver = peer.manual_receiver(name).await?;
    receiver.set_credit(3).await?;
    same(texts(&all[..3]), take(&mut receiver, 3).await?, "what credit for three brings")?;
    // Another receiver takes the rest: nothing was on its way beyond the credit.
    same(texts(&all[3..]), left(url, name).await?, "what is left")?;
    peer.send(name, &["later"]).await?;
    receiver.set_credit(1).await?;
    same(texts(&["later"]), take(&mut receiver, 1).await?, "what more credit brings")?;
    peer.close().await?;
    Ok(String::new())
}

pub async fn drain(url: &str, name: &str) -> Shown {
    let mut peer = Peer::dial(url).await?;
    let mut receiver = peer.manual_receiver(name).await?;
    peer.send(name, &["a", "b", "c"]).await?;
    receiver.set_credit(5).await?;
    same(texts(&["a", "b", "c"]), take(&mut receiver, 3).await?, "what is there")?;
    // The broker hears of the drain before what follows it on the connection.
    receiver.drain().await?;
    peer.send(name, &["d"]).await?;
    same(texts(&["d"]), left(url, name).await?, "what waits for others after the drain")?;
    peer.send(name, &["e"]).await?;
    receiver.set_credit(1).await?;
    same(texts(&["e"]), take(&mut receiver, 1).await?, "what comes after a drain")?;
    peer.close().await?;
    Ok("fe2o3-amqp does not report the end of a drain: another receiver gets the next message".into())
}

pub async fn reconnect(url: &str, name: &str) -> Shown {
    let mut peer = Peer::dial(url).await?;
    let sent: Vec<String> = (0..50).map(|number| format!("message {number}")).collect();
    peer.send(name, &sent.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    restart().await?;
    if peer.connection.on_close().await.is_ok() {
        return Err("the connection to a killed broker ended as if it had been closed".into());
    }
    let mut peer = again(url).await?;
    peer.send(name, &["and on"]).await?;
    peer.close().await?;
    let expected: Vec<String> = sent.into_iter().chain(["and on".to_string()]).collect();
    same(expected, left(url, name).await?, "what comes")?;
    Ok("the application connects again: fe2o3-amqp does not reconnect".into())
}

/// Dial until the broker is there.
async fn again(url: &str) -> Result<Peer, Wrong> {
    for _ in 0..TRIES {
        if let Ok(peer) = Peer::dial(url).await {
            return Ok(peer);
        }
        sleep(PAUSE).await;
    }
    Peer::dial(url).await
}
