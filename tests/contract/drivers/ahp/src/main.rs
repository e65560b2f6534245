//! Drives a server with the official client of the Agent Host Protocol, unmodified, and folds with its reducers.
//!
//! `ahp-driver URL FILE first` runs the scenario and writes what it has seen to FILE; `again`, after a restart of the
//! server, goes on from there. After each step, the folded chat equals a newcomer's snapshot. The first failure ends
//! the run.
use ahp::reducers::{apply_action_to_chat, apply_action_to_session, ReduceOutcome};
use ahp::{Client, ClientConfig, ClientEventStream, SubscriptionEvent};
use ahp_types::actions::{ActionEnvelope, StateAction};
use ahp_types::commands::ReconnectResult;
use ahp_types::state::{ChatState, SessionState, Snapshot, SnapshotState};
use anyhow::{bail, ensure, Context, Result};
use serde_json::{from_value, json, to_value, Value};
use std::time::Duration;
use tokio::task::unconstrained;
use tokio::time::timeout;

const ROOT: &str = "ahp-root://";
const GONE: &str = "ahp-chat:/gone";
const WAIT: Duration = Duration::from_secs(60);

/// The version of the protocol that is spoken, from `AHP_VERSION`.
fn version() -> String {
    std::env::var("AHP_VERSION").unwrap_or_else(|_| "1.0.0".into())
}

/// One client: its connection, and what it has folded.
struct Peer {
    id: String,
    client: Client,
    events: ClientEventStream,
    session_uri: String,
    session: Option<SessionState>,
    chat_uri: String,
    chat: Option<ChatState>,
    last_seen: u64,
}

impl Peer {
    async fn connect(url: &str, id: &str) -> Result<Self> {
        let transport = ahp_ws::WebSocketTransport::connect(url).await?;
        let client = Client::connect(transport, ClientConfig::default()).await?;
        let events = client.events();
        Ok(Self {
            id: id.into(),
            client,
            events,
            session_uri: String::new(),
            session: None,
            chat_uri: String::new(),
            chat: None,
            last_seen: 0,
        })
    }

    async fn hello(url: &str, id: &str) -> Result<Self> {
        let mut peer = Self::connect(url, id).await?;
        let answer = peer.client.initialize(id.into(), vec![version()], vec![ROOT.into()]).await?;
        ensure!(answer.protocol_version == version());
        ensure!(matches!(answer.snapshots[0].state, SnapshotState::Root(_)));
        peer.last_seen = answer.server_seq as u64;
        Ok(peer)
    }

    fn take(&mut self, snapshot: Snapshot) -> Result<()> {
        self.last_seen = self.last_seen.max(snapshot.from_seq as u64);
        match snapshot.state {
            SnapshotState::Session(state) => (self.session, self.session_uri) = (Some(*state), snapshot.resource),
            SnapshotState::Chat(state) => (self.chat, self.chat_uri) = (Some(*state), snapshot.resource),
            SnapshotState::Root(_) => {}
            other => bail!("{} decodes as {other:?}", snapshot.resource),
        }
        Ok(())
    }

    async fn subscribe(&mut self, uri: &str) -> Result<()> {
        let (answer, _) = self.client.subscribe(uri.into()).await?;
        self.take(answer.snapshot.context("no snapshot")?)
    }

    async fn join(&mut self, session: &str) -> Result<()> {
        self.subscribe(session).await?;
        let chat = self.session().default_chat.clone().context("no default chat")?;
        self.subscribe(&chat).await
    }

    fn session(&self) -> &SessionState {
        self.session.as_ref().expect("subscribed")
    }

    fn chat(&self) -> &ChatState {
        self.chat.as_ref().expect("subscribed")
    }

    fn apply(&mut self, envelope: &ActionEnvelope) -> Result<()> {
        if envelope.rejection_reason.is_some() {
            return Ok(());
        }
        ensure!(envelope.server_seq > self.last_seen, "{} after {}", envelope.server_seq, self.last_seen);
        self.last_seen = envelope.server_seq;
        let outcome = match (&mut self.chat, &mut self.session) {
            (Some(chat), _) if envelope.channel == self.chat_uri => apply_action_to_chat(chat, &envelope.action),
            (_, Some(session)) if envelope.channel == self.session_uri => {
                apply_action_to_session(session, &envelope.action)
            }
            _ => return Ok(()),
        };
        ensure!(matches!(outcome, ReduceOutcome::Applied), "{outcome:?}: {}", to_value(&envelope.action)?);
        Ok(())
    }

