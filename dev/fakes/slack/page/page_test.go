package page

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/slack"
)

const (
	robot   = "U00000HAKO"
	aki     = "U0000000A1"
	ken     = "U0000000K1"
	general = "C0000000G1"
	private = "C0000000P1"
)

// open serves a page, and returns a browser that has come in.
func open(t *testing.T) (*slack.Server, *httptest.Server, *http.Client) {
	t.Helper()
	s := slack.New()
	s.AddUser(slack.User{ID: aki, Name: "aki", Real: "見本 あき", Locale: "ja-JP"})
	s.AddUser(slack.User{ID: ken, Name: "ken", Real: "見本 健", Locale: "en-US"})
	s.AddUser(slack.User{ID: "U0000000G1", Name: "gone", Deleted: true})
	s.AddToken("xoxb-test", robot, "chat:write")
	s.AddChannel(general, "general", robot, aki, ken)
	s.AddChannel(private, "private", robot, aki)
	o := Options{Slack: s, Bot: robot, BotName: "hako", Token: "secret", FileURL: "http://unused"}
	server := httptest.NewServer(New(o))
	t.Cleanup(server.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Transport: server.Client().Transport}
	if status, _ := get(t, client, o.URL(server.URL)); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	return s, server, client
}

func get(t *testing.T, client *http.Client, address string) (int, string) {
	t.Helper()
	response, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// TestGuard: strangers do not come in, by whatever name or from whatever page they try.
func TestGuard(t *testing.T) {
	t.Parallel()
	_, server, friend := open(t)
	stranger := server.Client()
	for name, test := range map[string]struct {
		client *http.Client
		method string
		path   string
		change func(*http.Request)
		want   int
	}{
		"the page":           {friend, "GET", "/", nil, 200},
		"a script":           {friend, "GET", "/page.js", nil, 200},
		"without the cookie": {stranger, "GET", "/", nil, 401},
		"with another token": {stranger, "GET", "/?token=guess", nil, 401},
		"the stream without": {stranger, "GET", "/api/stream?as=" + ken, nil, 401},
		"by another name":    {friend, "GET", "/", func(r *http.Request) { r.Host = "evil.example:80" }, 403},
		"localhost":          {stranger, "GET", "/", func(r *http.Request) { r.Host = "localhost:1" }, 401},
		"from another page": {friend, "POST", "/api/messages?as=" + ken,
			func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"from another origin": {friend, "POST", "/api/messages?as=" + ken,
			func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		"as somebody who has left": {friend, "POST", "/api/messages?as=U0000000G1", nil, 400},
		"as the bot":               {friend, "POST", "/api/messages?as=" + robot, nil, 400},
		"in a channel of others": {friend, "POST", "/api/messages?as=" + ken, func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(`{"channel":"` + private + `","text":"x"}`))
		}, 400},
		"no JSON": {friend, "POST", "/api/messages?as=" + ken,
			func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(`{`)) }, 400},
		"a file that is not there": {friend, "GET", "/api/files/F1", nil, 404},
		"a modal that is not one": {friend, "POST", "/api/closings?as=" + ken, func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(`{"view":"V1"}`))
		}, 400},
		"what is written into one": {friend, "POST", "/api/submissions?as=" + ken, func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(`{"view":"V1","values":{"b":["x"]}}`))
		}, 502},
		"into one, without the cookie": {stranger, "POST", "/api/submissions?as=" + ken, nil, 401},
		"a message that is not one": {friend, "POST", "/api/presses?as=" + ken, func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(`{"channel":"` + general + `","ts":"1.1"}`))
		}, 502},
	} {
		r, err := http.NewRequestWithContext(t.Context(), test.method, server.URL+test.path,
			strings.NewReader(`{"channel":"`+general+`","text":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		if r.ContentLength = -1; test.change != nil {
			test.change(r)
		}
		response, err := test.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		csp := response.Header.Get("Content-Security-Policy")
		if response.StatusCode != test.want || !strings.Contains(csp, "default-src 'none'") ||
			strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %d, want %d; %q", name, response.StatusCode, test.want, csp)
		}
	}
}

// event reads the next event of a name from a stream.
func event(t *testing.T, stream *bufio.Reader, name string, into any) {
	t.Helper()
	for {
		line, err := stream.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(line) != "event: "+name {
			continue
		}
		data, err := stream.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(data, "data: ")), into); err != nil {
			t.Fatal(err)
		}
		return
	}
}

// TestStream: a person sees the channels that they are in, and what is for them, as it changes.
func TestStream(t *testing.T) {
	t.Parallel()
	s, server, client := open(t)
	client.Timeout = 2 * time.Minute
	s.Say(slack.Said{User: aki, Channel: private, Text: "not for ken"})
	s.Say(slack.Said{User: aki, Channel: general, Text: "for all"})
	response, err := client.Get(server.URL + "/api/stream?as=" + ken)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	stream := bufio.NewReader(response.Body)
	var space workspace
	event(t, stream, "workspace", &space)
	if space.Me != ken || len(space.People) != 2 || len(space.Channels) != 1 || space.Channels[0].Name != "general" {
		t.Errorf("%+v", space)
	}
	var messages []message
	event(t, stream, "messages", &messages)
	if len(messages) != 1 || messages[0].Text != "for all" {
		t.Errorf("%+v", messages)
	}
	answer, err := client.Post(server.URL+"/api/messages?as="+ken, "application/json",
		strings.NewReader(`{"channel":"`+general+`","text":"<b> & @aki"}`))
	if err != nil || answer.StatusCode != http.StatusNoContent {
		t.Fatal(answer, err)
	}
	_ = answer.Body.Close()
	event(t, stream, "messages", &messages)
	if len(messages) != 1 || messages[0].Author != ken || messages[0].Text != "&lt;b&gt; &amp; <@"+aki+">" {
		t.Errorf("%+v", messages)
	}
}

// TestModals: a modal is shown to whom it is for, takes what is offered alone, and goes when the app has taken it.
func TestModals(t *testing.T) {
	t.Parallel()
	s, server, client := open(t)
	client.Timeout = 2 * time.Minute
	s.AckTime = time.Minute
	told := make(chan string, 2)
	replies := make(chan string, 2)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		payload := r.FormValue("payload")
		if told <- payload; strings.Contains(payload, "view_submission") {
			_, _ = io.WriteString(w, <-replies)
		}
	}))
	t.Cleanup(app.Close)
	s.UseHTTP(app.URL, "secret")
	if err := s.Click(t.Context(), ken, slack.Message{Channel: general, TS: "1.1"}, "open", ""); err != nil {
		t.Fatal(err)
	}
	var click struct {
		Trigger string `json:"trigger_id"`
	}
	if err := json.Unmarshal([]byte(<-told), &click); err != nil {
		t.Fatal(err)
	}
	api := httptest.NewServer(s)
	t.Cleanup(api.Close)
	sent := url.Values{"token": {"xoxb-test"}, "trigger_id": {click.Trigger}, "view": {`{"type":"modal","title":{"text":"T"},"submit":{"text":"Send"},"blocks":[{"type":"input","block_id":"b",
		"label":{"text":"L"},"element":{"type":"static_select","action_id":"a","options":[{"text":{"text":"One"},"value":"1"}]}}]}`}}
	if response, err := client.PostForm(api.URL+"/api/views.open", sent); err != nil || response.Body.Close() != nil {
		t.Fatal(err)
	}
	modals := func(who string) (list []modal) {
		t.Helper()
		response, err := client.Get(server.URL + "/api/stream?as=" + who)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		event(t, bufio.NewReader(response.Body), "modals", &list)
		return list
	}
	post := func(path, body string) (int, string) {
		t.Helper()
		response, err := client.Post(server.URL+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(text)
	}
	list := modals(ken)
	if len(list) != 1 || !strings.Contains(string(list[0].View), `"title"`) || len(modals(aki)) != 0 {
		t.Fatalf("%+v", list)
	}
	view := list[0].ID
	if status, text := post("/api/submissions?as="+aki, `{"view":"`+view+`"}`); status != http.StatusBadGateway {
		t.Errorf("somebody else's: %d %s", status, text)
	}
	replies <- `{"response_action":"errors","errors":{"b":"no"}}`
	if _, text := post("/api/submissions?as="+ken, `{"view":"`+view+`","values":{"b":["7"],"other":["x"]}}`); text != `{"errors":{"b":"no"}}`+"\n" {
		t.Errorf("%s", text)
	}
	if got := <-told; !strings.Contains(got, `"values":{"b":{"a":{"selected_option":null,"type":"static_select"}}}`) {
		t.Errorf("%s", got)
	}
	replies <- ""
	if _, text := post("/api/submissions?as="+ken, `{"view":"`+view+`","values":{"b":["1"]}}`); text != `{"errors":null}`+"\n" {
		t.Errorf("%s", text)
	}
	if got := <-told; !strings.Contains(got, `"value":"1"`) || len(modals(ken)) != 0 {
		t.Errorf("%s", got)
	}
}

// TestDownload: files come down as files, whatever they are.
func TestDownload(t *testing.T) {
	t.Parallel()
	_, server, client := open(t)
	response, err := client.Post(server.URL+"/api/files?as="+ken+"&name=evil.html", "text/html",
		strings.NewReader("<script>alert(1)</script>"))
	if err != nil {
		t.Fatal(err)
	}
	var made struct{ ID string }
	if err := json.NewDecoder(response.Body).Decode(&made); err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	response, err = client.Get(server.URL + "/api/files/" + made.ID)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	h := response.Header
	if h.Get("Content-Type") != "application/octet-stream" ||
		h.Get("Content-Disposition") != "attachment; filename=evil.html" ||
		h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%v", h)
	}
}
