//! The official types and reducers as a filter, one JSON object per line in and out.
//!
//! `{"reducer", "state", "actions"}` gives the state after the actions. `{"decode", "value"}` gives `{"encoded"}`, the
//! value decoded as a type and encoded again, or `{"error"}`: also where a part was kept as an unknown one.
use ahp::reducers::{
    apply_action_to_changeset, apply_action_to_chat, apply_action_to_root, apply_action_to_session,
    apply_action_to_terminal,
};
use ahp_types::actions::{ActionEnvelope, StateAction};
use ahp_types::commands::*;
use ahp_types::messages::JsonRpcErrorResponse;
use ahp_types::notifications::*;
use ahp_types::state::{ChangesetState, ChatState, RootState, SessionState, TerminalState};
use serde_json::{from_value, json, to_value, Value};
use std::io::{stdin, BufRead};

fn fold<S: serde::de::DeserializeOwned + serde::Serialize, O>(
    state: Value,
    actions: Vec<StateAction>,
    apply: fn(&mut S, &StateAction) -> O,
) -> Value {
    let mut state: S = from_value(state).expect("state");
    for action in &actions {
        apply(&mut state, action);
    }
    to_value(state).expect("JSON")
}

fn recode<T: serde::de::DeserializeOwned + serde::Serialize + std::fmt::Debug>(value: Value) -> Value {
    match from_value::<T>(value) {
        Err(error) => json!({"error": error.to_string()}),
        Ok(decoded) if format!("{decoded:?}").contains("Unknown(") => {
            json!({"error": format!("unknown part: {decoded:?}")})
        }
        Ok(decoded) => json!({"encoded": decoded}),
    }
}

fn decode(name: &str, value: Value) -> Value {
    macro_rules! types {
        ($($kind:ident),* $(,)?) => {
            match name {
                "null" => recode::<()>(value),
                $(stringify!($kind) => recode::<$kind>(value),)*
                _ => json!({"error": format!("no type {name}")}),
            }
        };
    }
    types!(
        ActionEnvelope,
        AuthRequiredParams,
        AuthenticateResult,
        CompletionsResult,
        CreateResourceWatchResult,
        FetchTurnsResult,
        InitializeResult,
        InvokeChangesetOperationResult,
        JsonRpcErrorResponse,
        ListSessionsResult,
        ProgressParams,
        ReconnectResult,
        ResolveSessionConfigResult,
        ResourceListResult,
        ResourceReadResult,
        ResourceRequestResult,
        ResourceResolveResult,
        SessionAddedParams,
        SessionConfigCompletionsResult,
        SessionRemovedParams,
        SessionSummaryChangedParams,
        SubscribeResult,
    )
}

fn main() {
    for line in stdin().lock().lines() {
        let mut case: Value = serde_json::from_str(&line.expect("line")).expect("JSON");
        if let Some(name) = case["decode"].as_str().map(String::from) {
            println!("{}", decode(&name, case["value"].take()));
            continue;
        }
        let actions: Vec<StateAction> = from_value(case["actions"].take()).expect("actions");
        let state = case["state"].take();
        let folded = match case["reducer"].as_str() {
            Some("root") => fold::<RootState, _>(state, actions, apply_action_to_root),
            Some("session") => fold::<SessionState, _>(state, actions, apply_action_to_session),
            Some("terminal") => fold::<TerminalState, _>(state, actions, apply_action_to_terminal),
            Some("changeset") => fold::<ChangesetState, _>(state, actions, apply_action_to_changeset),
            _ => fold::<ChatState, _>(state, actions, apply_action_to_chat),
        };
        println!("{folded}");
    }
}
