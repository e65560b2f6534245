package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"

	copilot "github.com/github/copilot-sdk/go"
	"github.com/github/copilot-sdk/go/rpc"
)

type GetTemperature struct {
	City string `json:"city" jsonschema:"Name of the city"`
}

func main() {
	ctx := context.Background()
	program := cmp.Or(os.Getenv("JUMPSEAT"), "jumpseat")
	client := copilot.NewClient(&copilot.ClientOptions{Connection: copilot.StdioConnection{Path: program}})
	if err := client.Start(ctx); err != nil {
		log.Fatal(err)
	}
	defer client.Stop()

	getTemperature := copilot.DefineTool("get_temperature", "Returns the current temperature in a city",
		func(args GetTemperature, _ copilot.ToolInvocation) (string, error) {
			fmt.Println("tool: get_temperature", args.City)
			return "18 degrees in " + args.City, nil
		})
	session, err := client.CreateSession(ctx, &copilot.SessionConfig{
		Streaming:           copilot.Bool(true),
		Tools:               []copilot.Tool{getTemperature},
		OnPermissionRequest: approve,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Disconnect()

	session.On(func(event copilot.SessionEvent) {
		if delta, ok := event.Data.(*copilot.AssistantMessageDeltaData); ok {
			fmt.Print(delta.DeltaContent)
		}
	})
	if _, err := session.SendPromptAndWait(ctx, "How warm is it in Berlin?"); err != nil {
		log.Fatal(err)
	}
	fmt.Println()
}

func approve(request copilot.PermissionRequest, _ copilot.PermissionInvocation) (rpc.PermissionDecision, error) {
	switch request := request.(type) {
	case *copilot.PermissionRequestShell:
		fmt.Println("permission: shell", request.FullCommandText)
	case *copilot.PermissionRequestCustomTool:
		fmt.Println("permission: custom-tool", request.ToolName)
	}
	return &rpc.PermissionDecisionApproveOnce{}, nil
}
