package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/fakes/fault"
	"github.com/hako-run/hako/dev/fakes/slack"
	"github.com/hako-run/hako/pdk/pdktest"
)

func (w *workspace) find(t *testing.T, name string) (found, string) {
	t.Helper()
	r := pdktest.CallTool(t, "find_slack_user", findArguments{name},
		pdktest.Options{Config: map[string]string{"base_url": w.url + "/api/"}, Locale: "en"})
	if r.IsError {
		return found{}, text(r)
	}
	var f found
	if err := json.Unmarshal(r.StructuredContent, &f); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(r.StructuredContent), "@example.com") {
		t.Errorf("the answer has an e-mail address: %s", r.StructuredContent)
	}
	return f, ""
}

// TestFind holds who is found by which name, the best match first, and that neither bots, nor people who are gone, nor
// e-mail addresses are in an answer.
func TestFind(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	for _, u := range []slack.User{
		{ID: aki, Name: "aki", Real: "田中 亜紀", Email: "aki@example.com"},
		{ID: "U0000000A2", Name: "akira.s", Real: "Akira Sato", Email: "akira@example.com"},
		{ID: "U0000000A3", Name: "sato", Real: "佐藤　健", Email: "ken@example.com"},
		{ID: "U0000000A6", Name: "j.v", Real: "バルガス ホセ"},
		{ID: "U0000000A4", Name: "aki.old", Real: "Aki", Deleted: true},
		{ID: "U0000000A5", Name: "aki bot", Real: "Aki", Bot: true},
	} {
		w.AddUser(u)
	}
	for name, want := range map[string]string{
		"aki": aki + " U0000000A2", "@Aki": aki + " U0000000A2", "田中": aki, "田中亜紀": aki, "亜": aki, "佐藤 健": "U0000000A3",
		"Sato": "U0000000A3 U0000000A2", "nobody": "", "aki@example.com": "", "ａｋｉ": aki + " U0000000A2", "＠Ｓａｔｏ": "U0000000A3 U0000000A2",
		"ﾊﾞﾙｶﾞｽ": "U0000000A6", "ハ\u3099ルカ\u3099ス": "U0000000A6",
	} {
		f, failed := w.find(t, name)
		var got []string
		for _, u := range f.Users {
			got = append(got, u.User)
		}
		if failed != "" || strings.Join(got, " ") != want || f.Total != len(got) ||
			(len(got) == 1) != (len(f.Notes) == 0) {
			t.Errorf("%s: %v, notes %q %s, want %s", name, got, f.Notes, failed, want)
		}
	}
}

// TestFindInALargeWorkspace checks that all pages are read, and that an answer names only so many people.
func TestFindInALargeWorkspace(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	for i := range 2500 {
		w.AddUser(slack.User{ID: fmt.Sprintf("U1%08d", i), Name: fmt.Sprint("person", i),
			Real: fmt.Sprint("Person ", i)})
	}
	if f, _ := w.find(t, "Person 2499"); f.Total != 1 || f.Users[0].User != "U100002499" {
		t.Errorf("got %+v", f)
	}
	if f, _ := w.find(t, "person"); f.Total != 2500 || len(f.Users) != maxFound {
		t.Errorf("%d of %d people", len(f.Users), f.Total)
	}
}

func TestFindFails(t *testing.T) {
	t.Parallel()
	for want, planned := range map[string]fault.Fault{
		"try again in 30 seconds":   {Status: 429},
		"users:read":                {Body: `{"ok":false,"error":"missing_scope","needed":"users:read","provided":"chat:write"}`},
		"HTTP 503":                  {Status: 503},
		"not of the expected shape": {Body: `{"ok":true}`},
	} {
		w := newWorkspace(t)
		w.Faults.Add(planned)
		if _, got := w.find(t, "aki"); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