    /// Folds until an envelope fits, and returns it.
    async fn until(&mut self, what: &str, fits: impl Fn(&ActionEnvelope) -> bool) -> Result<ActionEnvelope> {
        loop {
            let found = timeout(WAIT, self.events.recv()).await.with_context(|| format!("{}: no {what}", self.id))?;
            let event = found.with_context(|| format!("{}: closed before {what}", self.id))?;
            if let SubscriptionEvent::Action(envelope) = event.event {
                self.apply(&envelope)?;
                if fits(&envelope) {
                    return Ok(envelope);
                }
            }
        }
    }

    async fn kind(&mut self, kind: &str) -> Result<Value> {
        let found = self.until(kind, |one| to_value(&one.action).is_ok_and(|action| action["type"] == kind)).await?;
        Ok(to_value(&found.action)?)
    }

    async fn end_of_turn(&mut self) -> Result<()> {
        while self.chat().active_turn.is_some() {
            self.until("the end of the turn", |_| true).await?;
        }
        Ok(())
    }

    /// Folds everything that was sent before the answer to a ping.
    async fn settle(&mut self) -> Result<()> {
        self.client.ping().await?;
        while let Ok(Some(event)) = timeout(Duration::ZERO, unconstrained(self.events.recv())).await {
            if let SubscriptionEvent::Action(envelope) = event.event {
                self.apply(&envelope)?;
            }
        }
        Ok(())
    }

    async fn send(&self, channel: &str, action: Value) -> Result<i64> {
        let action: StateAction = from_value(action)?;
        Ok(self.client.dispatch(channel.into(), action).await?.client_seq)
    }

    /// Dispatches an action and returns the reason for its refusal, if it is refused.
    async fn tell(&mut self, action: Value) -> Result<Option<String>> {
        let is_of_chat = action["type"].as_str().is_some_and(|kind| kind.starts_with("chat/"));
        let channel = if is_of_chat { self.chat_uri.clone() } else { self.session_uri.clone() };
        let (id, number) = (self.id.clone(), self.send(&channel, action).await?);
        let echo = self
            .until("echo", move |one| one.origin.as_ref().is_some_and(|by| by.client_id == id && by.client_seq == number))
            .await?;
        Ok(echo.rejection_reason)
    }

    async fn accepted(&mut self, action: Value) -> Result<()> {
        let shown = action.to_string();
        let refusal = self.tell(action).await?;
        ensure!(refusal.is_none(), "{shown}: {refusal:?}");
        Ok(())
    }

    async fn prompt(&mut self, turn: &str, text: &str) -> Result<()> {
        self.accepted(json!({"type": "chat/turnStarted", "turnId": turn, "startedAt": "2026-11-28T00:00:00.000Z",
            "message": message(text)}))
            .await
    }

    /// Returns the first open question or call of the session, of the given kind.
    async fn needed(&mut self, kind: &str) -> Result<Value> {
        loop {
            for one in self.session().input_needed.iter().flatten() {
                let shown = to_value(one)?;
                if shown["kind"] == kind {
                    return Ok(shown);
                }
            }
            self.until(kind, |_| true).await?;
        }
    }

    /// Checks that a newcomer is shown the same. No action tells the activity in a session's status.
    async fn same_as_newcomer(&mut self, url: &str, what: &str) -> Result<()> {
        self.settle().await?;
        let mut newcomer = Peer::hello(url, "newcomer").await?;
        newcomer.join(&self.session_uri).await?;
        let (mine, theirs) = (to_value(self.chat())?, to_value(newcomer.chat())?);
        ensure!(mine == theirs, "{what}: the chats differ\nmine   {mine}\ntheirs {theirs}");
        let (mut mine, mut theirs) = (to_value(self.session())?, to_value(newcomer.session())?);
        (mine["status"], theirs["status"]) = (json!(0), json!(0));
        ensure!(mine == theirs, "{what}: the sessions differ\nmine   {mine}\ntheirs {theirs}");
        newcomer.client.shutdown().await;
        println!("ok: {what}");
        Ok(())
    }
}

fn message(text: &str) -> Value {
    json!({"text": text, "origin": {"kind": "user"}})
}

