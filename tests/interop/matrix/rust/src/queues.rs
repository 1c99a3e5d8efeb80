//! Queues: sending, receiving, outcomes, browsing, selectors, temporary ones, the anonymous relay.

use fe2o3_amqp::link::Receiver;
use fe2o3_amqp::types::definitions::{AmqpError, Error, Fields};
use fe2o3_amqp::types::messaging::{
    ApplicationProperties, Body, Data, DistributionMode, Header, Message, MessageId, Modified, Priority, Properties,
    Source, Target, annotations::OwnedKey,
};
use fe2o3_amqp::types::primitives::SimpleValue;
use serde_amqp::Value;
use serde_amqp::primitives::{Binary, Symbol};

use crate::peer::{
    Peer, Shown, Wrong, count_of, left, next, put, rest, same, selector as matching, take, text_of, texts,
};

const COUNT: i32 = 10;

pub async fn send(url: &str, name: &str) -> Shown {
    let mut peer = Peer::dial(url).await?;
    for number in 0..COUNT {
        peer.send(name, &[&format!("message {number}")]).await?;
    }
    peer.close().await?;
    Ok(String::new())
}

pub async fn receive(url: &str, name: &str) -> Shown {
    let mut peer = Peer::dial(url).await?;
    let mut sender = peer.sender(name).await?;
    for number in 0..COUNT {
        let properties = Properties::builder()
            .message_id(format!("id {number}"))
            .correlation_id(number as u64)
            .subject("subject")
            .build();
        let message = Message::builder()
            .header(Header::builder().durable(true).priority(7).build())
            .properties(properties)
            .application_properties(ApplicationProperties::builder().insert("number", number).build())
            .value(format!("message {number}"))
            .build();
        put(&mut sender, message).await?;
    }
    let mut receiver = peer.receiver(name).await?;
    for number in 0..COUNT {
        let got = next(&mut receiver).await?;
        receiver.accept(&got).await?;
        same(format!("message {number}"), text_of(&got), "body")?;
        let message = got.into_message();
        let properties = message.properties.ok_or("no properties")?;
        same(Some(MessageId::String(format!("id {number}"))), properties.message_id, "message-id")?;
        same(Some(MessageId::Ulong(number as u64)), properties.correlation_id, "correlation-id")?;
        same(Some("subject".to_string()), properties.subject, "subject")?;
        let application = message.application_properties.ok_or("no application properties")?;
        same(Some(&SimpleValue::Int(number)), application.get("number"), "application property")?;
        same(Some(Priority(7)), message.header.map(|header| header.priority), "priority")?;
    }
    receiver.close().await?;
    same(texts(&[]), left(url, name).await?, "what is left")?;
    Ok(String::new())
}

pub async fn accepted(url: &str, name: &str) -> Shown {
    let mut peer = Peer::dial(url).await?;
    peer.send(name, &["a"]).await?;
    let mut receiver = peer.receiver(name).await?;
    take(&mut receiver, 1).await?;
    receiver.close().await?;
    same(texts(&[]), left(url, name).await?, "what is left")?;
    Ok(String::new())
}

pub async fn rejected(url: &str, name: &str) -> Shown {
    let mut peer = Peer::dial(url).await?;
    peer.send(name, &["a", "b"]).await?;
    let mut receiver = peer.receiver(name).await?;
    let got = next(&mut receiver).await?;
    let why = Error::new(AmqpError::NotAllowed, "not this one".to_string(), None);
    receiver.reject(&got, why).await?;
    same("b".to_string(), text_of(&next(&mut receiver).await?), "what comes next")?;
    peer.close().await?;
    same(texts(&["b"]), left(url, name).await?, "what is left")?;
    Ok(String::new())
}

pub async fn released(url: &str, name: &str) -> Shown {
    let (mut receiver, peer) = one_sent(url, name).await?;
    let got = next(&mut receiver).await?;
    receiver.release(&got).await?;
    let again = next(&mut receiver).await?;
    same(0, count_of(&again), "delivery-count")?;
    receiver.accept(&again).await?;
    peer.close().await?;
    Ok(String::new())
}

pub async fn modified(url: &str, name: &str) -> Shown {
    let (mut receiver, peer) = one_sent(url, name).await?;
    let got = next(&mut receiver).await?;
    let mut why = Fields::new();
    why.insert(Symbol::from("x-opt-why"), Value::from("it failed"));
    let outcome = Modified { delivery_failed: Some(true), undeliverable_here: None, message_annotations: Some(why) };
    receiver.modify(&got, outcome).await?;
    let again = next(&mut receiver).await?;
    same(1, count_of(&again), "delivery-count")?;
    receiver.accept(&again).await?;
    let annotations = again.into_message().message_annotations.ok_or("no annotations")?;
    let found = annotations.get(&OwnedKey::Symbol(Symbol::from("x-opt-why")));
    same(Some(&Value::from("it failed")), found, "the annotation that came with it")?;
    peer.close().await?;
    Ok(String::new())
}

async fn one_sent(url: &str, name: &str) -> Result<(Receiver, Peer), Wrong> {
    let mut peer = Peer::dial(url).await?;
    peer.send(name, &["a"]).await?;
    Ok((peer.receiver(name).await?, peer))
}

