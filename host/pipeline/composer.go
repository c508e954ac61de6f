package pipeline

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/internal/toolschema"
	"github.com/hako-run/hako/internal/typescript"
	"github.com/hako-run/hako/pdk/abi"
)

// composer makes the calls of a tool that calls other tools. Each passes the whole pipeline as a call of the same
// caller, and is recorded with its parent. A tool that calls others cannot be called by one. It implements
// broker.Tools.
type composer struct {
	pipeline *Pipeline
	served   *served
	// steps is the number of steps of all calls.
	steps atomic.Int64

	// mu guards made, which counts the calls that may have had effects, by name and end, and order, its keys.
	mu    sync.Mutex
	made  map[string]int
	order []string

	// reporting is held while progress, which may be nil, is called.
	reporting sync.Mutex
	progress  func(abi.Progress)
}

// report passes a progress report of the parent's tool on.
func (c *composer) report(r abi.Progress) {
	c.reporting.Lock()
	defer c.reporting.Unlock()
	if c.progress != nil {
		c.progress(r)
	}
}

// reportWaiting reports to the parent's caller that a person is asked. Reports of the called tools are not passed on.
func (c *composer) reportWaiting(r abi.Progress) {
	if r.Progress == 0 && r.Total == 0 {
		c.report(r)
	}
}

// Call implements broker.Tools.
func (c *composer) Call(ctx context.Context, request *abi.ToolCall, granted broker.Granted) (*abi.ToolEnd, int64) {
	prompter := c.served.Prompter
	prompter.Later, prompter.Reply = false, nil // a second call cannot bring the answer
	var record openRecord
	result, err := c.pipeline.serveCall(ctx, &Call{
		Caller:   c.served.Caller,
		Request:  abi.Request{Method: abi.CallTool, Name: request.Name, Arguments: request.Arguments},
		Progress: c.reportWaiting, Prompter: prompter, unattended: c.served.unattended, parent: c,
		granted: granted,
	}, &record)
	c.steps.Add(record.Steps)
	c.count(request.Name, record.Outcome)
	if err != nil {
		return &abi.ToolEnd{Error: &abi.Error{Code: endCodes[record.Outcome], Message: err.Error()}}, record.Steps
	}
	response := result.Response
	if response.IsError {
		return &abi.ToolEnd{Error: &abi.Error{Code: endCodes[record.Outcome],
			Message: joinedText(response)}}, record.Steps
	}
	end := &abi.ToolEnd{StructuredContent: response.StructuredContent}
	for _, block := range response.Content {
		content := abi.ToolContent{Content: block, Data: block.Data}
		if block.Resource != nil {
			content.Data = block.Resource.Data
		}
		end.Content = append(end.Content, content)
	}
	return end, record.Steps
}

// count notes a call that may have had effects.
func (c *composer) count(name string, outcome Outcome) {
	end := "ok"
	switch outcome {
	case OK:
	case NotFound, NotAllowed, Asked, InvalidArguments, Busy:
		return
	default:
		end = endCodes[outcome]
	}
	key := name + ": " + end
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made = map[string]int{}
	}
	if c.made[key]++; c.made[key] == 1 {
		c.order = append(c.order, key)
	}
}

// withCalls adds to an error that stopped the parent's tool which calls it had made: the tool itself cannot say so.
func (c *composer) withCalls(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.order) == 0 {
		return err
	}
	var lines strings.Builder
	for _, key := range c.order {
		lines.WriteString("\n" + key)
		if n := c.made[key]; n > 1 {
			fmt.Fprintf(&lines, " (%d times)", n)
		}
	}
	return fmt.Errorf("%w\n\nCalls that it made before, whose effects remain:%s", err, &lines)
}

// endCodes are the codes of the errors that a plugin gets, by the outcome of its call.
var endCodes = map[Outcome]string{
	ToolError: abi.CodeToolError, InvalidArguments: abi.CodeInvalid, InvalidResult: abi.CodeBadResult,
	Trap: abi.CodeBadResult, NotFound: abi.CodeNotFound, NotAllowed: abi.CodeDenied, Asked: abi.CodeDenied,
	Timeout: abi.CodeTimeout, CPU: abi.CodeLimit, Memory: abi.CodeLimit, Size: abi.CodeLimit, Busy: abi.CodeBusy,
	Canceled: abi.CodeCanceled, Stopped: abi.CodeCanceled, Internal: abi.CodeInternal,
}

// joinedText returns the texts of a result.
func joinedText(response *abi.Response) string {
	var texts []string
	for _, block := range response.Content {
		if block.Type == abi.Text {
			texts = append(texts, block.Text)
		}
	}
	if len(texts) == 0 {
		return "the tool failed without a message"
	}
	return strings.Join(texts, "\n")
}

// checkGranted returns an error if the plugin whose tool makes the call may not call the tool.
func (c *Call) checkGranted(tool *catalog.Tool) error {
	switch {
	case c.parent == nil:
		return nil
	case tool.Source.Calls != nil:
		return &NotAllowedError{Name: tool.Name,
			Reason: "it calls other tools, and such a tool cannot be called by another: call it on its own"}
	case !c.granted(tool.Source.Name, tool.Real().Name):
		return &NotAllowedError{Name: tool.Name, Reason: fmt.Sprintf("the plugin %s may not call it: "+
			"permissions.tools of its manifest does not name it", c.via())}
	}
	return nil
}

// List implements broker.Tools.
func (c *composer) List(query *abi.ToolQuery, granted broker.Granted) *abi.ToolList {
	p, caller := c.pipeline, c.served.Caller
	view := p.offer(&caller).View
	candidates := view.Tools
	if strings.TrimSpace(query.Query) != "" {
		candidates = p.search.find(view, query.Query)
	}
	list := &abi.ToolList{Tools: []abi.ListedTool{}}
	for _, tool := range candidates {
		if tool.Source.Calls != nil || !granted(tool.Source.Name, tool.Real().Name) ||
			!p.mayList(caller, c.served.subject.source.Name, tool) {
			continue
		}
		if list.Total++; list.Total <= query.Limit {
			declared := declared(tool, p.locale(c.served.Call))
			list.Tools = append(list.Tools, abi.ListedTool{
				Name: tool.Name, Plugin: tool.Source.Name, Title: declared.Title, Description: declared.Description,
				InputSchema: toolschema.Flattened(tool.Spec.InputSchema), OutputSchema: tool.Spec.OutputSchema,
				ReadOnly: declared.ReadOnly, Declaration: typescript.Declare(declared),
			})
		}
	}
	return list
}
