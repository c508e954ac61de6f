//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/hako-run/hako/dev/fakes"
	"github.com/hako-run/hako/dev/fakes/slack"
)

// load makes the calls of all kinds while replicas fail.
type load struct {
	world *world
	book  *book

	mu     sync.Mutex // guards events
	events map[string]*event
}

// event is a message of a person in Slack.
type event struct {
	word, ts string
	taken    bool
	tries    int
}

// The kinds of calls.
const (
	kindWrite      = "write to a plugin's database"
	kindAsk        = "ask a person"
	kindCredential = "use an OAuth credential"
)

var projectID = regexp.MustCompile(`proj_\w+`)

// project makes the one that tasks are written to.
func (l *load) project(ctx context.Context) string { return l.world.projectOf(ctx, 0) }

// projectOf makes a project of one of the tenants.
func (w *world) projectOf(ctx context.Context, tenant int) string {
	w.t.Helper()
	got := w.clientOf(tenant, w.proxy).call(ctx, "", "create_project", map[string]any{"name": "chaos"}, "")
	id := projectID.FindString(got.text)
	if id == "" || got.failed {
		w.t.Fatalf("no project can be made: %s", got.text)
	}
	return id
}

// write makes tasks, each with a title of its own.
func (l *load) write(ctx context.Context, version, project, who string) {
	c := newClient(l.book, l.world.proxy, version)
	for i := 0; ctx.Err() == nil; i++ {
		c.open(ctx)
		title := fmt.Sprintf("task %s %d", who, i)
		c.call(context.WithoutCancel(ctx), kindWrite, "create_task",
			map[string]any{"project_id": project, "title": title}, title)
		pause(ctx, 30*time.Millisecond)
	}
}

// askPeople calls a tool that needs a yes.
func (l *load) askPeople(ctx context.Context, version string) {
	c := newClient(l.book, l.world.proxy, version)
	for i := 0; ctx.Err() == nil; i++ {
		c.open(ctx)
		name := fmt.Sprintf("agent %s %d", version, i)
		c.call(context.WithoutCancel(ctx), kindAsk, "register_agent", map[string]any{"name": name}, "")
		pause(ctx, 100*time.Millisecond)
	}
}

// useCredential calls a tool that needs the OAuth credential.
func (l *load) useCredential(ctx context.Context, version string) {
	c := newClient(l.book, l.world.proxy, version)
	for ctx.Err() == nil {
		c.open(ctx)
		c.call(context.WithoutCancel(ctx), kindCredential, "list_employees", map[string]any{}, "")
		pause(ctx, 100*time.Millisecond)
	}
}

// talk says things in Slack, which tells hako of each until it says that it has taken it.
func (l *load) talk(ctx context.Context) {
	var work sync.WaitGroup
	for i := 0; ctx.Err() == nil; i++ {
		e := &event{word: fmt.Sprintf("word-%d-end", i)}
		said := slack.Said{User: fakes.SlackUser, Channel: fakes.SlackChannel, Text: "<@" + fakes.SlackBot + "> " +
			e.word}
		e.ts = l.world.fakes.Slack.Say(said)
		l.mu.Lock()
		l.events[e.ts] = e
		l.mu.Unlock()
		payload := l.world.fakes.Slack.Event(said, e.ts)
		work.Go(func() { l.deliver(context.WithoutCancel(ctx), e, payload) })
		pause(ctx, 300*time.Millisecond)
	}
	work.Wait()
}

// retries are Slack's (docs.slack.dev/apis/events-api, retries), in seconds for its minutes.
var retries = []time.Duration{0, 100 * time.Millisecond, time.Second, 5 * time.Second}

func (l *load) deliver(ctx context.Context, e *event, payload any) {
	for i, wait := range retries {
		pause(ctx, wait)
		_, err := l.world.fakes.Slack.Deliver(ctx, slack.KindEvent, payload, i)
		l.mu.Lock()
		e.tries++
		e.taken = e.taken || err == nil
		l.mu.Unlock()
		if err == nil {
			return
		}
	}
}

// interrupted are words of the bot's text where its process ended in the midst of an answer.
var interrupted = []string{"interrupted", "中断"}

// replies are the whole answers to an event, and the honest ends.
func (l *load) replies(messages []slack.Message, e *event) (answers, ends int) {
	for _, m := range messages {
		if m.Author != fakes.SlackBot || m.Thread != e.ts || m.Streaming {
			continue
		}
		switch {
		case containsAny(m.Text, interrupted):
			ends++
		case strings.Contains(m.Text, e.word):
			answers++
		}
	}
	return answers, ends
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// settleTime is within what dead replicas' work is taken over: their locks end in 25 seconds, and the bot looks every
// 30.
const settleTime = 75 * time.Second

// settle waits until everything in Slack that was taken has an answer or an end.
func (l *load) settle(ctx context.Context) {
	for deadline := time.Now().Add(settleTime); time.Now().Before(deadline); pause(ctx, 200*time.Millisecond) {
		open, messages := 0, l.world.fakes.Slack.Messages()
		l.mu.Lock()
		for _, e := range l.events {
			if answers, ends := l.replies(messages, e); e.taken && answers+ends == 0 {
				open++
			}
		}
		l.mu.Unlock()
		if open == 0 {
			return
		}
	}
}

// titles are those of the tasks that there are.
func (l *load) titles(ctx context.Context, project string) (map[string]int, error) {
	c := newClient(new(book), l.world.proxy, withoutSessions)
	found := map[string]int{}
	for arguments := (map[string]any{"project_id": project, "limit": 200}); ; {
		got := c.call(ctx, "", "list_tasks", arguments, "")
		if !got.answered || got.failed {
			return nil, fmt.Errorf("list_tasks: %s", got.text)
		}
		var list struct {
			Tasks []struct{ Title string } `json:"tasks"`
			Next  int                      `json:"next_offset"`
		}
		if err := json.Unmarshal([]byte(got.text), &list); err != nil {
			return nil, fmt.Errorf("list_tasks: %w: %s", err, got.text[:min(len(got.text), 300)])
		}
		for _, task := range list.Tasks {
			found[task.Title]++
		}
		if list.Next == 0 {
			return found, nil
		}
		arguments["offset"] = list.Next
	}
}
