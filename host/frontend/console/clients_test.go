package console_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/frontend/connection"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/frontend/slackbot"
)

// clients are connected MCP clients.
type clients struct{ list []connection.Client }

func (c *clients) Clients(context.Context) ([]connection.Client, error) { return c.list, nil }

func (c *clients) EndClient(_ context.Context, key string) (bool, error) {
	for i, one := range c.list {
		if one.ID == key {
			c.list = append(c.list[:i:i], c.list[i+1:]...)
			return true, nil
		}
	}
	return false, nil
}

func TestClients(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("a1", 32)
	connected := &clients{[]connection.Client{
		{Name: "Inspector", Version: "0.9", Protocol: "2025-11-25", Opened: time.Unix(1, 0)},
		{ID: key, Name: payload, Protocol: "2025-06-18", User: "aki", Tenant: "acme", Here: true, Calls: 7, Requests: 1},
	}}
	var log *journal
	w := newWorld(t, func(_ *world, o *console.Options) {
		o.Clients = connected
		o.Slack = func() []slackbot.Status {
			return []slackbot.Status{{Name: "acme", State: slackbot.Down, Error: payload}}
		}
		log = o.Journal.(*journal)
	})
	viewer := w.as(console.Viewer)
	var got struct {
		Items []struct {
			ID, Client, User, Tenant, Frontend string
			Calls, Requests                    int
		}
	}
	answer := viewer.get("clients")
	checkText(t, "clients", answer)
	answer.into(t, &got)
	if len(got.Items) != 2 || got.Items[0].Frontend != "mcp-stdio" || got.Items[1].ID != key ||
		got.Items[1].Frontend != "mcp-http" || got.Items[1].Calls != 7 || got.Items[1].Requests != 1 ||
		got.Items[1].Tenant != "acme" {
		t.Errorf("%+v", got)
	}

	slack := viewer.get("slack")
	checkText(t, "slack", slack)
	if !strings.Contains(slack.body, `"state":"down"`) {
		t.Errorf("Slack: %s", slack.body)
	}

	end := "clients/" + key + "/end"
	admin := w.as(console.Admin)
	refused := map[string]*answerTo{
		"a viewer":         {viewer.post(end, "{}"), "forbidden"},
		"an approver":      {w.as(console.Approver).post(end, "{}"), "forbidden"},
		"nobody":           {w.browser().post(end, "{}"), "unauthenticated"},
		"another site":     {admin.do("POST", end, "{}", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }), "csrf"},
		"without CSRF":     {admin.do("POST", end, "{}", func(r *http.Request) { r.Header.Del("X-Hako-CSRF") }), "csrf"},
		"no session":       {admin.post("clients/"+strings.Repeat("b2", 32)+"/end", "{}"), "not_found"},
		"the one on stdio": {admin.post("clients/%20/end", "{}"), "not_found"},
	}
	for name, test := range refused {
		if test.answer.code() != test.code {
			t.Errorf("%s: %d %s", name, test.answer.status, test.answer.body)
		}
	}
	log.fail = context.DeadlineExceeded
	if got := admin.post(end, "{}"); got.code() != "unavailable" || len(connected.list) != 2 {
		t.Errorf("unrecorded: %d %s, %d clients", got.status, got.body, len(connected.list))
	}
	log.fail = nil
	if got := admin.post(end, "{}"); got.status != http.StatusOK || len(connected.list) != 1 {
		t.Errorf("%d %s, %d clients", got.status, got.body, len(connected.list))
	}
	if records := w.records(); !strings.Contains(records, "session.end ok admin") {
		t.Errorf("not recorded: %s", records)
	}
}

// answerTo is an answer with the code that it has to have.
type answerTo struct {
	answer *answer
	code   string
}
