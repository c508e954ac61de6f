// Package fakes puts the fakes of vendors on one address, filled with made-up data, and writes the configuration
// with which hako uses them. "hako-dev fakes" serves it, so that every tool can be tried without a network and without
// an account.
package fakes

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/hako-run/hako/dev/fakes/anthropic"
	"github.com/hako-run/hako/dev/fakes/fault"
	"github.com/hako-run/hako/dev/fakes/freee"
	"github.com/hako-run/hako/dev/fakes/github"
	"github.com/hako-run/hako/dev/fakes/google"
	"github.com/hako-run/hako/dev/fakes/jma"
	"github.com/hako-run/hako/dev/fakes/kot"
	"github.com/hako-run/hako/dev/fakes/managedagents"
	"github.com/hako-run/hako/dev/fakes/openai"
	"github.com/hako-run/hako/dev/fakes/search"
	"github.com/hako-run/hako/dev/fakes/slack"
	"github.com/hako-run/hako/dev/fakes/smarthr"
	"github.com/hako-run/hako/internal/httpserver"
)

// What the fakes know of.
const (
	// Spreadsheet is shared with ServiceAccount, PrivateSpreadsheet with nobody.
	Spreadsheet        = "1HAKO-stand-in-spreadsheet-that-is-shared"
	PrivateSpreadsheet = "1HAKO-stand-in-spreadsheet-that-is-private"
	ServiceAccount     = "hako@example.iam.gserviceaccount.com"
	// SlackUser is a member of the workspace, SlackGone one who has left.
	SlackUser = "U0000000A1"
	SlackGone = "U0000000G1"
	// SlackColleague is another member, and SlackBot the bot. All are members of SlackChannel; SlackUser is in the
	// user group "leads".
	SlackColleague = "U0000000K1"
	SlackBot       = "U00000HAKO"
	SlackChannel   = "C0000000G1"
	// SlackAppToken is the token of the bot's app, for Socket Mode.
	SlackAppToken = "xapp-made-up-for-the-fake"
	// Repository is at GitHub.
	Repository = "hako-run/demo"
)

// The secrets that the fakes accept. They are worthless anywhere else.
const (
	slackToken   = "xoxb-made-up-for-the-fake"
	githubToken  = "github-made-up-for-the-fake"
	kotToken     = "kot-made-up-for-the-fake"
	smarthrToken = "smarthr-made-up-for-the-fake"
	modelKey     = "model-key-made-up-for-the-fake"
)

// Fakes is all of them, each below /NAME. It is an http.Handler; POST /_faults plans failures (faults.go).
type Fakes struct {
	Freee   *freee.Server
	KOT     *kot.Server
	SmartHR *smarthr.Server
	Google  *google.Server
	Slack   *slack.Server
	GitHub  *github.Server
	Search  *search.Server
	JMA     *jma.Server

	// Anthropic and OpenAI repeat the request, until they are given a script.
	Anthropic *anthropic.Server
	OpenAI    *openai.Server
	// ManagedAgents has an agent that does too.
	ManagedAgents *managedagents.Server

	mux     *http.ServeMux
	handler http.Handler // mux behind the guard of local services
	plans   map[string]*fault.Plan
}

// New returns the fakes with their made-up data.
func New() *Fakes {
	f := &Fakes{
		Freee: freee.New(nil), KOT: kot.New(&kot.Options{Token: kotToken, Now: openHours}),
		SmartHR: smarthr.New(&smarthr.Options{Token: smarthrToken}),
		Google:  newGoogle(), Slack: newSlack(), GitHub: newGitHub(), Search: newSearch(), JMA: new(jma.Server),
		Anthropic: &anthropic.Server{Key: modelKey}, OpenAI: &openai.Server{Key: modelKey},
		ManagedAgents: &managedagents.Server{Key: modelKey},
		mux:           http.NewServeMux(), plans: map[string]*fault.Plan{},
	}
	f.add("freee", f.Freee, &f.Freee.Faults)
	f.add("kot", f.KOT, &f.KOT.Faults)
	f.add("smarthr", f.SmartHR, &f.SmartHR.Faults)
	f.add("google", f.Google, &f.Google.Faults)
	f.add("slack", f.Slack, &f.Slack.Faults)
	f.add("github", f.GitHub, &f.GitHub.Faults)
	f.add("search", f.Search, &f.Search.Faults)
	f.add("jma", f.JMA, &f.JMA.Faults)
	f.add("anthropic", f.Anthropic, &f.Anthropic.Faults)
	f.add("openai", f.OpenAI, &f.OpenAI.Faults)
	f.add("managedagents", f.ManagedAgents, &f.ManagedAgents.Faults)
	f.mux.HandleFunc("POST /_faults", f.plan)
	f.mux.HandleFunc("DELETE /_faults", f.forget)
	f.handler = httpserver.LocalOnly(f.mux, "Use the address that hako-dev has printed.", slack.SocketOrigin)
	return f
}

func (f *Fakes) add(name string, handler http.Handler, plan *fault.Plan) {
	f.mux.Handle("/"+name+"/", http.StripPrefix("/"+name, handler))
	f.plans[name] = plan
}

// Names are those of the fakes.
func (f *Fakes) Names() []string { return slices.Sorted(maps.Keys(f.plans)) }

// ServeHTTP serves all of them to programs on this machine. Web pages that somebody has open there can neither plan
// failures nor change what the fakes hold.
func (f *Fakes) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.handler.ServeHTTP(w, r) }

// openHours is the clock of KING OF TIME, whose API is closed for some hours of the day: here it never is.
func openHours() time.Time {
	now := time.Now()
	if kot.Closed(now) {
		return now.Add(2 * time.Hour)
	}
	return now
}

func newGoogle() *google.Server {
	s := google.New()
	s.AddSpreadsheet(Spreadsheet, "Fake", "Sheet1", "勤怠 2026")
	s.Share(Spreadsheet, ServiceAccount, "writer")
	s.AddSpreadsheet(PrivateSpreadsheet, "Private", "Sheet1")
	return s
}

func newSlack() *slack.Server {
	s := slack.New()
	s.AddToken(slackToken, SlackBot, "im:write", "chat:write", "users:read", "users:read.email", "usergroups:read",
		"channels:history", "files:read", "files:write")
	s.UseSocketMode(SlackAppToken)
	s.AddUser(slack.User{ID: SlackUser, Name: "aki", Real: "見本 あき", Email: "aki@example.com", Locale: "ja-JP"})
	s.AddUser(slack.User{ID: SlackColleague, Name: "ken", Real: "見本 健", Email: "ken@example.com", Locale: "en-US"})
	s.AddUser(slack.User{ID: SlackGone, Name: "gone", Real: "見本 太郎", Deleted: true})
	s.AddChannel(SlackChannel, "general", SlackBot, SlackUser, SlackColleague)
	s.AddDM("D0000000A1", SlackUser, SlackBot)
	s.AddDM("D0000000K1", SlackColleague, SlackBot)
	s.AddGroup("leads", SlackUser)
	return s
}

func newGitHub() *github.Server {
	s := github.New()
	s.AddToken(githubToken, true)
	s.AddRepository(Repository)
	return s
}

func newSearch() *search.Server {
	return &search.Server{Pages: []search.Page{
		{Title: "Bento boxes", URL: "https://bento.example/", Content: "A box for lunch, with room for rice."},
		{Title: "Sandboxes", URL: "https://sandbox.example/", Content: "A box for programs that nobody has to trust."},
		{Title: "箱の作り方", URL: "https://hako.example/", Content: "木の箱を作る手順。"},
	}}
}
