//! A connection with one session, and the few things that all behaviours do with it.

use std::error::Error;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU32, Ordering};

use fe2o3_amqp::connection::ConnectionHandle;
use fe2o3_amqp::link::Receiver;
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::types::messaging::{AmqpValue, ApplicationProperties, Body, Header, Message, Outcome, Source, Target};
use fe2o3_amqp::{Connection, Delivery, Sender, Session};
use serde_amqp::Value;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;

pub type Wrong = Box<dyn Error + Send + Sync>;
/// How a behaviour was done, where that is not plain, or what was wrong.
pub type Shown = Result<String, Wrong>;
pub type Text = AmqpValue<String>;

/// The text of the message that a driver sends last: what came before it is all that there was.
pub const LAST: &str = "the last one";

static LINKS: AtomicU32 = AtomicU32::new(0);

pub struct Peer {
    pub connection: ConnectionHandle<()>,
    pub session: SessionHandle<()>,
}

impl Peer {
    pub async fn dial(url: &str) -> Result<Peer, Wrong> {
        let name = format!("peer {}", LINKS.fetch_add(1, Ordering::Relaxed));
        Peer::dial_as(url, &name).await
    }

    pub async fn dial_as(url: &str, container: &str) -> Result<Peer, Wrong> {
        let mut connection = Connection::open(container.to_string(), url).await?;
        let session = Session::begin(&mut connection).await?;
        Ok(Peer { connection, session })
    }

    pub async fn close(mut self) -> Result<(), Wrong> {
        self.session.end().await?;
        self.connection.close().await?;
        Ok(())
    }

    pub async fn sender(&mut self, target: impl Into<Target>) -> Result<Sender, Wrong> {
        Ok(Sender::builder().name(link_name()).target(target.into()).attach(&mut self.session).await?)
    }

    /// Send durable texts on a link of its own; each must be accepted.
    pub async fn send(&mut self, address: &str, texts: &[&str]) -> Result<(), Wrong> {
        self.send_coloured(address, "none", texts).await
    }

    /// Send durable texts, each of a colour.
    pub async fn send_coloured(&mut self, address: &str, colour: &str, texts: &[&str]) -> Result<(), Wrong> {
        let mut sender = self.sender(address).await?;
        for text in texts {
            put(&mut sender, coloured(text, colour)).await?;
        }
        sender.close().await?;
        Ok(())
    }

    /// Attach a receiver, which has credit for more than there ever are messages.
    pub async fn receiver(&mut self, source: impl Into<Source>) -> Result<Receiver, Wrong> {
        self.receiver_named(&link_name(), source, CreditMode::Auto(100)).await
    }

    /// Attach a receiver without credit.
    pub async fn manual_receiver(&mut self, source: impl Into<Source>) -> Result<Receiver, Wrong> {
        self.receiver_named(&link_name(), source, CreditMode::Manual).await
    }

    pub async fn receiver_named(
        &mut self,
        name: &str,
        source: impl Into<Source>,
        credit: CreditMode,
    ) -> Result<Receiver, Wrong> {
        let builder = Receiver::builder().name(name).source(source.into()).credit_mode(credit);
        Ok(builder.attach(&mut self.session).await?)
    }
}

fn link_name() -> String {
    format!("link {}", LINKS.fetch_add(1, Ordering::Relaxed))
}

/// A durable text of a colour, for selectors.
pub fn coloured(text: &str, colour: &str) -> Message<Text> {
    Message::builder()
        .header(Header::builder().durable(true).build())
        .application_properties(ApplicationProperties::builder().insert("colour", colour).build())
        .value(text.to_string())
        .build()
}

/// The filter of JMS selectors.
pub fn selector(condition: &str) -> Described<Value> {
    Described { descriptor: Descriptor::Code(0x0000_468C_0000_0004), value: Value::String(condition.into()) }
}

/// Send a message, which must be accepted.
pub async fn put(sender: &mut Sender, message: Message<Text>) -> Result<(), Wrong> {
    match sender.send(message).await? {
        Outcome::Accepted(_) => Ok(()),
        other => Err(format!("the outcome of a message is {other:?}").into()),
    }
}

/// Take the next message, which must come.
pub async fn next(receiver: &mut Receiver) -> Result<Delivery<Body<Value>>, Wrong> {
    Ok(receiver.recv::<Body<Value>>().await?)
}

pub fn text_of(delivery: &Delivery<Body<Value>>) -> String {
    match delivery.body() {
        Body::Value(AmqpValue(Value::String(text))) => text.clone(),
        other => format!("no text: {other:?}"),
    }
}

/// How often a message was delivered before.
pub fn count_of(delivery: &Delivery<Body<Value>>) -> u32 {
    delivery.message().header.as_ref().map_or(0, |header| header.delivery_count)
}

/// Take and accept so many messages; returns their texts.
pub async fn take(receiver: &mut Receiver, count: usize) -> Result<Vec<String>, Wrong> {
    let mut texts = Vec::new();
    while texts.len() < count {
        let got = next(receiver).await?;
        receiver.accept(&got).await?;
        texts.push(text_of(&got));
    }
    Ok(texts)
}

/// Take and accept what comes before the last message; returns the texts.
pub async fn rest(receiver: &mut Receiver) -> Result<Vec<String>, Wrong> {
    let mut texts = Vec::new();
    loop {
        let text = take(receiver, 1).await?.remove(0);
        if text == LAST {
            return Ok(texts);
        }
        texts.push(text);
    }
}

/// Take what a queue has, on a connection of its own.
pub async fn left(url: &str, address: &str) -> Result<Vec<String>, Wrong> {
    let mut peer = Peer::dial(url).await?;
    peer.send(address, &[LAST]).await?;
    let mut receiver = peer.receiver(address).await?;
    let texts = rest(&mut receiver).await?;
    receiver.close().await?;
    peer.close().await?;
    Ok(texts)
}

/// Hold two values to be the same.
pub fn same<Value: PartialEq + Debug>(expected: Value, found: Value, what: &str) -> Result<(), Wrong> {
    if expected == found {
        return Ok(());
    }
    Err(format!("{what}: expected {expected:?}, found {found:?}").into())
}

pub fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}
