package play

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/hako-run/hako/dev/fakes/slack"
)

const (
	robot   = "U00000HAKO"
	ken     = "U0000000K1"
	general = "C0000000G1"
)

// view is a modal with a field of each kind.
const view = `{"type":"modal","callback_id":"c","private_metadata":"p","title":{"type":"plain_text","text":"Rooms"},
	"submit":{"type":"plain_text","text":"Send"},"close":{"type":"plain_text","text":"Later"},"blocks":[
	{"type":"section","text":{"type":"plain_text","text":"Which one?"}},
	{"type":"input","block_id":"b0","label":{"text":"Your name"},"element":{"type":"plain_text_input","action_id":"value","initial_value":"Ken"}},
	{"type":"input","block_id":"b1","label":{"text":"Room"},"element":{"type":"static_select","action_id":"value",
		"options":[{"text":{"text":"North"},"value":"0"},{"text":{"text":"South"},"value":"1"}],"initial_option":{"text":{"text":"South"},"value":"1"}}},
	{"type":"input","block_id":"b2","optional":true,"label":{"text":"Extras"},"element":{"type":"multi_static_select","action_id":"value",
		"options":[{"text":{"text":"tea"},"value":"0"},{"text":{"text":"board"},"value":"1"}]}},
	{"type":"input","block_id":"b3","label":{"text":"Sure"},"element":{"type":"radio_buttons","action_id":"value",
		"options":[{"text":{"text":"Yes"},"value":"true"},{"text":{"text":"No"},"value":"false"}]}}]}`

// bot is an app that asks with a modal, and does not take one without a yes.
type bot struct {
	t    *testing.T
	api  string
	work sync.WaitGroup

	mu        sync.Mutex
	asked, ts string // the messages with the button and with the answer
	state     string // of the modal that it took
}

func (b *bot) call(method string, form url.Values) string {
	r, err := http.NewRequestWithContext(context.WithoutCancel(b.t.Context()), "POST", b.api+method,
		strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Error(err)
		return ""
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "Bearer xoxb-test")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Error(err)
		return ""
	}
	defer response.Body.Close()
	var answer struct {
		OK        bool
		Error, TS string
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || !answer.OK {
		b.t.Errorf("%s: %s %v", method, answer.Error, err)
	}
	return answer.TS
}

func (b *bot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		b.t.Error(err)
	}
	var told struct {
		Type    string
		Trigger string `json:"trigger_id"`
		Event   struct{ TS string }
		View    struct{ State json.RawMessage }
		Actions []struct {
			ID string `json:"action_id"`
		}
	}
	if form, err := url.ParseQuery(string(body)); err == nil && form.Has("payload") {
		body = []byte(form.Get("payload"))
	}
	if err := json.Unmarshal(body, &told); err != nil {
		b.t.Error(err)
	}
	switch told.Type {
	case "event_callback":
		b.work.Go(func() { b.ask(told.Event.TS) })
	case "block_actions":
		if told.Actions[0].ID != "hako_form" { // the button of a page
			return
		}
		b.work.Go(func() { b.call("views.open", url.Values{"trigger_id": {told.Trigger}, "view": {view}}) })
	case "view_submission":
		if !strings.Contains(string(told.View.State), `"value":"true"`) {
			_, _ = io.WriteString(w, `{"response_action":"errors","errors":{"b3":"Be sure.","b9":"Elsewhere."}}`)
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.state = string(told.View.State)
		b.work.Go(b.answer)
	}
}

