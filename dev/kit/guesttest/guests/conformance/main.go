// Command conformance offers the tools, resources and prompts that the MCP conformance suite expects of a server. The
// names and some texts are the suite's.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hako-run/hako/pdk"
)

const (
	// pixel is a PNG of one black pixel.
	pixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\b\x00\x00\x00\x00:~\x9bU" +
		"\x00\x00\x00\x0eIDATx\xdabb\x00\x04\x00\x00\xff\xff\x00\x06\x00\x03\xe7\xb8\x17\xd8\x00\x00\x00\x00IEND\xaeB`\x82"
	// silence is a WAV file of no samples: 8 kHz, 16 bits, mono.
	silence = "RIFF\x24\x00\x00\x00WAVEfmt " +
		"\x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x00\x00\x00\x00"
)

type none struct{}

func init() {
	tools()
	resources()
	prompts()
}

func main() {}

func tools() {
	pdk.HandleTool("test_simple_text", func(context.Context, none) (string, error) {
		return "This is a simple text response for testing.", nil
	})
	pdk.HandleTool("test_image_content", func(context.Context, none) (*pdk.Result, error) {
		return new(pdk.Result).AddImage("image/png", []byte(pixel)), nil
	})
	pdk.HandleTool("test_audio_content", func(context.Context, none) (*pdk.Result, error) {
		return new(pdk.Result).AddAudio("audio/wav", []byte(silence)), nil
	})
	pdk.HandleTool("test_embedded_resource", func(context.Context, none) (*pdk.Result, error) {
		return new(pdk.Result).AddResource(note("test://embedded-resource")), nil
	})
	pdk.HandleTool("test_multiple_content_types", func(context.Context, none) (*pdk.Result, error) {
		return pdk.Text("some text").AddImage("image/png",
			[]byte(pixel)).AddResource(note("test://mixed-resource")), nil
	})
	pdk.HandleTool("test_tool_with_progress", func(ctx context.Context, _ none) (string, error) {
		for done := 0; done <= 100; done += 50 {
			pdk.Progress(ctx, float64(done), 100, fmt.Sprintf("%d of 100", done))
			time.Sleep(120 * time.Millisecond) // the host passes on ten a second
		}
		return "done", nil
	})
	pdk.HandleTool("test_error_handling", func(context.Context, none) (*pdk.Result, error) {
		return pdk.Text("This tool intentionally returns an error for testing").AsError(), nil
	})
	pdk.HandleTool("json_schema_2020_12_tool", func(_ context.Context, in json.RawMessage) (string, error) {
		return "called with " + string(in), nil
	})
	pdk.HandleTool("test_x_mcp_header", func(_ context.Context, in struct {
		Region string `json:"region"`
	}) (string, error) {
		return "region " + in.Region, nil
	})
}

func note(uri string) pdk.ResourceContents {
	return pdk.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "an embedded resource"}
}

func resources() {
	pdk.HandleResource("test://static-text", func(_ context.Context, uri string) ([]pdk.ResourceContents, error) {
		return []pdk.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: "static text"}}, nil
	})
	pdk.HandleResource("test://static-binary", func(_ context.Context, uri string) ([]pdk.ResourceContents, error) {
		return []pdk.ResourceContents{{URI: uri, MIMEType: "image/png", Data: []byte(pixel)}}, nil
	})
	const template = "test://template/{id}/data"
	pdk.HandleResourceTemplate(template, func(_ context.Context, uri string,
		variables map[string]string) ([]pdk.ResourceContents, error) {
		data, err := json.Marshal(map[string]string{"id": variables["id"]})
		return []pdk.ResourceContents{{URI: uri, MIMEType: "application/json", Text: string(data)}}, err
	})
	pdk.CompleteResource(template, "id", complete)
}

func prompts() {
	pdk.HandlePrompt("test_simple_prompt", func(context.Context, map[string]string) (*pdk.Prompt, error) {
		return ask("A simple prompt."), nil
	})
	pdk.HandlePrompt("test_prompt_with_arguments", func(_ context.Context, in map[string]string) (*pdk.Prompt, error) {
		return ask(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", in["arg1"], in["arg2"])), nil
	})
	pdk.CompletePrompt("test_prompt_with_arguments", "arg1", complete)
	pdk.HandlePrompt("test_prompt_with_embedded_resource",
		func(_ context.Context, in map[string]string) (*pdk.Prompt, error) {
			resource := note(in["resourceUri"])
			prompt := ask("Look at this.")
			prompt.Messages = append(prompt.Messages, message(pdk.Content{Type: "resource", Resource: &resource}))
			return prompt, nil
		})
	pdk.HandlePrompt("test_prompt_with_image", func(context.Context, map[string]string) (*pdk.Prompt, error) {
		prompt := ask("Look at this.")
		prompt.Messages = append(prompt.Messages,
			message(pdk.Content{Type: "image", MIMEType: "image/png", Data: []byte(pixel)}))
		return prompt, nil
	})
}

func ask(text string) *pdk.Prompt {
	return &pdk.Prompt{Messages: []pdk.PromptMessage{message(pdk.Content{Type: "text", Text: text})}}
}

func message(content pdk.Content) pdk.PromptMessage {
	return pdk.PromptMessage{Role: "user", Content: content}
}

func complete(_ context.Context, value string, _ map[string]string) ([]string, error) {
	return []string{value + "1", value + "2"}, nil
}
