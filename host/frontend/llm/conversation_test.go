package llm

import (
	"reflect"
	"strings"
	"testing"
)

func TestNormalize(t *testing.T) {
	t.Parallel()
	user := func(text string) Message { return Message{Role: RoleUser, Text: text} }
	calls := Message{Role: RoleAssistant, Calls: []Call{{ID: "1"}, {ID: "2"}}, State: &State{}}
	lost := func(id string) Result { return Result{CallID: id, Text: lostResult, IsError: true} }
	results := func(all ...Result) Message { return Message{Role: RoleUser, Results: all} }
	for _, test := range []struct {
		name     string
		in, want []Message
	}{
		{"as they are", []Message{user("a"), calls, results(Result{CallID: "1", Text: "r"}, Result{CallID: "2"})},
			[]Message{user("a"), calls, results(Result{CallID: "1", Text: "r"}, Result{CallID: "2"})}},
		{"out of order", []Message{user("a"), calls,
			results(Result{CallID: "2", Text: "s"}, Result{CallID: "9"}, Result{CallID: "1", Text: "r"})},
			[]Message{user("a"), calls, results(Result{CallID: "1", Text: "r"}, Result{CallID: "2", Text: "s"})}},
		{"one ID twice", []Message{user("a"), {Role: RoleAssistant, Calls: []Call{{ID: "1"}, {ID: "1"}, {ID: "1"}}},
			results(Result{CallID: "1", Text: "r"}, Result{CallID: "1", Text: "s"})},
			[]Message{user("a"), {Role: RoleAssistant, Calls: []Call{{ID: "1"}, {ID: "1"}, {ID: "1"}}},
				results(Result{CallID: "1", Text: "r"}, Result{CallID: "1", Text: "s"}, lost("1"))}},
		{"lost", []Message{user("a"), calls, user("b")},
			[]Message{user("a"), calls, {Role: RoleUser, Results: []Result{lost("1"), lost("2")}, Text: "b"}}},
		{"lost at the end", []Message{user("a"), calls}, []Message{user("a"), calls, results(lost("1"), lost("2"))}},
		{"joined", []Message{user("a"), user("b")}, []Message{user("a\n\nb")}},
		{"joined without what it was",
			[]Message{user("a"), {Role: RoleAssistant, Text: "x", State: &State{}},
				{Role: RoleAssistant, Text: "y", State: &State{}}, user("b")},
			[]Message{user("a"), {Role: RoleAssistant, Text: "x\n\ny"}, user("b")}},
		{"blank", []Message{user("a"), {Role: RoleAssistant, Text: "\n"}, user(" ")}, []Message{user("a")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := normalize(test.in); !reflect.DeepEqual(got, test.want) {
				t.Errorf("%+v\nwant %+v", got, test.want)
			}
		})
	}
}

// TestImages sends images of results and user messages to models that accept them.
func TestImages(t *testing.T) {
	t.Parallel()
	r := Result{Text: "two",
		Images: []Image{{MIMEType: "image/png", Data: []byte("png")}, {MIMEType: "image/tiff"}}, IsError: true}
	if got := r.marked(); got != "Error: two\n\n[Images left out because the model would not see them: 1]" {
		t.Errorf("%q", got)
	}
	eachProvider(t, func(t *testing.T, provider string) {
		w := newWorld(t, provider)
		m := Message{Role: RoleAssistant, Calls: []Call{{ID: "1", Name: "draw"}}}
		request := asks("hello")
		request.Messages = append(request.Messages, m,
			Message{Role: RoleUser, Results: []Result{{CallID: "1", Text: "t", Images: r.Images}}})
		w.must(request)
		all := w.requests.All()
		sent := string(all[len(all)-1].Body)
		if seen := strings.Contains(sent, "cG5n"); seen != (provider != OpenAICompatible) ||
			!strings.Contains(sent, "Images left out") {
			t.Errorf("%s", sent)
		}
		w.must(&Request{Messages: []Message{{Role: RoleUser,
			Images: []Image{{MIMEType: "image/png", Data: []byte("png")}, {MIMEType: "image/tiff"}}}}})
		all = w.requests.All()
		sent = string(all[len(all)-1].Body)
		if seen := strings.Contains(sent, "cG5n"); seen != (provider != OpenAICompatible) ||
			!strings.Contains(sent, "Images left out") {
			t.Errorf("%s", sent)
		}
	})
	w := newWorld(t, OpenAICompatible)
	w.chain.models[0].spec.Images = true
	w.must(&Request{Messages: []Message{{Role: RoleUser, Text: "what is it?",
		Images: []Image{{MIMEType: "image/png", Data: []byte("png")}}}}})
	if all := w.requests.All(); !strings.Contains(string(all[len(all)-1].Body),
		`"image_url":{"url":"data:image/png;base64,cG5n"}`) {
		t.Errorf("%s", all[len(all)-1].Body)
	}
}