pub async fn lost_link(url: &str, name: &str) -> Shown {
    let (mut receiver, peer) = one_sent(url, name).await?;
    next(&mut receiver).await?;
    receiver.close().await?;
    peer.close().await?;
    let mut other = Peer::dial(url).await?;
    let mut receiver = other.receiver(name).await?;
    let again = next(&mut receiver).await?;
    same(1, count_of(&again), "delivery-count")?;
    receiver.accept(&again).await?;
    other.close().await?;
    Ok(String::new())
}

pub async fn browse(url: &str, name: &str) -> Shown {
    let mut peer = Peer::dial(url).await?;
    peer.send(name, &["a", "b", "c"]).await?;
    let source = Source::builder().address(name).distribution_mode(DistributionMode::Copy).build();
    let mut browser = peer.receiver(source).await?;
    same(texts(&["a", "b", "c"]), take(&mut browser, 3).await?, "what is shown")?;
    browser.close().await?;
    same(texts(&["a", "b", "c"]), left(url, name).await?, "what is left")?;
    Ok(String::new())
}

pub async fn selector(url: &str, name: &str) -> Shown {
    let mut peer = Peer::dial(url).await?;
    peer.send_coloured(name, "blue", &["sky", "sea"]).await?;
    peer.send_coloured(name, "red", &["rose", "brick", crate::peer::LAST]).await?;
    let filter = matching("colour = 'red' AND JMSPriority < 9");
    let source = Source::builder().address(name).add_to_filter("selector", filter).build();
    let mut reds = peer.receiver(source).await?;
    same(texts(&["rose", "brick"]), rest(&mut reds).await?, "what is selected")?;
    reds.close().await?;
    same(texts(&["sky", "sea"]), left(url, name).await?, "what is left")?;
    Ok(String::new())
}

pub async fn temporary_queue(url: &str, _: &str) -> Shown {
    let mut peer = Peer::dial(url).await?;
    let mut other = Peer::dial(url).await?;
    let mut answers = peer.receiver(Source::builder().dynamic(true).build()).await?;
    let address = answers.source().as_ref().and_then(|source| source.address.clone());
    other.send(&address.ok_or("the dynamic source has no address")?, &["answer"]).await?;
    same(texts(&["answer"]), take(&mut answers, 1).await?, "what comes")?;
    other.close().await?;
    peer.close().await?;
    Ok(String::new())
}

pub async fn anonymous_relay(url: &str, name: &str) -> Shown {
    let mut peer = Peer::dial(url).await?;
    let addresses = [format!("{name}.one"), format!("{name}.two")];
    for address in &addresses {
        peer.sender(address.as_str()).await?.close().await?;
    }
    let mut sender = peer.sender(Target::default()).await?;
    for address in &addresses {
        let message = Message::builder()
            .header(Header::builder().durable(true).build())
            .properties(Properties::builder().to(address.clone()).build())
            .value(address.clone())
            .build();
        put(&mut sender, message).await?;
    }
    for address in &addresses {
        same(vec![address.clone()], left(url, address).await?, "what the queue has")?;
    }
    Ok(String::new())
}

pub async fn large_message(url: &str, name: &str) -> Shown {
    let mut peer = Peer::dial(url).await?;
    let body: Vec<u8> = (0..3usize << 20).map(|place| (place * 31 >> 3) as u8).collect();
    let message =
        Message::builder().header(Header::builder().durable(true).build()).data(Binary::from(body.clone())).build();
    let mut sender = peer.sender(name).await?;
    sender.send(message).await?.accepted_or("the message was not accepted")?;
    let mut receiver = peer.receiver(name).await?;
    let got = next(&mut receiver).await?;
    receiver.accept(&got).await?;
    match got.body() {
        Body::Data(sections) => {
            let found: Vec<u8> = sections.iter().flat_map(|Data(section)| section.to_vec()).collect();
            same(true, body == found, "the same bytes")?;
        }
        other => return Err(format!("no data: {other:?}").into()),
    }
    peer.close().await?;
    Ok(String::new())
}

pub async fn groups(url: &str, name: &str) -> Shown {
    let mut peer = Peer::dial(url).await?;
    let mut one = peer.receiver(name).await?;
    let mut two = peer.receiver(name).await?;
    let mut sender = peer.sender(name).await?;
    for text in ["a1", "b1", "c1", "a2", "b2", "c2", "a3", "a4"] {
        let sequence = if text == "a3" { u32::MAX } else { 1 };
        let properties = Properties::builder().group_id(text[..1].to_string()).group_sequence(sequence).build();
        let header = Header::builder().durable(true).build();
        let message = Message::builder().header(header).properties(properties).value(text.to_string()).build();
        put(&mut sender, message).await?;
    }
    sender.close().await?;
    same(texts(&["a1", "c1", "a2", "c2", "a3"]), take(&mut one, 5).await?, "what the first gets")?;
    same(texts(&["b1", "b2", "a4"]), take(&mut two, 3).await?, "what the second gets")?;
    one.close().await?;
    two.close().await?;
    peer.close().await?;
    Ok(String::new())
}
