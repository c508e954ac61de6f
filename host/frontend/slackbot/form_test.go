package slackbot_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/slack"
	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/host/frontend/chat"
)

// filled is the outcome of a question.
type filled struct {
	answer elicitation.Answer
	err    error
}

const nameForm = `{"type":"object","required":["name"],"properties":{"name":{"type":"string","title":"Your <!channel> name","maxLength":10},` +
	`"size":{"type":"string","oneOf":[{"const":"s","title":"Small"},{"const":"l","title":"Large"}]},` +
	`"sure":{"type":"boolean","default":true},"tags":{"type":"array","items":{"type":"string","enum":["a","b"]}},"years":{"type":"integer","minimum":1}}}`

// curious is an engine whose one tool call asks something.
func curious(t *testing.T, r elicitation.Request, patience time.Duration, result chan<- filled) engine {
	return func(ctx context.Context, turn *chat.Turn) (*chat.Answer, error) {
		q, err := elicitation.Parse(&r)
		if err != nil {
			t.Error(err)
			return nil, err
		}
		q.Server, q.Tool = "crm", "crm_find"
		turn.Surface.ToolStarted("1", "crm_find", "Find")
		asking, stop := context.WithTimeout(ctx, patience)
		defer stop()
		answer, err := turn.Surface.Prompter(chat.ToolCall{ID: "1", Name: "crm_find"}).Fill(asking, q)
		turn.Surface.ToolEnded("1", "ok", "")
		result <- filled{answer, err}
		return &chat.Answer{Text: "done"}, ctx.Err()
	}
}

// form waits for the message that asks, and returns it and the question's ID.
func (w *world) form() (slack.Message, string) {
	w.t.Helper()
	m := w.answered("frm_")
	_, rest, _ := strings.Cut(m.Blocks, "frm_")
	return m, "frm_" + rest[:26]
}

// view waits for the modal n.
func (w *world) view(n int) slack.View {
	w.t.Helper()
	w.wait("a modal", func() bool { return len(w.slack.Views()) >= n })
	return w.slack.Views()[n-1]
}

// submit sends a modal, with the state of its fields.
func (w *world) submit(user string, v slack.View, state ...map[string]any) string {
	w.t.Helper()
	values := map[string]map[string]any{}
	for i, s := range state {
		values[fmt.Sprintf("field%d", i)] = map[string]any{"value": s}
	}
	answer, err := w.slack.Submit(w.t.Context(), user, v, values)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer
}

func typed(text string) map[string]any {
	return map[string]any{"type": "plain_text_input", "value": text}
}

func chosen(value string) map[string]any {
	return map[string]any{"type": "static_select", "selected_option": map[string]any{"value": value}}
}

func several(values ...string) map[string]any {
	var list []any
	for _, v := range values {
		list = append(list, map[string]any{"value": v})
	}
	return map[string]any{"type": "multi_static_select", "selected_options": list}
}

// TestForm: a server's question becomes a message, a modal and an answer that is checked here, for the asker alone, by
// any replica.
func TestForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	result := make(chan filled, 1)
	w.start(curious(t, elicitation.Request{Message: "Who?", Schema: []byte(nameForm)}, time.Minute, result), nil)
	w.connected()
	thread := w.tell(mention("find them"))
	m, id := w.form()
	if m.Thread != thread || !strings.Contains(m.Blocks, "The server crm asks") || len(m.Controls()) != 0 {
		t.Errorf("%+v", m)
	}
	w.click(aki, m, "hako_form", id)
	if told := w.answered("権限がありません"); told.Ephemeral != aki {
		t.Errorf("%+v", told)
	}
	w.click(aki, m, "hako_form_no", id)
	w.click(ken, m, "hako_form_yes", id) // a form is accepted by its modal alone
	w.click(ken, m, "hako_form", id)
	v := w.view(1)
	if v.User != ken || len(v.Sent.Blocks) != 6 || !strings.Contains(v.Raw, `"Small"`) ||
		!strings.Contains(v.Raw, `"initial_option"`) {
		t.Errorf("%+v", v)
	}
	if got := w.submit(aki, v, typed("Aki")); !strings.Contains(got, "is no longer open") {
		t.Errorf("somebody else's: %s", got)
	}
	if got := w.submit(ken, v, typed("longer than ten"), chosen("7"), chosen("maybe"), several("0", "9"), typed("0.5")); strings.Count(got, `"field`) != 5 {
		t.Errorf("what does not fit: %s", got)
	}
	if got := w.submit(ken, v, typed("Ken"), chosen("1"), chosen("false"), several("0", "1"), typed("3")); strings.Contains(got, "error") {
		t.Errorf("what fits: %s", got)
	}
	f := <-result
	if got := fmt.Sprint(f.answer, f.err); got != "{accept map[name:Ken size:l sure:false tags:[a b] years:3]} <nil>" {
		t.Errorf("%s", got)
	}
	m = w.answered("Answered by <@" + ken + ">")
	if strings.Contains(m.Blocks, "hako_form") {
		t.Error("the buttons are still there")
	}
	if got := w.submit(ken, v, typed("Ken")); !strings.Contains(got, "is no longer open") {
		t.Errorf("a second time: %s", got)
	}
	w.click(ken, m, "hako_form_no", id)
	w.answered("is no longer open")
}

