package llm

import (
	"slices"
	"strings"
)

// lostResult answers a call that has no result: providers refuse a conversation that leaves one open.
const lostResult = "The call was interrupted: there is no result."

// tidy returns messages as every provider takes them: none is blank, users' and the model's take turns, and each call is answered
// once, at once and in order. What answers nothing is left out.
func tidy(messages []Message) []Message {
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
			join(&out[last], &m)
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

// openCalls are those of the last message.
func openCalls(messages []Message) []Call {
	if len(messages) == 0 {
		return nil
	}
	return messages[len(messages)-1].Calls
}

// answers are the results of calls, in their order.
func answers(calls []Call, results []Result) []Result {
	out := make([]Result, len(calls))
	for i, call := range calls {
		out[i] = Result{CallID: call.ID, Text: lostResult, IsError: true}
		if at := slices.IndexFunc(results, func(r Result) bool { return r.CallID == call.ID }); at >= 0 {
			out[i] = results[at]
		}
	}
	return out
}

// join adds m to the message before it, of the same role. What came with its own state is no longer what the provider said.
func join(last, m *Message) {
	last.Text = strings.TrimLeft(last.Text+"\n\n"+m.Text, "\n")
	last.Calls = slices.Concat(last.Calls, m.Calls)
	last.Images = slices.Concat(last.Images, m.Images)
	last.State = nil
}

// checkTurns holds that the user begins and ends.
func checkTurns(messages []Message) *Error {
	if len(messages) == 0 || messages[0].Role != RoleUser || messages[len(messages)-1].Role != RoleUser {
		return &Error{Kind: Invalid, Text: "the conversation does not begin and end with a message of the user's"}
	}
	return nil
}
