// Command probe is a plugin for the tests of the hako command.
package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/hako-run/hako/pdk"
)

type text struct {
	Text string `json:"text"`
}

type none struct{}

func init() {
	pdk.HandleTool("probe_echo", func(_ context.Context, in text) (*pdk.Result, error) {
		return pdk.Text(in.Text).WithStructured(in), nil
	})
	pdk.HandleTool("probe_fail", func(_ context.Context, in text) (string, error) { return "", errors.New("no: " + in.Text) })
	pdk.HandleTool("probe_now", func(context.Context, none) (string, error) { return time.Now().UTC().Format(time.RFC3339), nil })
	pdk.HandleTool("probe_show", func(context.Context, none) (*pdk.Result, error) {
		return pdk.Text("a caption").AddImage("image/png", []byte("\x89PNG\r\n\x1a\n")).AddLink("https://example.com/", "a page", "text/html").
			AddResource(pdk.ResourceContents{URI: "probe://bytes", MIMEType: "application/octet-stream", Data: []byte{0, 1}}), nil
	})
	pdk.HandleTool("probe_log", func(ctx context.Context, in text) (string, error) {
		pdk.Log(ctx).Info("info from the plugin")
		pdk.Log(ctx).Warn("warning from the plugin")
		return in.Text, nil
	})
	pdk.HandleTool("probe_wait", func(ctx context.Context, _ none) (string, error) {
		pdk.Log(ctx).Warn("waiting")
		for ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		return "", ctx.Err()
	})
	pdk.HandleTool("probe_read", func(_ context.Context, in text) (string, error) {
		data, err := os.ReadFile("/workspace/" + in.Text)
		return string(data), err
	})
	pdk.HandleTool("probe_config", func(ctx context.Context, _ none) (*pdk.Result, error) {
		config := map[string]any{}
		err := pdk.Config(ctx, &config)
		return pdk.Structured(config), err
	})
}

func main() {}
