//! The official reducers as a filter: a line `{"reducer", "state", "actions"}` in, the line of the state after them out.
use ahp::reducers::{apply_action_to_chat, apply_action_to_root, apply_action_to_session};
use ahp_types::actions::StateAction;
use ahp_types::state::{ChatState, RootState, SessionState};
use serde_json::{from_value, to_value, Value};
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

fn main() {
    for line in stdin().lock().lines() {
        let mut case: Value = serde_json::from_str(&line.expect("line")).expect("JSON");
        let actions: Vec<StateAction> = from_value(case["actions"].take()).expect("actions");
        let state = case["state"].take();
        let folded = match case["reducer"].as_str() {
            Some("root") => fold::<RootState, _>(state, actions, apply_action_to_root),
            Some("session") => fold::<SessionState, _>(state, actions, apply_action_to_session),
            _ => fold::<ChatState, _>(state, actions, apply_action_to_chat),
        };
        println!("{folded}");
    }
}
