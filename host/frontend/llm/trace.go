package llm

import "github.com/hako-run/hako/host/trace"

// describeSpan sets the attributes of a completion's span by the semantic conventions for GenAI. response may be nil.
func describeSpan(span *trace.Span, provider string, response *Response, c *Completion) {
	if span == nil {
		return
	}
	span.Name(trace.Chat + " " + c.Model)
	span.Text(trace.Operation, trace.Chat)
	span.Text(trace.Provider, provider)
	span.Text(trace.RequestModel, c.Model)
	span.Int(trace.Attempts, int64(c.Attempts))
	span.Int(trace.InputTokens, int64(c.Usage.Input))
	span.Int(trace.OutputTokens, int64(c.Usage.Output))
	if response != nil {
		span.Text(trace.ResponseModel, response.Model)
	}
	if c.Outcome != Completed && c.Outcome != Canceled {
		span.Fail(c.Outcome)
	}
}
