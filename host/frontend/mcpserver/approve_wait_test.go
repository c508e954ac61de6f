package mcpserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/abi"
)

// late is a person who says yes when the form is taken away, or when told to.
func late(now <-chan struct{}) (who person, asked, answers chan struct{}) {
	asked, answers = make(chan struct{}, 100), make(chan struct{}, 100)
	return func(ctx context.Context, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		asked <- struct{}{}
		select {
		case <-ctx.Done():
		case <-now:
		}
		answers <- struct{}{}
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
	}, asked, answers
}

// inSessions runs a test over each transport in protocol versions with sessions, in which calls wait for answers.
func inSessions(t *testing.T, run func(t *testing.T, frontend frontend)) {
	t.Helper()
	for _, frontend := range frontends {
		t.Run(frontend.name, func(t *testing.T) {
			t.Parallel()
			run(t, frontend)
		})
	}
}

// expectNothingWaits waits until no question waits.
func (g *governed) expectNothingWaits(t *testing.T) {
	t.Helper()
	none := func() bool {
		waiting, err := g.approvals.Waiting(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(waiting) == 0
	}
	if !testwait.Until(t, none) {
		t.Fatal("questions still wait")
	}
}

// TestNoAnswer: no answer in time is a no, and a late one changes nothing.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	inSessions(t, func(t *testing.T, frontend frontend) {
		g := newGoverned(t, askingPolicy, nil, nil)
		now := make(chan struct{})
		who, asked, answers := late(now)
		session := frontend.connect(t, g.Server, withSessions, who.options())
		for timeout := 50 * time.Millisecond; len(asked) == 0; timeout *= 2 { // where the time is over before the form is there, nobody is asked
			g.approvals.SetDefaults(timeout, false)
			result := callWith(t, session, "erase", 1)
			if got := textOf(t, result); !result.IsError || !strings.Contains(got, "nobody agreed to it in time") {
				t.Errorf("%v, %q", result.IsError, got)
			}
		}
		if frontend.name == "HTTP" { // the news that the form is no longer needed may be too late for the call's stream
			close(now)
		}
		<-answers
		if result := callWith(t, session, "look", 1); result.IsError || g.done.Load() != 1 {
			t.Errorf("%v, %d calls", result.Content, g.done.Load())
		}
	})
}

// TestCallIsCancelled: with the call goes the question, and a late answer changes nothing. Whether the form goes is up
// to the client.
func TestCallIsCancelled(t *testing.T) {
	t.Parallel()
	inSessions(t, func(t *testing.T, frontend frontend) {
		g := newGoverned(t, askingPolicy, nil, nil)
		now := make(chan struct{})
		who, asked, answers := late(now)
		session := frontend.connect(t, g.Server, withSessions, who.options())
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-asked
			cancel()
		}()
		if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "erase"}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		g.expectNothingWaits(t)
		close(now)
		<-answers
		if callWith(t, session, "look", 1); g.done.Load() != 1 {
			t.Errorf("%d calls", g.done.Load())
		}
	})
}

