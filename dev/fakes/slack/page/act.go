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

	"github.com/hako-run/hako/dev/fakes/slack"
)

// Bounds of requests, in bytes.
const (
	maxRequest = 64 << 10
	maxUpload  = 20 << 20
)

// act is an action of a person.
type act struct {
	Channel string   `json:"channel"`
	Thread  string   `json:"thread"`
	TS      string   `json:"ts"`
	Text    string   `json:"text"`
	Files   []string `json:"files"`
	Action  string   `json:"action"`
	Value   string   `json:"value"`
}

// read reads who a request comes from, and what they do.
func (p *page) read(w http.ResponseWriter, r *http.Request, into any) (me string, err error) {
	if me, err = p.person(r); err == nil {
		err = json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(into)
	}
	return me, err
}

// take is a handler that does what a person does in a channel that they are in.
func (p *page) take(do func(ctx context.Context, me string, a *act) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a := new(act)
		me, err := p.read(w, r, a)
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

// say writes a message. The app gets an event for a direct message, and for a mention.
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

// submit sends a modal, and answers what is wrong with it, by block. Without any of that it is closed.
func (p *page) submit(w http.ResponseWriter, r *http.Request) {
	var sent struct {
		View   string              `json:"view"`
		Values map[string][]string `json:"values"`
	}
	me, err := p.read(w, r, &sent)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	problems, err := p.Slack.Fill(r.Context(), me, sent.View, sent.Values)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": problems}) // the browser is gone if it fails
}

// leave closes a modal.
func (p *page) leave(w http.ResponseWriter, r *http.Request) {
	var left struct {
		View string `json:"view"`
	}
	me, err := p.read(w, r, &left)
	if err == nil {
		err = p.Slack.CloseView(me, left.View)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
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