func (b *bot) ask(thread string) {
	at := url.Values{"channel": {general}, "thread_ts": {thread}}
	with := func(name, value string) url.Values {
		form := url.Values{name: {value}}
		for key, values := range at {
			form[key] = values
		}
		return form
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	stream := with("chunks", `[{"type":"task_update","id":"1","title":"Book","status":"pending"}]`)
	stream.Set("recipient_user_id", ken)
	stream.Set("recipient_team_id", slack.Team)
	b.ts = b.call("chat.startStream", stream)
	b.asked = b.call("chat.postMessage", with("blocks", `[{"type":"actions","elements":[{"type":"button","action_id":"hako_form","text":{"text":"Answer"},"value":"1"},
		{"type":"button","action_id":"hako_page","text":{"text":"Open"},"value":"1","url":"https://rooms.example"}]}]`))
	b.call("agents.sessions.setStatus", url.Values{"channel_id": {general}, "thread_ts": {thread},
		"status": {"suspended"}})
}

func (b *bot) answer() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.call("chat.update", url.Values{"channel": {general}, "ts": {b.asked}, "text": {"Answered."}, "blocks": {"[]"}})
	b.call("chat.stopStream", url.Values{"channel": {general}, "ts": {b.ts}, "markdown_text": {"Booked."}})
}

// stand is a fake with the bot in it.
func stand(t *testing.T) (*slack.Server, *bot) {
	t.Helper()
	s := slack.New()
	s.AddUser(slack.User{ID: ken, Name: "ken"})
	s.AddToken("xoxb-test", robot, "chat:write")
	s.AddChannel(general, "general", robot, ken)
	s.AckTime = patience
	api := httptest.NewServer(s)
	t.Cleanup(api.Close)
	b := &bot{t: t, api: api.URL + "/api/"}
	app := httptest.NewServer(b)
	t.Cleanup(app.Close)
	t.Cleanup(b.work.Wait)
	s.UseHTTP(app.URL, "secret")
	return s, b
}

// TestModal: a modal is filled in, sent back with what is wrong, corrected and taken.
func TestModal(t *testing.T) {
	t.Parallel()
	s, b := stand(t)
	var out strings.Builder
	err := Scene(t.Context(), s, robot, "hako", strings.NewReader(`ken in #general: @hako book
ken presses Open
ken presses Answer
ken presses Later
ken presses Answer
ken fills in Your name:
ken fills in Extras: board, tea
ken presses Send
ken fills in Sure: Yes
ken fills in Room: North
ken fills in Your name: Ken: the first
ken presses Send`), &out)
	if err != nil {
		t.Fatal(err, out.String())
	}
	for _, want := range []string{
		"modal of ken  Rooms\n    Which one?\n    [Your name: Ken]\n    [Room: South (North, South)]\n    [Extras (optional): (tea, board)]\n    [Sure: (Yes, No)]\n    ( Send )  ( Later )\n",
		"[Sure: (Yes, No)]\n      ! Be sure.\n    ! Elsewhere.\n", "Booked.",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	want := `{"values":{"b0":{"value":{"type":"plain_text_input","value":"Ken: the first"}},"b1":{"value":{"selected_option":{"text":{"emoji":true,"text":"North","type":"plain_text"},"value":"0"},"type":"static_select"}},` +
		`"b2":{"value":{"selected_options":[{"text":{"emoji":true,"text":"tea","type":"plain_text"},"value":"0"},{"text":{"emoji":true,"text":"board","type":"plain_text"},"value":"1"}],"type":"multi_static_select"}},` +
		`"b3":{"value":{"selected_option":{"text":{"emoji":true,"text":"Yes","type":"plain_text"},"value":"true"},"type":"radio_buttons"}}}}`
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != want {
		t.Errorf("%s", b.state)
	}
}

// TestModalErrors: a line about a modal that cannot be meant says why.
func TestModalErrors(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"ken fills in Colour: red":                    `line 3: the modal has no field "Colour"`,
		"ken fills in Room: Attic":                    `line 3: "Room" has no option "Attic": it has North, South`,
		"ken presses Later\nken fills in Room: North": `line 4: there is no modal to fill in "Room"`,
		"ken presses Paint":                           `line 3: there is no button "Paint"`,
	} {
		s, _ := stand(t)
		err := Scene(t.Context(), s, robot, "hako",
			strings.NewReader("ken in #general: @hako book\nken presses Answer\n"+line), io.Discard)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v", line, err)
		}
	}
}
