// Package pdktools calls other tools of the host, as the caller of the plugin's own tool. The plugin needs the
// permission tools.
//
//	var weather struct{ Temperature float64 `json:"temperature"` }
//	err := pdktools.Call(ctx, "get_weather", map[string]any{"place": "Sapporo"}, &weather)
//
// Call calls one tool and decodes its structured content. Start starts a call, so that several run at once, and
// Pending.Wait waits for it. Find looks for tools. Policy, approvals, quotas and the audit log hold for each call as
// for one of the caller's own; a person may be asked first.
//
// Errors are *abi.Error with these codes: abi.CodeToolError if the tool says that it failed; abi.CodeInvalid if the
// arguments do not match its schema; abi.CodeNotFound if there is no such tool; abi.CodeDenied if the policy or a
// person denies the call, or nobody can be asked; abi.CodeNotGranted if the plugin may call no other tools here;
// abi.CodeBadResult, abi.CodeTimeout, abi.CodeLimit, abi.CodeBusy, abi.CodeCanceled and abi.CodeInternal. Their
// messages are for models and people: show them unchanged.
package pdktools

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hako-run/hako/pdk/abi"
)

// Result is the result of a tool.
type Result struct {
	Content []abi.ToolContent
	// Structured is the structured content, nil if there is none.
	Structured json.RawMessage
}

// Text returns the first text of the result, empty if there is none.
func (r *Result) Text() string {
	for _, block := range r.Content {
		if block.Type == abi.Text {
			return block.Text
		}
	}
	return ""
}

// Call calls a tool and waits for it. arguments is encoded as a JSON object; nil means one without members. The
// structured content of the result, or its text if there is none, is decoded as JSON into result, unless that is nil.
func Call(ctx context.Context, name string, arguments, result any) error {
	pending, err := Start(ctx, name, arguments)
	if err != nil {
		return err
	}
	got, err := pending.Wait()
	if err != nil || result == nil {
		return err
	}
	data := []byte(got.Structured)
	if data == nil {
		data = []byte(got.Text())
	}
	if err := json.Unmarshal(data, result); err != nil {
		return fmt.Errorf("decode the result of %s: %w", name, err)
	}
	return nil
}

// Pending is a call that was started. It is not safe for concurrent use.
type Pending struct {
	wait   func() (*abi.ToolEnd, error)
	result *Result
	err    error
}

// Start starts a call. Its Wait, or the end of the plugin's own call, ends it. Of the calls that were started 8 run at
// once, and one call of the plugin may make 50; operators set both (limits.parallelCalls and limits.calls).
func Start(ctx context.Context, name string, arguments any) (*Pending, error) {
	call := &abi.ToolCall{Name: name}
	if arguments != nil {
		encoded, err := json.Marshal(arguments)
		if err != nil {
			return nil, fmt.Errorf("encode the arguments of %s: %w", name, err)
		}
		if string(encoded) != "null" {
			call.Arguments = encoded
		}
	}
	wait, err := hostStart(ctx, call)
	if err != nil {
		return nil, err
	}
	return &Pending{wait: wait}, nil
}

// Wait waits for the end of the call.
func (p *Pending) Wait() (*Result, error) {
	if p.wait == nil {
		return p.result, p.err
	}
	end, err := p.wait()
	p.wait = nil
	switch {
	case err != nil:
		p.err = err
	case end.Error != nil:
		p.err = end.Error
	default:
		p.result = &Result{end.Content, end.StructuredContent}
	}
	return p.result, p.err
}

// Find returns the tools that match the words of a query, the best first, or all by name if it is empty; at most limit,
// where zero means 100. total is the number of tools that match.
func Find(ctx context.Context, query string, limit int) (tools []abi.ListedTool, total int, err error) {
	list, err := hostList(ctx, &abi.ToolQuery{Query: query, Limit: limit})
	if err != nil {
		return nil, 0, err
	}
	if list.Error != nil {
		return nil, 0, list.Error
	}
	return list.Tools, list.Total, nil
}