// TestClientIsGone: who has left is not waited for.
func TestClientIsGone(t *testing.T) {
	t.Parallel()
	g := newGoverned(t, askingPolicy, nil, nil)
	base := listen(t, g.Server)
	send := func(ctx context.Context, body, session string) *http.Response {
		t.Helper()
		r := post(withSessions, body, "Mcp-Session-Id", session)
		sent, err := http.NewRequestWithContext(ctx, http.MethodPost, base+Path, r.Body)
		if err != nil {
			t.Fatal(err)
		}
		sent.Header = r.Header
		response, err := web.Do(sent)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		return response
	}
	able := strings.Replace(initialize(withSessions), `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1)
	session := send(t.Context(), able, "").Header.Get("Mcp-Session-Id")
	ctx, leave := context.WithCancel(t.Context())
	stream := bufio.NewScanner(send(ctx, message(withSessions, 1, "tools/call", `{"name":"erase"}`), session).Body)
	for stream.Scan() && !strings.Contains(stream.Text(), "elicitation/create") {
	}
	if waiting, err := g.approvals.Waiting(t.Context(), nil); err != nil || len(waiting) != 1 {
		t.Fatalf("%d questions wait, %v", len(waiting), err)
	}
	leave()
	g.expectNothingWaits(t)
	if g.done.Load() != 0 {
		t.Error("the call was made")
	}
}

// TestOperatorAnswers: where the client cannot ask, others may be. The call waits, and says so.
func TestOperatorAnswers(t *testing.T) {
	t.Parallel()
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		g := newGoverned(t, askingPolicy, &approval.Options{Operators: true}, nil)
		told := make(chan string, 10)
		session := frontend.connect(t, g.Server, version, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context,
				req *mcp.ProgressNotificationClientRequest) {
				told <- req.Params.Message
			},
		})
		g.approvals.Watch(nil, func(q *approval.Question) {
			go func() {
				if got := <-told; got != "Waiting for approval." {
					t.Errorf("told %q", got)
				}
				if err := g.approvals.Answer(context.Background(), q.ID, approval.Answer{Yes: true, By: approval.Person{User: "op", Operator: true}}); err != nil {
					t.Error(err)
				}
			}()
		})
		params := &mcp.CallToolParams{Name: "erase"}
		params.SetProgressToken("tok")
		result, err := session.CallTool(t.Context(), params)
		if err != nil || textOf(t, result) != "done" {
			t.Errorf("%+v, %v", result, err)
		}
	})
}

// wiping is a tool that asks while it runs.
type wiping struct{}

func (wiping) Call(ctx context.Context, invocation *catalog.Invocation) (*abi.Response, error) {
	if err := invocation.Ask(ctx, broker.Question{Text: "rm -r x", Rule: "removes", Reason: "it removes"}); err != nil {
		return text("not done: %v", err), nil
	}
	return text("done"), nil
}

// TestQuestionsDuringCalls: the form goes out in the middle of the call, which waits for it, in both versions.
func TestQuestionsDuringCalls(t *testing.T) {
	t.Parallel()
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		c := new(catalog.Catalog)
		m := &manifest.Manifest{Name: "wiper", Version: "1.0.0", Description: manifest.Text{"en": "A test."},
			Tools: []manifest.Tool{tool("wipe")}}
		if err := errors.Join(m.Validate(), c.Put(catalog.Source{Name: m.Name, Backend: wiping{}, Asks: true}, m)); err != nil {
			t.Fatal(err)
		}
		asked := ""
		session := frontend.connect(t, govern(t, c, "version: 1", nil, nil).Server, version,
			person(func(_ context.Context, form *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				asked = form.Message
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
			}).options())
		if got := textOf(t, callWith(t, session, "wipe", 1)); got != "done" || !strings.Contains(asked, "rm -r x") {
			t.Errorf("%q; asked %q", got, asked)
		}
	})
}

// TestAnswersOfOthers: in protocol versions without sessions, an answer counts from who may give it.
func TestAnswersOfOthers(t *testing.T) {
	t.Parallel()
	now := time.Now()
	aki, akiHash := bearer.New()
	ben, benHash := bearer.New()
	namesake, namesakeHash := bearer.New()
	g := newGoverned(t, askingPolicy, &approval.Options{Now: func() time.Time { return now }},
		&Options{Auth: newAuth(t, auth.Options{Tokens: []bearer.Token{
			{Name: "aki", Hash: akiHash}, {Name: "ben", Hash: benHash}, {Name: "other", User: "aki", Tenant: "acme",
				Hash: namesakeHash},
		}})})
	h := g.Handler()
	send := func(token, more string) string {
		body := message(withoutSessions, 1, "tools/call", `{"name":"erase","arguments":{"n":1}`+more+`}`)
		body = strings.Replace(body, `clientCapabilities":{}`, `clientCapabilities":{"elicitation":{"form":{}}}`, 1)
		return string(answerOf(t, do(h, post(withoutSessions, body, "Authorization", "Bearer "+token))).Result)
	}
	ask := func() (reply string) {
		id := questionID.FindString(send(aki, ""))
		return fmt.Sprintf(`,"requestState":%q,"inputResponses":{"approval":{"action":"accept","content":{"approve":true}}}`, id)
	}
	expect := func(name, got, want string) {
		t.Helper()
		if !strings.Contains(got, want) || strings.Contains(got, `"isError":true`) == (want == "done") {
			t.Errorf("%s: %s", name, got)
		}
	}
	reply := ask()
	expect("another user", send(ben, reply), "this approval is for another call")
	expect("a user of that name of a tenant", send(namesake, reply), "this approval is for another call")
	expect("the one who was asked", send(aki, reply), "done")
	expect("a second time", send(aki, reply), "there is no such question")
	reply = ask()
	now = now.Add(6 * time.Minute)
	expect("too late", send(aki, reply), "there is no such question, or it has been answered, has expired")
	if g.done.Load() != 1 {
		t.Errorf("%d calls", g.done.Load())
	}
}

// TestResourcesAndPromptsAsk: what is no tool is asked about the same way.
func TestResourcesAndPromptsAsk(t *testing.T) {
	t.Parallel()
	const rules = `
version: 1
rules:
  - {name: reads, action: ask, tools: [resources/read, prompts/get]}
`
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		for _, yes := range []bool{true, false} {
			g := govern(t, offerAll(t, serveEverything, everything()), rules, nil, nil)
			session := frontend.connect(t, g.Server, version,
				answering("accept", map[string]any{"approve": yes}).options())
			_, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://fixed"})
			if (err == nil) != yes || err != nil && !strings.Contains(err.Error(), "it was refused") {
				t.Errorf("a resource, %t: %v", yes, err)
			}
			_, err = session.GetPrompt(t.Context(),
				&mcp.GetPromptParams{Name: "ask", Arguments: map[string]string{"topic": "it"}})
			if (err == nil) != yes || err != nil && !strings.Contains(err.Error(), "it was refused") {
				t.Errorf("a prompt, %t: %v", yes, err)
			}
		}
	})
}

// TestWhoMayBeAsked: the SDK takes no call, whether somebody can be asked about it or not.
func TestWhoMayBeAsked(t *testing.T) {
	t.Parallel()
	g := newGoverned(t, askingPolicy, &approval.Options{Timeout: time.Millisecond}, nil) // nobody answers
	bySDK, h := countBySDK(g.Server), g.Handler()
	for name, test := range map[string]struct{ tool, capabilities string }{
		"never asked about":       {"look", `{"elicitation":{}}`},
		"denied":                  {"secret", `{"elicitation":{}}`},
		"asked about":             {"erase", `{"elicitation":{}}`},
		"sometimes asked about":   {"move", `{"elicitation":{"form":{}}}`},
		"asked about, no forms":   {"erase", `{}`},
		"asked about, pages only": {"erase", `{"elicitation":{"url":{}}}`},
	} {
		body := strings.Replace(message(withoutSessions, 1, "tools/call",
			`{"name":"`+test.tool+`","arguments":{"n":1}}`),
			`clientCapabilities":{}`, `clientCapabilities":`+test.capabilities, 1)
		before := bySDK.Load()
		if w := do(h, post(withoutSessions, body)); w.Code != http.StatusOK || bySDK.Load() != before {
			t.Errorf("%s: %d, %d by the SDK", name, w.Code, bySDK.Load()-before)
		}
		opening := strings.Replace(initialize(withSessions), `"capabilities":{}`, `"capabilities":`+test.capabilities,
			1)
		session := do(h, post(withSessions, opening)).Header().Get("Mcp-Session-Id")
		before = bySDK.Load()
		do(h, post(withSessions, message(withSessions, 1, "tools/call", `{"name":"`+test.tool+`","arguments":{"n":1}}`),
			"Mcp-Session-Id", session))
		if bySDK.Load() != before {
			t.Errorf("%s, with a session: %d by the SDK", name, bySDK.Load()-before)
		}
	}
}

// TestLanguageOfForms: people are asked in their language, where the client says which.
func TestLanguageOfForms(t *testing.T) {
	t.Parallel()
	g := newGoverned(t, askingPolicy, nil, nil)
	body := strings.Replace(message(withoutSessions, 1, "tools/call", `{"name":"erase"}`), `clientCapabilities":{}`,
		`clientCapabilities":{"elicitation":{}}`, 1)
	for language, want := range map[string]string{"ja-JP, en;q=0.5": "この呼び出しを許可する", "en": "Allow this call", "": "Allow this call"} {
		answer := string(answerOf(t, do(g.Handler(), post(withoutSessions, body, "Accept-Language", language))).Result)
		if !strings.Contains(answer, want) || strings.Contains(want, "許可") != strings.Contains(answer, "依頼者") {
			t.Errorf("%q: %s", language, answer)
		}
	}
}
