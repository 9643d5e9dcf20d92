//! The protocol of one connection. No sockets, no clock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Subscriptions of a connection.
pub const SUBSCRIPTIONS_LIMIT: usize = 4096;
/// Begins a binary frame with a message.
const MESSAGE_DATA: u8 = 1;
/// Begins a binary frame with the time.
const TIME: u8 = 2;

/// A topic as it is advertised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Channel {
    /// Its number while the server runs.
    pub id: u32,
    /// Name of the topic.
    pub topic: String,
    /// Encoding of its messages in MCAP's words.
    pub encoding: String,
    /// Name of its type.
    pub schema_name: String,
    /// The definition of the type; empty if it is not known.
    pub schema: String,
    /// Language of the definition.
    pub schema_encoding: String,
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "camelCase")]
enum FromClient {
    Subscribe {
        subscriptions: Vec<Subscription>,
    },
    #[serde(rename_all = "camelCase")]
    Unsubscribe {
        subscription_ids: Vec<u32>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Subscription {
    id: u32,
    channel_id: u32,
}

/// One connection.
#[derive(Debug, Default)]
pub struct Session {
    advertised: BTreeMap<u32, Channel>,
    /// Channel by number of the subscription, which the client chooses.
    subscriptions: BTreeMap<u32, u32>,
    texts: VecDeque<String>,
}

impl Session {
    /// A connection that begins: it sends the server's name first, and the number that distinguishes this run of it from others.
    pub fn new(name: &str, id: &str) -> Session {
        let mut session = Session::default();
        session.say(&json!({
            "op": "serverInfo", "name": name, "capabilities": ["time"], "supportedEncodings": [],
            "metadata": {}, "sessionId": id,
        }));
        session
    }

    /// The channels that there are now.
    pub fn handle_channels(&mut self, channels: &[Channel]) {
        let now: BTreeMap<u32, &Channel> = channels.iter().map(|channel| (channel.id, channel)).collect();
        // One that has changed is another to viewers: they read by the definition that came with it.
        let is_gone = |(id, known): &(&u32, &Channel)| now.get(*id) != Some(known);
        let gone: Vec<u32> = self.advertised.iter().filter(is_gone).map(|(id, _)| *id).collect();
        let changed = |channel: &&Channel| self.advertised.get(&channel.id) != Some(channel);
        let new: Vec<Channel> = channels.iter().filter(changed).cloned().collect();
        if !gone.is_empty() {
            self.advertised.retain(|id, _| !gone.contains(id));
            self.subscriptions.retain(|_, channel| !gone.contains(channel));
            self.say(&json!({ "op": "unadvertise", "channelIds": gone }));
        }
        if !new.is_empty() {
            self.say(&json!({ "op": "advertise", "channels": new }));
            self.advertised.extend(new.into_iter().map(|channel| (channel.id, channel)));
        }
    }

    /// A text of the client.
    pub fn handle_text(&mut self, text: &str) {
        match serde_json::from_str(text) {
            Ok(FromClient::Subscribe { subscriptions }) => {
                subscriptions.iter().for_each(|subscription| self.subscribe(subscription));
            }
            Ok(FromClient::Unsubscribe { subscription_ids }) => {
                for id in subscription_ids {
                    if self.subscriptions.remove(&id).is_none() {
                        self.complain(&format!("there is no subscription {id}"));
                    }
                }
            }
            Ok(FromClient::Other) => self.complain("this server has channels and time only"),
            Err(error) => self.complain(&format!("a message cannot be read: {error}")),
        }
    }

    /// Publishing is not served.
    pub fn handle_binary(&mut self) {
        self.complain("this server takes no messages; use `noctule pub`");
    }

    /// Numbers of the channels that are subscribed.
    pub fn wanted(&self) -> BTreeSet<u32> {
        self.subscriptions.values().copied().collect()
    }

    /// Subscriptions of a channel.
    pub fn subscriptions(&self, channel: u32) -> impl Iterator<Item = u32> {
        self.subscriptions.iter().filter(move |(_, wanted)| **wanted == channel).map(|(id, _)| *id)
    }

    /// The next text for the client.
    pub fn poll_text(&mut self) -> Option<String> {
        self.texts.pop_front()
    }

    fn subscribe(&mut self, subscription: &Subscription) {
        let Subscription { id, channel_id } = *subscription;
        if !self.advertised.contains_key(&channel_id) {
            self.complain(&format!("there is no channel {channel_id}"));
        } else if self.subscriptions.contains_key(&id) {
            self.complain(&format!("subscription {id} is there already"));
        } else if self.subscriptions.len() >= SUBSCRIPTIONS_LIMIT {
            self.complain(&format!("{SUBSCRIPTIONS_LIMIT} subscriptions are served; end one first"));
        } else {
            self.subscriptions.insert(id, channel_id);
        }
    }

    fn complain(&mut self, sentence: &str) {
        // One is enough for a client that sends many.
        let status = json!({ "op": "status", "level": 2, "message": sentence }).to_string();
        if self.texts.back() != Some(&status) {
            self.texts.push_back(status);
        }
    }

    fn say(&mut self, message: &Value) {
        self.texts.push_back(message.to_string());
    }
}

/// A binary frame with a message: when it was received, ns since 1970, and its bytes.
pub fn message_frame(subscription: u32, log_ns: u64, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(13 + payload.len());
    frame.push(MESSAGE_DATA);
    frame.extend(subscription.to_le_bytes());
    frame.extend(log_ns.to_le_bytes());
    frame.extend(payload);
    frame
}

/// A binary frame with the time, ns since 1970.
pub fn time_frame(now_ns: u64) -> Vec<u8> {
    [&[TIME][..], &now_ns.to_le_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn channel(id: u32) -> Channel {
        Channel {
            id,
            topic: format!("/t{id}"),
            encoding: "cdr".into(),
            schema_name: "std_msgs/msg/String".into(),
            schema: "string data\n".into(),
            schema_encoding: "ros2msg".into(),
        }
    }

    fn texts(session: &mut Session) -> Vec<Value> {
        std::iter::from_fn(|| session.poll_text()).map(|text| serde_json::from_str(&text).unwrap()).collect()
    }

    #[test]
    fn channels_are_advertised_subscribed_and_taken_back() {
        let mut session = Session::new("robot", "1");
        session.handle_channels(&[channel(1), channel(2)]);
        let said = texts(&mut session);
        assert_eq!((said[0]["op"].as_str(), said[0]["name"].as_str()), (Some("serverInfo"), Some("robot")));
        assert_eq!(
            said[1]["channels"][1],
            json!({
                "id": 2, "topic": "/t2", "encoding": "cdr", "schemaName": "std_msgs/msg/String", "schema": "string data\n",
                "schemaEncoding": "ros2msg",
            })
        );
        session.handle_text(
            r#"{"op": "subscribe", "subscriptions": [{"id": 7, "channelId": 2}, {"id": 8, "channelId": 2}]}"#,
        );
        assert_eq!(session.wanted(), [2].into());
        assert_eq!(session.subscriptions(2).collect::<Vec<_>>(), [7, 8]);
        session.handle_text(r#"{"op": "unsubscribe", "subscriptionIds": [8]}"#);
        session.handle_channels(&[channel(1), channel(2)]);
        assert_eq!((session.subscriptions(2).collect::<Vec<_>>(), texts(&mut session)), (vec![7], vec![]));
        session.handle_channels(&[channel(1)]);
        assert_eq!(texts(&mut session), [json!({ "op": "unadvertise", "channelIds": [2] })]);
        assert!(session.wanted().is_empty());
        let defined = Channel { schema: "uint8 a\n".into(), ..channel(1) };
        session.handle_text(r#"{"op": "subscribe", "subscriptions": [{"id": 9, "channelId": 1}]}"#);
        session.handle_channels(std::slice::from_ref(&defined));
        let said = texts(&mut session);
        assert_eq!(said[0], json!({ "op": "unadvertise", "channelIds": [1] }));
        assert_eq!(
            (&said[1]["op"], &said[1]["channels"][0]["schema"]),
            (&json!("advertise"), &json!("uint8 a\n"))
        );
        assert!(session.wanted().is_empty());
    }

    #[test]
    fn what_cannot_be_done_is_a_status() {
        let mut session = Session::new("robot", "1");
        session.handle_channels(&[channel(1)]);
        texts(&mut session);
        for (text, says) in [
            (r#"{"op": "subscribe", "subscriptions": [{"id": 7, "channelId": 9}]}"#, "no channel 9"),
            (r#"{"op": "unsubscribe", "subscriptionIds": [3]}"#, "no subscription 3"),
            (r#"{"op": "getParameters"}"#, "channels and time only"),
            ("nonsense", "cannot be read"),
        ] {
            session.handle_text(text);
            let said = texts(&mut session);
            assert!(said[0]["message"].as_str().unwrap().contains(says), "{said:?}");
        }
        let many: Vec<Value> =
            (0..=SUBSCRIPTIONS_LIMIT).map(|id| json!({ "id": id, "channelId": 1 })).collect();
        session.handle_text(&json!({ "op": "subscribe", "subscriptions": many }).to_string());
        assert_eq!(session.subscriptions(1).count(), SUBSCRIPTIONS_LIMIT);
        assert!(texts(&mut session)[0]["message"].as_str().unwrap().contains("4096 subscriptions"));
    }

    #[test]
    fn frames_are_those_of_the_specification() {
        assert_eq!(message_frame(3, 0x0102, b"ab"), [1, 3, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, b'a', b'b']);
        assert_eq!(time_frame(5), [2, 5, 0, 0, 0, 0, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn any_text_is_handled(text in r#"(\{"op": ?"[a-z]{0,12}"(, ?"[a-zA-Z]{0,16}": ?[\[\]{}0-9":,]{0,30})?\})|.{0,60}"#) {
            let mut session = Session::new("robot", "1");
            session.handle_channels(&[channel(1)]);
            session.handle_text(&text);
            prop_assert!(session.subscriptions.len() <= 1);
        }
    }
}
