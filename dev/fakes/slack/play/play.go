// Package play acts scenes in the fake Slack: people write, press buttons and fill in modals, line by line, and
// what they see is written down.
//
//	# a remark
//	ken in #general: @hako What is the weather in Tokyo?
//	ken in thread: And tomorrow?
//	aki to hako: hello
//	aki presses Approve
//	ken fills in Your name: Ken
//	ken presses Send
package play

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/dev/fakes/slack"
	"github.com/hako-run/hako/internal/lazyregexp"
)

// stage is the state of a scene that is played.
type stage struct {
	slack     *slack.Server
	bot, name string
	out       io.Writer
	// channel and thread are the place of the last message.
	channel, thread string
	// shown has the description of each message and modal.
	shown map[string]string
	// modals are those that have come up, by their identifiers.
	modals map[string]*modal
}

// patience bounds the wait of a line for what follows from it.
const patience = 2 * time.Minute

// Scene acts the lines of in, each once all that followed from the one before has happened, and writes to out what
// people see. bot is the bot's user ID, name what people mention it by. The error names the line that is not
// understood, or after which nothing happened.
func Scene(ctx context.Context, server *slack.Server, bot, name string, in io.Reader, out io.Writer) error {
	s := &stage{slack: server, bot: bot, name: name, out: out, shown: map[string]string{}, modals: map[string]*modal{}}
	lines := bufio.NewScanner(in)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := s.act(ctx, line); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if err := s.show(); err != nil {
			return err
		}
	}
	return lines.Err()
}

var (
	writes  = lazyregexp.New(`^(\S+) (in (?:#\S+|thread)|to \S+): (.+)$`)
	presses = lazyregexp.New(`^(\S+) presses (.+)$`)
	fills   = lazyregexp.New(`^(\S+) fills in (.+?):(?: (.*))?$`)
)

// act does what a line says, and waits for what follows.
func (s *stage) act(ctx context.Context, line string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var do func(user string) error
	var name string
	if m := writes().FindStringSubmatch(line); m != nil {
		name, do = m[1], func(user string) error { return s.write(ctx, user, m[2], m[3]) }
	} else if m := presses().FindStringSubmatch(line); m != nil {
		name, do = m[1], func(user string) error { return s.press(ctx, user, m[2]) }
	} else if m := fills().FindStringSubmatch(line); m != nil {
		name, do = m[1], func(user string) error { return s.fill(user, m[2], m[3]) }
	} else {
		return fmt.Errorf("%q is neither \"NAME in #CHANNEL: TEXT\", \"NAME in thread: TEXT\", \"NAME to %s: TEXT\", \"NAME presses BUTTON\" nor \"NAME fills in FIELD: TEXT\"", line, s.name)
	}
	user := s.user(name)
	if user == "" {
		return fmt.Errorf("nobody is called %s here", name)
	}
	return do(user)
}

// user is the ID of a name.
func (s *stage) user(name string) string {
	for _, u := range s.slack.Users() {
		if u.Name == name && !u.Deleted {
			return u.ID
		}
	}
	return ""
}

func (s *stage) write(ctx context.Context, user, where, text string) error {
	thread := s.thread
	if where != "in thread" {
		if s.channel = s.place(user, where); s.channel == "" {
			return fmt.Errorf("there is no %s", where)
		}
		thread = ""
	}
	if strings.HasPrefix(text, "/") {
		name, rest, _ := strings.Cut(text, " ")
		_, err := s.slack.Command(ctx, user, s.channel, name, rest)
		return err
	}
	said := slack.Said{User: user, Channel: s.channel, Thread: thread, Text: strings.ReplaceAll(text, "@"+s.name,
		"<@"+s.bot+">")}
	if direct := strings.HasPrefix(s.channel, "D"); said.Text == text && !direct { // the bot is told of mentions alone
		s.slack.Say(said)
		return nil
	}
	ts, err := s.slack.Tell(ctx, said)
	if err != nil {
		return err
	}
	if s.thread = thread; thread == "" {
		s.thread = ts
	}
	return s.until(ctx, func() bool { return s.settled(ts) })
}

// place is the channel that a person names: "in #general", or "to hako" for their direct message.
func (s *stage) place(user, where string) string {
	for _, c := range s.slack.Channels() {
		if where == "in #"+c.Name && c.Name != "" || where == "to "+s.name && c.With == user {
			return c.ID
		}
	}
	return ""
}

// press presses a button of the modal that the user sees, or else the last one of that name.
func (s *stage) press(ctx context.Context, user, label string) error {
	if v, ok := s.top(user); ok {
		switch label {
		case v.Sent.Submit.Text:
			return s.send(ctx, user, v)
		case v.Sent.Close.Text:
			return s.slack.CloseView(user, v.ID)
		}
	}
	messages, views := s.slack.Messages(), len(s.slack.Views())
	for _, m := range slices.Backward(messages) {
		for _, b := range buttons(m) {
			if b.label != label {
				continue
			}
			if err := s.slack.Click(ctx, user, m, b.action, b.value); err != nil || b.page {
				return err
			}
			s.channel, s.thread = m.Channel, m.Thread
			err := s.until(ctx, func() bool {
				return len(s.slack.Views()) > views || s.followed(m, len(messages), user) && s.settled("")
			})
			if v, ok := s.top(user); ok && len(s.slack.Views()) > views {
				s.modal(v).from = m
			}
			return err
		}
	}
	return fmt.Errorf("there is no button %q", label)
}

// followed reports whether a press had an effect: the message has changed, or the user got one.
func (s *stage) followed(pressed slack.Message, before int, user string) bool {
	told := func(m slack.Message) bool { return m.Ephemeral == user }
	return slices.ContainsFunc(s.slack.Messages()[before:], told) || s.changed(pressed)
}

// changed reports whether a message is another than it was.
func (s *stage) changed(before slack.Message) bool {
	same := func(m slack.Message) bool {
		return m.Channel == before.Channel && m.TS == before.TS && m.Blocks == before.Blocks
	}
	return !slices.ContainsFunc(s.slack.Messages(), same)
}

// settled reports whether the bot has nothing more to do in the thread after the message ts: it has answered, or waits
// for people.
func (s *stage) settled(ts string) bool {
	status := s.slack.Session(s.channel, s.thread)
	asked, answered, waiting := false, false, false
	for _, m := range s.slack.Messages() {
		if m.Author != s.bot || m.Channel != s.channel || m.Thread != s.thread || m.Ephemeral != "" {
			continue
		}
		if m.Streaming && status != "suspended" {
			return false
		}
		answered = answered || m.TS > ts
		asked = asked || strings.Contains(m.Blocks, "hako_approve") || strings.Contains(m.Blocks, "hako_form")
		waiting = waiting || m.Streaming && slices.ContainsFunc(m.Tasks,
			func(t slack.Task) bool { return t.Status == "pending" })
	}
	return answered && (status == "active" || status == "suspended" && asked && waiting)
}

// until waits until something holds.
func (s *stage) until(ctx context.Context, holds func() bool) error {
	for {
		changed := s.slack.Changed()
		if holds() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("the bot does not go on: %w", ctx.Err())
		}
	}
}
