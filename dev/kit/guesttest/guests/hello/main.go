// Command hello is a small guest for tests: it greets, returns its configuration, waits, and reads a file.
package main

import (
	"context"
	"os"
	"time"

	"github.com/hako-run/hako/pdk"
)

type greeting struct {
	Name string `json:"name"`
}

type none struct{}

func init() {
	pdk.HandleTool("greet", func(ctx context.Context, in greeting) (string, error) {
		config := struct {
			Word string `json:"word"`
		}{Word: "Hello"}
		err := pdk.Config(ctx, &config)
		return config.Word + ", " + in.Name, err
	})
	pdk.HandleTool("wait", func(ctx context.Context, _ none) (string, error) {
		pdk.Progress(ctx, 0, 1, "waiting")
		time.Sleep(time.Second)
		return "waited", nil
	})
	pdk.HandleTool("look", func(ctx context.Context, _ none) (string, error) {
		data, err := os.ReadFile("/workspace/note.txt")
		return string(data), err
	})
}

func main() {}
