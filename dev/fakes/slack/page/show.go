package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/dev/fakes/slack"
)

// workspace is a person's view of the workspace, without messages.
type workspace struct {
	Me       string    `json:"me"`
	Bot      string    `json:"bot"`
	BotName  string    `json:"botName"`
	People   []member  `json:"people"`
	Channels []channel `json:"channels"`
}

type member struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Real   string `json:"real"`
	Locale string `json:"locale"`
}

type channel struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	DM   bool   `json:"dm"`
}

// message is one as the page shows it. Blocks and Attachments are Slack's own.
type message struct {
	TS          string          `json:"ts"`
	Channel     string          `json:"channel"`
	Thread      string          `json:"thread,omitempty"`
	Author      string          `json:"author"`
	Text        string          `json:"text,omitempty"`
	Private     bool            `json:"private,omitempty"`
	Streaming   bool            `json:"streaming,omitempty"`
	Parts       []part          `json:"parts,omitempty"`
	Blocks      json.RawMessage `json:"blocks,omitempty"`
	Attachments json.RawMessage `json:"attachments,omitempty"`
	Files       []attached      `json:"files,omitempty"`
}

// part is Markdown, or a card.
type part struct {
	Text string      `json:"text,omitempty"`
	Task *slack.Task `json:"task,omitempty"`
}

type attached struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Size int    `json:"size"`
}

// modal is one that the person sees. View is the app's own.
type modal struct {
	ID   string          `json:"id"`
	View json.RawMessage `json:"view"`
}

// gather is the time for which changes are gathered before they are sent, alive the longest pause between two messages.
const (
	gather = 30 * time.Millisecond
	alive  = 20 * time.Second
)

// stream sends what the person sees, and then what changes of it, as server-sent events: "workspace", "messages" (those
// that are new or have changed), "sessions" (statuses by "CHANNEL:THREAD") and "modals" (those that are open). The first
// "modals" comes after all that there is at first.
func (p *page) stream(w http.ResponseWriter, r *http.Request) {
	me, err := p.person(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	sent := map[string][]byte{}
	for {
		changed := p.Slack.Changed()
		if p.send(w, me, sent) != nil || out.Flush() != nil {
			return
		}
		select {
		case <-changed:
			time.Sleep(gather)
		case <-time.After(alive):
			fmt.Fprint(w, ": still here\n\n")
		case <-r.Context().Done():
			return
		}
	}
}

// send sends what differs from what was sent.
func (p *page) send(w http.ResponseWriter, me string, sent map[string][]byte) error {
	fresh := func(key string, v any) bool {
		encoded, _ := json.Marshal(v) // they are all made of what JSON has
		same := bytes.Equal(sent[key], encoded)
		sent[key] = encoded
		return !same
	}
	space := p.workspace(me)
	var messages []message
	for _, m := range p.messages(space) {
		if fresh(m.Channel+":"+m.TS, m) {
			messages = append(messages, m)
		}
	}
	modals := p.modals(me)
	for _, e := range []struct {
		name  string
		value any
		due   bool
	}{
		{"workspace", space, fresh("workspace", space)},
		{"sessions", p.Slack.Sessions(), fresh("sessions", p.Slack.Sessions())},
		{"messages", messages, len(messages) > 0},
		{"modals", modals, fresh("modals", modals)},
	} {
		encoded, _ := json.Marshal(e.value)
		if !e.due {
			continue
		}
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e.name, encoded); err != nil {
			return err
		}
	}
	return nil
}

// workspace returns the person's view of it: the channels that they are in.
func (p *page) workspace(me string) *workspace {
	space := &workspace{Me: me, Bot: p.Bot, BotName: p.BotName}
	for _, u := range p.Slack.Users() {
		if !u.Deleted && !u.Bot {
			space.People = append(space.People, member{u.ID, u.Name, u.Real, u.Locale})
		}
	}
	for _, c := range p.Slack.Channels() {
		if slices.Contains(c.Members, me) {
			space.Channels = append(space.Channels, channel{c.ID, c.Name, c.With != ""})
		}
	}
	return space
}

// messages are those that the person sees.
func (p *page) messages(space *workspace) []message {
	var list []message
	for _, m := range p.Slack.Messages() {
		in := func(c channel) bool { return c.ID == m.Channel }
		if m.Ephemeral != "" && m.Ephemeral != space.Me || !slices.ContainsFunc(space.Channels, in) {
			continue
		}
		list = append(list, p.shown(m))
	}
	return list
}

// modals are those that the person sees, the last one on top.
func (p *page) modals(me string) []modal {
	list := []modal{}
	for _, v := range p.Slack.Views() {
		if v.Open && v.User == me {
			list = append(list, modal{v.ID, json.RawMessage(v.Raw)})
		}
	}
	return list
}

func (p *page) shown(m slack.Message) message {
	shown := message{
		TS: m.TS, Channel: m.Channel, Thread: m.Thread, Author: m.Author, Text: m.Text, Private: m.Ephemeral != "",
		Streaming: m.Streaming,
		Blocks:    array(m.Blocks),
	}
	if shown.Author == "" {
		shown.Author = p.Bot
	}
	attachments, _ := m.Sent["attachments"].(string)
	shown.Attachments = array(attachments)
	for _, piece := range m.Parts {
		shown.Parts = append(shown.Parts, part{Text: piece.Text, Task: task(m.Tasks, piece.Task)})
	}
	for _, id := range m.Files {
		if f, ok := p.Slack.File(id); ok {
			shown.Files = append(shown.Files, attached{id, f.Name, len(f.Data)})
		}
	}
	return shown
}

// array is JSON that the bot has sent, if it is a list.
func array(text string) json.RawMessage {
	if text = strings.TrimSpace(text); !strings.HasPrefix(text, "[") || !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(text)
}

func task(tasks []slack.Task, id string) *slack.Task {
	if i := slices.IndexFunc(tasks, func(t slack.Task) bool { return t.ID == id }); i >= 0 && id != "" {
		return &tasks[i]
	}
	return nil
}

// download gives a file. It is never shown in the browser, for anybody may have made it.
func (p *page) download(w http.ResponseWriter, r *http.Request) {
	f, ok := p.Slack.File(r.PathValue("id"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.Name}))
	_, _ = w.Write(f.Data)
}
