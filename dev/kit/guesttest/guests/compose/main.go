// Command compose is a guest for tests that calls other tools.
package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/pdktools"
)

type composition struct {
	Calls []abi.ToolCall `json:"calls"`
	// Leave starts the calls without waiting for them.
	Leave bool `json:"leave"`
}

type query struct {
	Query string `json:"query"`
	Limit int    `json:"limit"`
}

func init() {
	pdk.HandleTool("compose", func(ctx context.Context, in composition) (*pdk.Result, error) {
		started := make([]*pdktools.Pending, len(in.Calls))
		texts := make([]string, len(in.Calls))
		for i, call := range in.Calls {
			var err error
			if started[i], err = pdktools.Start(ctx, call.Name, call.Arguments); err != nil {
				texts[i] = failure(err)
			}
		}
		for i := len(started) - 1; i >= 0 && !in.Leave; i-- { // the last first: handles are waited for in any order
			if started[i] == nil {
				continue
			}
			result, err := started[i].Wait()
			if err != nil {
				texts[i] = failure(err)
				continue
			}
			texts[i] = result.Text()
		}
		return pdk.Structured(map[string]any{"results": texts}), nil
	})
	pdk.HandleTool("find", func(ctx context.Context, in query) (*pdk.Result, error) {
		tools, total, err := pdktools.Find(ctx, in.Query, in.Limit)
		if err != nil {
			return nil, err
		}
		names := []string{}
		for _, tool := range tools {
			if !json.Valid(tool.InputSchema) {
				return nil, errors.New("an input schema is not JSON")
			}
			names = append(names, tool.Name)
		}
		return pdk.Structured(map[string]any{"names": names, "total": total}), nil
	})
}

// failure is the code and the message of an error.
func failure(err error) string {
	var known *abi.Error
	if errors.As(err, &known) {
		return known.Code + ": " + known.Message
	}
	return err.Error()
}

func main() {}
