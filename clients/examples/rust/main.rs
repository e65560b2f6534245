use std::io::Write;
use std::sync::Arc;

use async_trait::async_trait;
use github_copilot_sdk::handler::{PermissionHandler, PermissionResult};
use github_copilot_sdk::session_events::{
    AssistantMessageDeltaData, PermissionRequest, SessionErrorData,
};
use github_copilot_sdk::tool::define_tool;
use github_copilot_sdk::types::{
    PermissionRequestData, RequestId, SessionConfig, SessionId, ToolResult,
};
use github_copilot_sdk::{CliProgram, Client, ClientOptions};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct GetTemperature {
    /// Name of the city
    city: String,
}

struct Approve;

#[async_trait]
impl PermissionHandler for Approve {
    async fn handle(
        &self,
        _: SessionId,
        _: RequestId,
        data: PermissionRequestData,
    ) -> PermissionResult {
        match PermissionRequest::deserialize(&data.extra["permissionRequest"]) {
            Ok(PermissionRequest::Shell(request)) => {
                println!("permission: shell {}", request.full_command_text)
            }
            Ok(PermissionRequest::CustomTool(request)) => {
                println!("permission: custom-tool {}", request.tool_name)
            }
            _ => {}
        }
        PermissionResult::approve_once()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let program = std::env::var("JUMPSEAT").unwrap_or("jumpseat".into());
    let client =
        Client::start(ClientOptions::new().with_program(CliProgram::Path(program.into()))).await?;

    let get_temperature = define_tool(
        "get_temperature",
        "Returns the current temperature in a city",
        |_, args: GetTemperature| async move {
            println!("tool: get_temperature {}", args.city);
            Ok(ToolResult::Text(format!("18 degrees in {}", args.city)))
        },
    );
    let config = SessionConfig::default()
        .with_streaming(true)
        .with_tools([get_temperature])
        .with_permission_handler(Arc::new(Approve));
    let session = client.create_session(config).await?;

    let mut events = session.subscribe();
    session.send("How warm is it in Berlin?").await?;
    loop {
        let event = events.recv().await?;
        match event.event_type.as_str() {
            "assistant.message_delta" => {
                if let Some(delta) = event.typed_data::<AssistantMessageDeltaData>() {
                    print!("{}", delta.delta_content);
                    std::io::stdout().flush()?;
                }
            }
            "session.error" => {
                let error = event.typed_data::<SessionErrorData>();
                return Err(error
                    .map_or("the run failed".into(), |error| error.message)
                    .into());
            }
            "session.idle" => break,
            _ => {}
        }
    }
    println!();
    session.disconnect().await?;
    client.stop().await?;
    Ok(())
}
