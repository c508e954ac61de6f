package page

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/hako-run/hako/internal/fakes/slack"
)

// Bounds of requests, in bytes.
const (
	maxRequest = 64 << 10
	maxUpload  = 20 << 20
)

// act is what a person does.
type act struct {
	Channel string   `json:"channel"`
	Thread  string   `json:"thread"`
	TS      string   `json:"ts"`
	Text    string   `json:"text"`
	Files   []string `json:"files"`
	Action  string   `json:"action"`
	Value   string   `json:"value"`
}

// take is a handler that does what a person does in a channel that they are in.
func (p *page) take(do func(ctx context.Context, me string, a *act) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		me, err := p.person(r)
		a := new(act)
		if err == nil {
			err = json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(a)
		}
		in := func(c channel) bool { return c.ID == a.Channel }
		if err == nil && !slices.ContainsFunc(p.workspace(me).Channels, in) {
			err = errors.New("you are not in that channel")
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := do(r.Context(), me, a); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// say writes a message. The app is told of it in a direct message, and where it is mentioned.
func (p *page) say(ctx context.Context, me string, a *act) error {
	said := slack.Said{User: me, Channel: a.Channel, Thread: a.Thread, Text: p.mentions(a.Text)}
	for _, id := range a.Files {
		if _, ok := p.Slack.File(id); ok {
			said.Files = append(said.Files, id)
		}
	}
	if !strings.HasPrefix(a.Channel, "D") && !strings.Contains(said.Text, "<@"+p.Bot+">") {
		p.Slack.Say(said)
		return nil
	}
	_, err := p.Slack.Tell(ctx, said)
	return err
}

var mention = regexp.MustCompile(`@[\pL\pN._-]+`)

// mentions is text as Slack sends it: escaped, and with people by their IDs.
func (p *page) mentions(text string) string {
	text = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
	return mention.ReplaceAllStringFunc(text, func(name string) string {
		if name == "@"+p.BotName {
			return "<@" + p.Bot + ">"
		}
		for _, u := range p.Slack.Users() {
			if name == "@"+u.Name {
				return "<@" + u.ID + ">"
			}
		}
		return name
	})
}

func (p *page) command(ctx context.Context, me string, a *act) error {
	name, rest, _ := strings.Cut(strings.TrimSpace(a.Text), " ")
	_, err := p.Slack.Command(ctx, me, a.Channel, name, strings.TrimSpace(rest))
	return err
}

func (p *page) press(ctx context.Context, me string, a *act) error {
	for _, m := range p.Slack.Messages() {
		if m.Channel == a.Channel && m.TS == a.TS {
			return p.Slack.Click(ctx, me, m, a.Action, a.Value)
		}
	}
	return errors.New("there is no such message")
}

func (p *page) stop(ctx context.Context, me string, a *act) error {
	return p.Slack.Stop(ctx, me, a.Channel, a.Thread)
}

// upload takes a file, to be sent with the next message.
func (p *page) upload(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxUpload))
	if err != nil {
		http.Error(w, "the file is too large", http.StatusRequestEntityTooLarge)
		return
	}
	id := p.Slack.AddFile(p.FileURL, r.URL.Query().Get("name"), r.Header.Get("Content-Type"), data)
	_ = json.NewEncoder(w).Encode(map[string]string{"id": id}) // the browser is gone if it fails
}
