package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/chat"
	"github.com/hako-run/hako/host/pipeline"
)

// chatSession is a person who talks at the terminal, or in a pipe.
type chatSession struct {
	app              *app
	engine           *chat.Engine
	host             *host.Host
	model            *choice
	flags            chatFlags
	locale, currency string

	conversation string
	// files are still to be sent.
	files []chat.File
	input *lines
	// interrupted says that Ctrl-C came last: once more ends the session.
	interrupted bool
}

// caller is the person.
func (s *chatSession) caller() pipeline.Caller {
	return pipeline.Caller{Frontend: pipeline.FrontendTerminal, Tenant: s.flags.tenant, User: audit.ProcessUser(),
		Operator: true}
}

// errQuit ends the session.
var errQuit = errors.New("the end")

// run talks until the input ends.
func (s *chatSession) run(ctx context.Context) error {
	s.conversation = s.flags.conversation
	if s.conversation == "" {
		s.conversation = newConversation()
	}
	if !s.app.interactive() {
		return s.pipe(ctx)
	}
	signals := s.app.signals
	if signals == nil {
		caught := make(chan os.Signal, 2)
		signal.Notify(caught, os.Interrupt, syscall.SIGTERM)
		defer signal.Stop(caught)
		signals = caught
	}
	s.input = newLines(s.app.stdin)
	s.greet()
	for {
		if err := s.next(ctx, signals); errors.Is(err, errQuit) {
			if !s.flags.fleeting {
				s.say("%s\n", s.words().goOn+s.conversation)
			}
			return nil
		} else if err != nil {
			return err
		}
	}
}

// say writes what is not part of an answer.
func (s *chatSession) say(format string, args ...any) { printf(s.app.stderr, format, args...) }

// next takes one line, and does what it says.
func (s *chatSession) next(ctx context.Context, signals <-chan os.Signal) error {
	s.say("\n> ")
	select {
	case line, ok := <-s.input.typed:
		if !ok {
			s.say("\n")
			return errQuit
		}
		s.interrupted = false
		return s.take(ctx, strings.TrimSpace(line), signals)
	case caught := <-signals:
		return s.interrupt(caught)
	}
}

// interrupt is Ctrl-C while nothing runs, or an order to stop.
func (s *chatSession) interrupt(caught os.Signal) error {
	s.say("\n")
	if caught != os.Interrupt || s.interrupted {
		return errQuit
	}
	s.interrupted = true
	s.say("%s\n", s.words().again)
	return nil
}

func (s *chatSession) take(ctx context.Context, line string, signals <-chan os.Signal) error {
	switch {
	case line == "":
		return nil
	case strings.HasPrefix(line, "/"):
		return s.command(ctx, line)
	}
	return s.turn(ctx, line, signals)
}

// turn answers text. Ctrl-C stops it.
func (s *chatSession) turn(ctx context.Context, text string, signals <-chan os.Signal) error {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	surface := newChatSurface(s)
	done := make(chan error, 1)
	message := &chat.Turn{
		Conversation: s.conversation, Caller: s.caller(), Text: text, Files: s.takeFiles(), Locale: s.locale,
		Surface: surface,
	}
	go func() {
		_, err := s.engine.Turn(running, message)
		done <- err
	}()
	for {
		select {
		case err := <-done:
			surface.close()
			return s.over(err)
		case caught := <-signals:
			cancel()
			if caught != os.Interrupt || s.interrupted {
				<-done
				return errQuit
			}
			s.interrupted = true
		}
	}
}

// over says how a turn ended, if that was not with an answer.
func (s *chatSession) over(err error) error {
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled):
		s.say("%s\n", s.words().stopped)
	default:
		s.say("%v\n", s.failure(err))
	}
	return nil
}
