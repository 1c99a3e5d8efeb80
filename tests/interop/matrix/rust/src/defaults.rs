//! Messages with the defaults of fe2o3-amqp: those of a kind go to the queue of its name.

use fe2o3_amqp::types::messaging::{Data, Header, Message, Outcome, Properties};
use fe2o3_amqp::{Sendable, Sender};
use serde_amqp::primitives::Binary;

use crate::peer::{Peer, Shown, Wrong};

const COUNT: i32 = 3;

pub async fn default_messages(url: &str) -> Shown {
    let mut peer = Peer::dial(url).await?;
    let mut sender = peer.sender("text").await?;
    for number in 0..COUNT {
        accepted(&mut sender, format!("text {number}")).await?;
    }
    sender.close().await?;
    let mut sender = peer.sender("binary").await?;
    for number in 0..COUNT {
        accepted(&mut sender, Message::from(binary(number))).await?;
    }
    sender.close().await?;
    let mut sender = peer.sender("durable-text").await?;
    for number in 0..COUNT {
        accepted(&mut sender, Message::builder().header(durable()).value(format!("text {number}")).build()).await?;
    }
    sender.close().await?;
    let mut sender = peer.sender("durable-binary").await?;
    for number in 0..COUNT {
        accepted(&mut sender, Message::builder().header(durable()).data(binary(number)).build()).await?;
    }
    sender.close().await?;
    let mut sender = peer.sender("id-text").await?;
    for number in 0..COUNT {
        let properties = Properties::builder().message_id(format!("id {number}")).build();
        let builder = Message::builder().header(durable()).properties(properties);
        accepted(&mut sender, builder.value(format!("text {number}")).build()).await?;
    }
    sender.close().await?;
    peer.close().await?;
    Ok(String::new())
}

fn durable() -> Header {
    Header::builder().durable(true).build()
}

fn binary(number: i32) -> Data {
    Data(Binary::from(format!("binary {number}").into_bytes()))
}

/// Send a message, which must be accepted.
async fn accepted<T: fe2o3_amqp::types::messaging::SerializableBody>(
    sender: &mut Sender,
    message: impl Into<Sendable<T>>,
) -> Result<(), Wrong> {
    match sender.send(message).await? {
        Outcome::Accepted(_) => Ok(()),
        other => Err(format!("the outcome of a message is {other:?}").into()),
    }
}
