package main

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/fakes/fault"
	"github.com/hako-run/hako/dev/fakes/github"
	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/pdktest"
)

// serve starts a fake of GitHub. The token is put in here; in earnest the host does it.
func serve(t *testing.T, token string) (*github.Server, func(repository string, in issue) *abi.Response) {
	t.Helper()
	fake := github.New()
	fake.AddToken("good", true)
	fake.AddRepository("hako-run/demo")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+token)
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return fake, func(repository string, in issue) *abi.Response {
		return pdktest.CallTool(t, "github_create_issue", in,
			pdktest.Options{Config: map[string]string{"api_url": server.URL, "repository": repository}})
	}
}

func TestCreate(t *testing.T) {
	fake, call := serve(t, "good")
	r := call("hako-run/demo", issue{"It leaks", "Steps: …", []string{"bug"}})
	if want := `{"number":1,"html_url":"https://github.com/hako-run/demo/issues/1"}`; r.IsError ||
		string(r.StructuredContent) != want {
		t.Errorf("got %+v, want %s", r, want)
	}
	if got, want := fake.Issues("hako-run/demo"), []github.Issue{{Number: 1, Title: "It leaks", Body: "Steps: …", Labels: []string{"bug"}}}; !reflect.DeepEqual(got, want) {
		t.Errorf("GitHub has %+v, want %+v", got, want)
	}
}

func TestFailures(t *testing.T) {
	for name, test := range map[string]struct {
		token, repository string
		fault             fault.Fault
		want              string
	}{
		"wrong token": {"bad", "hako-run/demo", fault.Fault{Header: http.Header{}}, "check the token"},
		"wrong repository": {"good", "hako-run/none", fault.Fault{Header: http.Header{}},
			"whether the repository is right"},
		"too many requests": {"good", "hako-run/demo", fault.Fault{Status: 429, Body: `{"message":"slow down"}`},
			"HTTP 429: slow down"},
		"an answer is lost": {"good", "hako-run/demo", fault.Fault{Drop: true, After: true},
			"look before you try again"},
		"a proxy's page": {"good", "hako-run/demo", fault.Fault{Status: 502, Body: "<html>"},
			"look before you try again"},
	} {
		fake, call := serve(t, test.token)
		fake.Faults.Add(test.fault)
		if r := call(test.repository, issue{Title: "x"}); !r.IsError ||
			!strings.Contains(r.Content[0].Text, test.want) {
			t.Errorf("%s: got %+v, want an error with %q", name, r, test.want)
		}
	}
}
