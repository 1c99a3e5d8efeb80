//! Topics, temporary ones, and subscriptions.

use fe2o3_amqp::link::Receiver;
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::types::messaging::{Source, Target, TerminusDurability, TerminusExpiryPolicy};
use serde_amqp::primitives::{Array, Symbol};

use crate::peer::{LAST, Peer, Shown, Wrong, rest, same, selector, take, texts};

pub async fn topic(url: &str, name: &str) -> Shown {
    let mut peer = Peer::dial(url).await?;
    let address = format!("/topics/{name}");
    let mut one = peer.receiver(address.as_str()).await?;
    let mut two = peer.receiver(address.as_str()).await?;
    peer.send(&address, &["news", LAST]).await?;
    both_get_news(&mut one, &mut two).await?;
    peer.close().await?;
    Ok(String::new())
}

async fn both_get_news(one: &mut Receiver, two: &mut Receiver) -> Result<(), Wrong> {
    same(texts(&["news"]), rest(one).await?, "what the first gets")?;
    same(texts(&["news"]), rest(two).await?, "what the second gets")
}

pub async fn temporary_topic(url: &str, _: &str) -> Shown {
    let mut peer = Peer::dial(url).await?;
    let mut other = Peer::dial(url).await?;
    let target = Target::builder().dynamic(true).capabilities(capabilities(&["temporary-topic"])).build();
    let made = peer.sender(target).await?;
    let address = made.target().as_ref().and_then(|target| target.address.clone());
    let address = address.ok_or("the dynamic target has no address")?;
    let mut one = peer.receiver(address.as_str()).await?;
    let mut two = peer.receiver(address.as_str()).await?;
    other.send(&address, &["news", LAST]).await?;
    both_get_news(&mut one, &mut two).await?;
    other.close().await?;
    peer.close().await?;
    Ok("by a dynamic target with the capability temporary-topic".into())
}

pub async fn durable_subscription(url: &str, name: &str) -> Shown {
    let address = format!("/topics/{name}");
    let mut sender = Peer::dial(url).await?;
    let mut first = Peer::dial_as(url, name).await?;
    let receiver = first.receiver_named("mine", durable(&address), CreditMode::Auto(100)).await?;
    receiver.detach().await.map_err(|(_, wrong)| wrong)?;
    first.close().await?;
    sender.send_coloured(&address, "red", &["rose", "brick", LAST]).await?;

    let mut again = Peer::dial_as(url, name).await?;
    let mut kept = again.receiver_named("mine", durable(&address), CreditMode::Auto(100)).await?;
    same(texts(&["rose", "brick"]), rest(&mut kept).await?, "what has waited")?;
    sender.send_coloured(&address, "red", &["left behind"]).await?;
    kept.close().await?;
    let mut fresh = again.receiver_named("mine", durable(&address), CreditMode::Auto(100)).await?;
    sender.send_coloured(&address, "red", &[LAST]).await?;
    same(texts(&[]), rest(&mut fresh).await?, "what an ended subscription has kept")?;
    fresh.close().await?;
    again.close().await?;
    sender.close().await?;
    Ok("with a selector; a detach leaves it, closing the link ends it".into())
}

fn durable(address: &str) -> Source {
    Source::builder()
        .address(address)
        .durable(TerminusDurability::UnsettledState)
        .expiry_policy(TerminusExpiryPolicy::Never)
        .add_to_filter("selector", selector("colour = 'red'"))
        .build()
}

pub async fn shared_subscription(url: &str, name: &str) -> Shown {
    for is_durable in [false, true] {
        share(url, &format!("/topics/{name}.{is_durable}"), is_durable).await?;
    }
    Ok("volatile and durable, by the capabilities shared and global".into())
}

async fn share(url: &str, address: &str, is_durable: bool) -> Result<(), Wrong> {
    let mut first = Peer::dial(url).await?;
    let mut second = Peer::dial(url).await?;
    let mut one = first.receiver_named("ours", shared(address, is_durable), CreditMode::Manual).await?;
    let mut two = second.receiver_named("ours", shared(address, is_durable), CreditMode::Manual).await?;
    one.set_credit(5).await?;
    two.set_credit(5).await?;
    let sent: Vec<String> = (0..10).map(|number| format!("message {number}")).collect();
    first.send(address, &sent.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    let mut got = take(&mut one, 5).await?;
    got.extend(take(&mut two, 5).await?);
    got.sort();
    same(sent, got, "what both have, each message once")?;
    one.close().await?;
    two.close().await?;
    first.close().await?;
    second.close().await
}

fn shared(address: &str, is_durable: bool) -> Source {
    let source = Source::builder().address(address).capabilities(capabilities(&["topic", "shared", "global"]));
    if !is_durable {
        return source.build();
    }
    source.durable(TerminusDurability::UnsettledState).expiry_policy(TerminusExpiryPolicy::Never).build()
}

fn capabilities(names: &[&str]) -> Array<Symbol> {
    names.iter().map(|name| Symbol::from(*name)).collect()
}
