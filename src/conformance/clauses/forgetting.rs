//! Forgetting keys.

use super::prelude::*;

/// A key that was told to be forgotten is one never seen; others stay as they are.
pub fn forgotten_keys_are_fresh(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "forgotten_keys_are_fresh");
    let client = kit.bucket(slow(5));
    let neighbour = client.with_key("client2");
    let elsewhere = kit.bucket(slow(5));
    for other in [&client, &neighbour, &elsewhere] {
        other.exhaust(5)?;
    }
    forget(&client, "an exhausted key")?;
    client.peek("after it was forgotten")?.leaves(5)?;
    client.exhaust(5)?;
    neighbour.peek("another key of that space")?.leaves(0)?;
    elsewhere.peek("that key in another space")?.leaves(0)?;
    forget(&client, "it again")?;
    forget(&client, "a key that is not there")?;
    client.peek("after all that")?.leaves(5)?;
    Ok(())
}

/// Nothing of it stays in the backend.
pub fn forgotten_keys_leave_nothing(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "forgotten_keys_leave_nothing");
    kit.backend()?;
    let client = kit.bucket(slow(5));
    client.take("two of five", 2)?.allowed()?;
    forget(&client, "the key")?;
    let stored = client.read()?;
    kit.is(
        stored.is_none(),
        "a key was forgotten",
        "no value is stored",
        stored,
    )
}

fn forget(client: &Client<'_, TokenBucket>, what: &str) -> Checked {
    let forgotten = client.store.forget_async(&client.key, &client.limit);
    match client.kit.run(forgotten) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            Err(client.kit.lacks(Need::Forgetting))
        }
        Err(error) => {
            Err(client
                .kit
                .broken(format!("forgetting {what}"), "no error", Shown(&error)))
        }
    }
}
