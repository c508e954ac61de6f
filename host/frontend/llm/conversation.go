package llm

import (
	"slices"
	"strings"
)

// lostResult answers calls without a result: providers reject conversations with unanswered calls.
const lostResult = "The call was interrupted: there is no result."

// normalize returns the messages in the form that every provider accepts: no message is blank, roles alternate, and the
// results of all calls follow immediately and in order. Results without a call are removed.
func normalize(messages []Message) []Message {
	var out []Message
	for _, m := range messages {
		if open := openCalls(out); len(open) > 0 {
			out = append(out, Message{Role: RoleUser, Results: answers(open, m.Results)})
		}
		m.Results = nil
		if blank(&m) {
			continue
		}
		if last := len(out) - 1; last >= 0 && out[last].Role == m.Role {
			appendMessage(&out[last], &m)
			continue
		}
		out = append(out, m)
	}
	if open := openCalls(out); len(open) > 0 {
		out = append(out, Message{Role: RoleUser, Results: answers(open, nil)})
	}
	return out
}

func blank(m *Message) bool {
	return strings.TrimSpace(m.Text) == "" && len(m.Calls) == 0 && len(m.Images) == 0
}

// openCalls returns the calls of the last message.
func openCalls(messages []Message) []Call {
	if len(messages) == 0 {
		return nil
	}
	return messages[len(messages)-1].Calls
}

// answers returns the results of calls, in the order of calls. Each result answers one call: calls with the same ID get
// the results with that ID in order.
func answers(calls []Call, results []Result) []Result {
	out, rest := make([]Result, len(calls)), slices.Clone(results)
	for i, call := range calls {
		out[i] = Result{CallID: call.ID, Text: lostResult, IsError: true}
		if at := slices.IndexFunc(rest, func(r Result) bool { return r.CallID == call.ID }); at >= 0 {
			out[i] = rest[at]
			rest = slices.Delete(rest, at, at+1)
		}
	}
	return out
}

// appendMessage merges m into the preceding message of the same role. The merged message is not what the provider sent,
// so it loses its State.
func appendMessage(last, m *Message) {
	last.Text = strings.TrimLeft(last.Text+"\n\n"+m.Text, "\n")
	last.Calls = slices.Concat(last.Calls, m.Calls)
	last.Images = slices.Concat(last.Images, m.Images)
	last.State = nil
}

// checkTurns requires that the conversation begins and ends with a user message.
func checkTurns(messages []Message) *Error {
	if len(messages) == 0 || messages[0].Role != RoleUser || messages[len(messages)-1].Role != RoleUser {
		return &Error{Kind: Invalid, Text: "the conversation does not begin and end with a user message"}
	}
	return nil
}