fn answer(turn: &str, needed: &Value, approved: bool) -> Value {
    let common = json!({"type": "chat/toolCallConfirmed", "turnId": turn, "toolCallId": needed["toolCall"]["toolCallId"]});
    let mut action = common;
    action["approved"] = json!(approved);
    if approved {
        action["confirmed"] = json!("user-action");
        action["selectedOptionId"] = json!("once");
    } else {
        action["reason"] = json!("denied");
    }
    action
}

fn code(error: &impl std::fmt::Debug, expected: i64) -> Result<()> {
    ensure!(format!("{error:?}").contains(&expected.to_string()), "{error:?} is not {expected}");
    Ok(())
}

async fn first(url: &str, file: &str) -> Result<()> {
    let old = Peer::connect(url, "old").await?;
    old.client.ping().await?;
    code(&old.client.initialize("old".into(), vec!["0.8.0".into()], vec![]).await.unwrap_err(), -32005)?;
    old.client.shutdown().await;

    // Create a session, and list it.
    let (mut a, mut b) = (Peer::hello(url, "a").await?, Peer::hello(url, "b").await?);
    let session = "ahp-session:/0d9a2b6e-3c55-4f0e-9d4b-1c9b3f9a7c11";
    let _: Value = a.client.request("createSession", json!({"channel": session, "provider": "jumpseat"})).await?;
    let again = a.client.request::<_, Value>("createSession", json!({"channel": session})).await.unwrap_err();
    code(&again, -32003)?;
    a.subscribe(session).await?;
    if to_value(a.session())?["lifecycle"] != "ready" {
        a.kind("session/ready").await?;
    }
    a.join(session).await?;
    b.join(session).await?;
    let list: Value = b.client.request("listSessions", json!({"channel": ROOT})).await?;
    ensure!(list["items"][0]["resource"] == session, "{list}");
    a.same_as_newcomer(url, "a new session").await?;

    // A confirmed tool; the first of two answers counts.
    a.prompt("t1", "make a file").await?;
    let needed = b.needed("toolConfirmation").await?;
    a.needed("toolConfirmation").await?;
    a.same_as_newcomer(url, "a question").await?;
    b.accepted(answer("t1", &needed, true)).await?;
    ensure!(a.tell(answer("t1", &needed, false)).await?.is_some(), "both answers count");
    for peer in [&mut a, &mut b] {
        peer.end_of_turn().await?;
        peer.settle().await?;
    }
    ensure!(to_value(a.chat())? == to_value(b.chat())?, "two clients differ");
    let shown = to_value(&a.chat().turns[0])?;
    ensure!(shown["responseParts"].as_array().is_some_and(|parts| parts.last().unwrap()["content"] == "All done."), "{shown}");
    a.same_as_newcomer(url, "a turn with a confirmed tool").await?;

    // Refusals, and channels that do not exist.
    for refused in [
        json!({"type": "chat/turnComplete", "turnId": "t1", "duration": 1}),
        json!({"type": "chat/turnCancelled", "turnId": "t1", "duration": 1}),
    ] {
        ensure!(a.tell(refused).await?.is_some());
    }
    a.send(GONE, json!({"type": "chat/turnCancelled", "turnId": "t1", "duration": 1})).await?;
    a.same_as_newcomer(url, "refused and ignored actions").await?;

    // Cancel a turn; the message that waits stays, and follows the next turn.
    a.prompt("t2", "hang on").await?;
    a.accepted(json!({"type": "chat/pendingMessageSet", "kind": "queued", "id": "q1", "message": message("later")})).await?;
    a.accepted(json!({"type": "chat/turnCancelled", "turnId": "t2", "duration": 5})).await?;
    a.same_as_newcomer(url, "a cancelled turn, and a message that waits").await?;
    a.prompt("t3", "hello").await?;
    while a.chat().turns.last().map(|turn| turn.id.as_str()) != Some("q1") {
        a.until("the turn of the message that has waited", |_| true).await?;
    }
    a.same_as_newcomer(url, "the queue").await?;

    // A tool of the client.
    a.accepted(json!({"type": "session/activeClientSet", "activeClient": {"clientId": "a", "tools": [
        {"name": "look_up", "description": "Looks a word up", "inputSchema": {"type": "object",
            "properties": {"word": {"type": "string"}}, "required": ["word"]}}]}}))
        .await?;
    a.prompt("t4", "use my tool").await?;
    let needed = a.needed("toolClientExecution").await?;
    ensure!(needed["clientId"] == "a", "{needed}");
    ensure!(needed["toolCall"]["toolInput"] == r#"{"word":"seat"}"#, "{needed}");
    a.same_as_newcomer(url, "a call of a tool of the client").await?;
    let done = json!({"type": "chat/toolCallComplete", "turnId": "t4", "toolCallId": needed["toolCall"]["toolCallId"],
        "result": {"success": true, "pastTenseMessage": "Looked up seat",
            "content": [{"type": "text", "text": "a place to sit"}]}});
    b.settle().await?;
    ensure!(b.tell(done.clone()).await?.is_some(), "another client has answered");
    a.accepted(done).await?;
    a.end_of_turn().await?;
    let shown = to_value(a.chat().turns.last())?;
    ensure!(shown.to_string().contains("It says: a place to sit"), "{shown}");
    a.same_as_newcomer(url, "a turn with a tool of the client").await?;

    // A connection is lost in the middle of a turn.
    b.prompt("t5", "make another").await?;
    a.client.shutdown().await;
    while let Ok(Some(event)) = timeout(WAIT, a.events.recv()).await {
        if let SubscriptionEvent::Action(envelope) = event.event {
            a.apply(&envelope)?;
        }
    }
    b.needed("toolConfirmation").await?;
    let mut back = Peer::connect(url, "a").await?;
    (back.session, back.session_uri) = (a.session.clone(), a.session_uri.clone());
    (back.chat, back.chat_uri, back.last_seen) = (a.chat.clone(), a.chat_uri.clone(), a.last_seen);
    let wanted = vec![ROOT.into(), back.session_uri.clone(), back.chat_uri.clone(), GONE.into()];
    match back.client.reconnect("a".into(), back.last_seen as i64, wanted).await? {
        ReconnectResult::Replay(replay) => {
            ensure!(replay.missing == vec![GONE.to_string()]);
            ensure!(!replay.actions.is_empty());
            for envelope in replay.actions {
                back.apply(&envelope)?;
            }
        }
        other => bail!("{other:?}"),
    }
    back.same_as_newcomer(url, "a replay").await?;
    let needed = back.needed("toolConfirmation").await?;
    back.accepted(answer("t5", &needed, false)).await?;
    back.end_of_turn().await?;
    back.same_as_newcomer(url, "an answer after a replay").await?;

    // Left open, for the restart.
    back.prompt("t6", "make another").await?;
    back.needed("toolConfirmation").await?;
    let kept = json!({"lastSeen": back.last_seen, "session": back.session_uri, "chat": back.chat_uri,
        "turns": back.chat().turns.iter().map(|turn| &turn.id).collect::<Vec<_>>()});
    std::fs::write(file, kept.to_string())?;
    Ok(())
}

async fn again(url: &str, file: &str) -> Result<()> {
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let text = |name: &str| kept[name].as_str().unwrap_or_default().to_string();
    let mut a = Peer::connect(url, "a").await?;
    let last_seen = kept["lastSeen"].as_u64().context("lastSeen")?;
    let wanted = vec![ROOT.into(), text("session"), text("chat"), GONE.into()];
    match a.client.reconnect("a".into(), last_seen as i64, wanted).await? {
        ReconnectResult::Snapshot(answer) => {
            ensure!(answer.snapshots.len() == 3, "a channel that is gone has no snapshot");
            for snapshot in answer.snapshots {
                a.take(snapshot)?;
            }
        }
        other => bail!("{other:?}"),
    }
    ensure!(a.last_seen > last_seen, "the numbers do not grow over a restart");
    let turns: Vec<_> = a.chat().turns.iter().map(|turn| turn.id.clone()).collect();
    let mut before: Vec<String> = from_value(kept["turns"].clone())?;
    before.push("t6".into());
    ensure!(turns == before, "{turns:?} after {before:?}");
    a.same_as_newcomer(url, "snapshots after a restart").await?;
    a.prompt("t7", "hello").await?;
    a.end_of_turn().await?;
    a.same_as_newcomer(url, "a turn after a restart").await
}

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[1..] {
        [url, file, "first"] => first(url, file).await,
        [url, file, "again"] => again(url, file).await,
        _ => bail!("usage: ahp-driver URL FILE first|again"),
    }
}
