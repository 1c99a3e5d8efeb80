//! Transactions: what is sent and accepted in one.

use fe2o3_amqp::transaction::{Controller, Transaction, TransactionDischarge, TransactionPosting, TransactionRetirement};

use crate::peer::{Peer, Shown, Text, coloured, left, same, texts};

pub async fn transaction(url: &str, name: &str) -> Shown {
    let mut peer = Peer::dial(url).await?;
    let mut sender = peer.sender(name).await?;
    let controller = Controller::attach(&mut peer.session, "controller").await?;
    for (text, commits) in [("a", true), ("x", false), ("b", true)] {
        let transaction = Transaction::declare(&controller, None).await?;
        transaction.post(&mut sender, coloured(text, "none")).await?.accepted_or("rejected")?;
        if commits {
            transaction.commit().await?;
        } else {
            transaction.rollback().await?;
        }
    }
    let mut receiver = peer.receiver(name).await?;
    let first = receiver.recv::<Text>().await?;
    let transaction = Transaction::declare(&controller, None).await?;
    transaction.accept(&mut receiver, &first).await?;
    transaction.commit().await?;
    receiver.close().await?;
    same(texts(&["b"]), left(url, name).await?, "what is left")?;
    controller.close().await?;
    peer.close().await?;
    Ok(String::new())
}