// TestFormOverHTTP: what is wrong with a field goes back in the answer to Slack's request.
func TestFormOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	result := make(chan filled, 1)
	w.serve(curious(t, elicitation.Request{Message: "Who?", Schema: []byte(nameForm)}, time.Minute, result), nil)
	w.tell(mention("find them"))
	m, id := w.form()
	w.click(ken, m, "hako_form", id)
	v := w.view(1)
	if got := w.submit(ken, v); !strings.Contains(got, `"response_action":"errors"`) ||
		!strings.Contains(got, "is missing") {
		t.Errorf("%s", got)
	}
	if got := w.submit(ken, v, typed("Ken")); got != "" {
		t.Errorf("%s", got)
	}
	if f := <-result; f.err != nil || f.answer.Content["name"] != "Ken" {
		t.Errorf("%+v", f)
	}
}

// TestPage: an address is shown whole, with a button that the person presses, and is never opened otherwise.
func TestPage(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]string{"hako_form_yes": "accept", "hako_form_no": "decline"} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			result := make(chan filled, 1)
			w.start(curious(t, elicitation.Request{Message: "Sign in.", URL: "https://example.com/sign-in?x=1"},
				time.Minute, result), nil)
			w.connected()
			w.tell(mention("find them"))
			m, id := w.form()
			if !strings.Contains(m.Blocks, `"url":"https://example.com/sign-in?x=1"`) ||
				!strings.Contains(m.Blocks, "on the host example.com.") {
				t.Errorf("%s", m.Blocks)
			}
			w.click(ken, m, "hako_page", id)
			w.click(ken, m, "hako_form", id) // there is none
			w.click(ken, m, action, id)
			if f := <-result; f.err != nil || f.answer.Action != want {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestLateTrigger: a modal that Slack does not open any more is asked for once more.
func TestLateTrigger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.slack.LateTriggers = true
	result := make(chan filled, 1)
	w.start(curious(t, elicitation.Request{Message: "Who?", Schema: []byte(nameForm)}, time.Minute, result), nil)
	w.connected()
	thread := w.tell(mention("find them"))
	m, id := w.form()
	w.click(ken, m, "hako_form", id)
	if told := w.answered("press the button again"); told.Ephemeral != ken {
		t.Errorf("%+v", told)
	}
	w.click(ken, slack.Message{Channel: general, Thread: thread}, "hako_stop", slack.Team+":"+general+":"+thread)
	if f := <-result; f.err == nil {
		t.Errorf("%+v", f)
	}
	w.answered("No longer needed")
}

// TestFormExpires: nobody's answer is none, and says so.
func TestFormExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	result := make(chan filled, 1)
	w.start(curious(t, elicitation.Request{Message: "Who?", Schema: []byte(nameForm)}, 2*time.Second, result), nil)
	w.connected()
	w.tell(mention("find them"))
	if f := <-result; f.err == nil {
		t.Errorf("%+v", f)
	}
	w.answered("Nobody answered in time")
}

// TestFormByReplicas: whichever replica Slack tells of a click or of a modal, the one that asked gets the answer.
func TestFormByReplicas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	result := make(chan filled, 1)
	e := curious(t, elicitation.Request{Message: "Who?", Schema: []byte(nameForm)}, time.Minute, result)
	for range 2 {
		w.start(e, nil)
	}
	w.wait("two connections", func() bool { return w.slack.Connections() == 2 })
	w.tell(mention("find them"))
	m, id := w.form()
	for n := range 3 { // to one after the other
		w.click(ken, m, "hako_form", id)
		w.view(n + 1)
	}
	for range 3 {
		if got := w.submit(ken, w.view(2), typed("longer than ten")); !strings.Contains(got, "at most 10") {
			t.Errorf("%s", got)
		}
	}
	w.submit(ken, w.view(3), typed("Ken"))
	if f := <-result; f.err != nil || f.answer.Content["name"] != "Ken" {
		t.Errorf("%+v", f)
	}
}
