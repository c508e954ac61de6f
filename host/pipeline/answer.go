package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/quota"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/internal/lang"
	"github.com/hako-run/hako/pdk/abi"
)

// argumentsError means that arguments do not match a tool's input schema.
type argumentsError struct {
	tool string
	err  error
}

func (e *argumentsError) Error() string {
	return fmt.Sprintf("the arguments of %s are not valid: %v. Correct them and call it again", e.tool, e.err)
}

// resultError means that a result does not match its tool's output schema.
type resultError struct {
	tool string
	err  error
}

func (e *resultError) Error() string {
	return fmt.Sprintf("%s returned a result that does not match its own output schema: %v. Report this to the "+
		"plugin's author",
		e.tool, e.err)
}

// completeResult validates a tool's result. It repeats structured content as text if there are no content blocks (MCP
// 2026-07-28, tools, structured content) and marks a replayed result.
func completeResult(tool *catalog.Tool, response *abi.Response, locale string) error {
	if schema := tool.Spec.Output(); schema != nil && !response.IsError {
		if len(response.StructuredContent) == 0 {
			return &resultError{tool.Name, errors.New("it has no structured content")}
		}
		if err := schema.Validate(response.StructuredContent); err != nil {
			return &resultError{tool.Name, err}
		}
	}
	if len(response.Content) == 0 && len(response.StructuredContent) > 0 {
		response.Content = []abi.Content{{Type: abi.Text, Text: string(response.StructuredContent)}}
	}
	if response.Replayed {
		response.Content = append(response.Content, abi.Content{Type: abi.Text, Text: replayNote(locale)})
	}
	return nil
}

// checkResult validates and completes a response.
func (p *Pipeline) checkResult(_ context.Context, c *served) error {
	switch {
	case c.shown != nil:
		return completeResult(c.shown, c.response, p.locale(c.Call))
	case c.record.Method == abi.Complete && c.response.Completion == nil:
		c.response.Completion = &abi.Completion{Values: []string{}}
	}
	return nil
}

func replayNote(locale string) string {
	if lang.Japanese(locale) {
		return "注意: これは記録された応答の再生です(MOCK_MODE)。実際のデータではありません。"
	}
	return "Note: replayed from recordings (MOCK_MODE). This is not live data."
}

// asToolError converts an error into a tool result on which a model can act. Errors of the request itself stay errors,
// except for a retired tool with a substitute.
func asToolError(ctx context.Context, err error) (*abi.Response, error) {
	var missing *NotFoundError
	var denied *NotAllowedError
	var invalid *InvalidError
	var pending *approval.PendingError
	if errors.As(err, &pending) {
		return nil, err
	}
	if !errors.Is(err, ErrStopped) && (errors.As(err, &missing) && missing.Hint == "" || errors.As(err, &denied) ||
		errors.As(err, &invalid) ||
		ctx.Err() != nil) {
		return nil, err
	}
	return &abi.Response{IsError: true, Content: []abi.Content{{Type: abi.Text, Text: err.Error()}}}, nil
}

var limitOutcomes = map[string]Outcome{
	limit.Time:   Timeout,
	limit.CPU:    CPU,
	limit.Memory: Memory,
	limit.Input:  Size,
	limit.Output: Size,
	limit.Queue:  Busy,
	limit.Rate:   Busy,
	limit.Budget: Busy,
}

func outcomeOf(response *abi.Response, err error) Outcome {
	var (
		limit     *limit.Error
		guest     *catalog.GuestError
		missing   *NotFoundError
		denied    *NotAllowedError
		invalid   *InvalidError
		arguments *argumentsError
		result    *resultError
		wire      *abi.Error
		used      *quota.Error
		pending   *approval.PendingError
		secret    *secretError
	)
	switch {
	case err == nil && response.IsError:
		return ToolError
	case err == nil:
		return OK
	case errors.Is(err, ErrStopped):
		return Stopped
	case errors.As(err, &limit):
		return limitOutcomes[limit.Limit]
	case errors.As(err, &used):
		return Busy
	case errors.As(err, &pending):
		return Asked
	case errors.As(err, &guest):
		return Trap
	case errors.As(err, &missing):
		return NotFound
	case errors.As(err, &denied), errors.As(err, &secret):
		return NotAllowed
	case errors.As(err, &invalid), errors.As(err, &arguments):
		return InvalidArguments
	case errors.As(err, &result):
		return InvalidResult
	case errors.As(err, &wire):
		if wire.Code == abi.CodeNotFound {
			return NotFound
		}
		return ToolError
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Canceled
	}
	return Internal
}

// responseSize is the size of a response in bytes, without the overhead of JSON.
func responseSize(response *abi.Response) int {
	n := len(response.StructuredContent) + len(response.Meta)
	for _, block := range response.Content {
		n += len(block.Text) + len(block.Data)
	}
	for _, contents := range response.Contents {
		n += len(contents.Text) + len(contents.Data)
	}
	for _, message := range response.Messages {
		n += len(message.Content.Text) + len(message.Content.Data)
	}
	return n
}
