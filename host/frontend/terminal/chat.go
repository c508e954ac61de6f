package terminal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/pipeline"
)

// Chat is a conversation of a person with a model, at a terminal or in a pipe.
type Chat struct {
	IO
	// Signals receives Ctrl-C and orders to stop. Nil: those of the process.
	Signals <-chan os.Signal

	Engine *chat.Engine
	Model  *Model
	// Tools lists the tools that a caller may use.
	Tools            func(pipeline.Caller) []*catalog.Tool
	Caller           pipeline.Caller
	Locale, Currency string
	// Conversation is the key of the conversation to continue. Empty: a new one begins, or with Resume the one that was
	// used last goes on.
	Conversation string
	Resume       bool
	// State is the directory in which the history of what the person typed is kept, unless the chat is Temporary.
	State string
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Files go with the first message.
	Files []chat.File
	// Verbose shows the arguments of tool calls.
	Verbose bool
	// Temporary keeps no history of what the person typed, and deletes the conversations that began here at the end.
	Temporary bool

	input *Lines
	// begun are the conversations that began here.
	begun []string
	// editor is set at a terminal on which lines can be edited.
	editor *editor
	// interrupted reports whether Ctrl-C came last: a second one ends the session.
	interrupted bool
}

// NoAnswer is the error of a message in a pipe that has no answer. Its text is for the person.
type NoAnswer struct{ text string }

func (e *NoAnswer) Error() string { return e.text }

// errQuit ends the session.
var errQuit = errors.New("the end")

// Run holds the conversation until the input ends. In a pipe it answers one message, and the error may be a NoAnswer.
func (s *Chat) Run(ctx context.Context) (err error) {
	if s.Temporary {
		defer func() { err = errors.Join(err, s.deleteBegun(ctx)) }()
	}
	if s.Conversation == "" && s.Resume {
		if s.Conversation, err = s.lastConversation(ctx); err != nil {
			return err
		}
	}
	if s.Conversation == "" {
		s.beginConversation()
	}
	if !s.Interactive {
		return s.pipe(ctx)
	}
	signals := s.Signals
	caught := make(chan os.Signal, 2)
	if signals == nil {
		signal.Notify(caught, os.Interrupt, syscall.SIGTERM)
		defer signal.Stop(caught)
		signals = caught
	}
	if s.edits() {
		err = s.edit(ctx, caught)
	} else {
		s.input = newLines(s.In)
		err = s.readLines(ctx, signals)
	}
	if err == nil && !s.Temporary {
		s.say("%s\n", s.words().goOn+s.Conversation)
	}
	return err
}

// edit holds the conversation at a terminal on which lines can be edited.
func (s *Chat) edit(ctx context.Context, signals chan os.Signal) error {
	path := ""
	if !s.Temporary {
		path = filepath.Join(s.State, "chat-history", url.PathEscape(s.Caller.User)+".jsonl")
	}
	h, err := openHistory(path)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	s.editor = newEditor(s, h, signals)
	if err := s.editor.start(s.IO); err != nil {
		return err
	}
	defer s.editor.stop()
	s.input = &Lines{s.editor.typed}
	return s.readLines(ctx, signals)
}

// readLines greets, and executes lines until the input ends.
func (s *Chat) readLines(ctx context.Context, signals <-chan os.Signal) error {
	s.greet()
	if c, err := s.Engine.Conversation(ctx, s.Caller, s.Conversation); err == nil {
		s.goOn(c)
	} else if !errors.Is(err, chat.ErrUnknown) {
		return err
	}
	for {
		if err := s.nextLine(ctx, signals); errors.Is(err, errQuit) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// say prints text that is not part of an answer.
func (s *Chat) say(format string, args ...any) { Printf(s.Err, format, args...) }

// nextLine reads a line and executes it.
func (s *Chat) nextLine(ctx context.Context, signals <-chan os.Signal) error {
	s.say("%s", Block(s.unlessEdited("\n> ")))
	select {
	case line, ok := <-s.input.Typed:
		if !ok {
			s.say("%s", Block(s.unlessEdited("\n")))
			return errQuit
		}
		s.interrupted = false
		if s.editor != nil {
			s.editor.began(line)
		}
		return s.handleLine(ctx, strings.TrimSpace(line), signals)
	case caught := <-signals:
		return s.interrupt(caught)
	}
}

// unlessEdited returns text for terminals on which lines cannot be edited.
func (s *Chat) unlessEdited(text string) string {
	if s.editor != nil {
		return ""
	}
	return text
}

// interrupt handles Ctrl-C while no turn runs, or an order to stop.
func (s *Chat) interrupt(caught os.Signal) error {
	s.say("%s", Block(s.unlessEdited("\n")))
	if caught != os.Interrupt || s.interrupted {
		return errQuit
	}
	s.interrupted = true
	s.say("%s\n", s.words().again)
	return nil
}

func (s *Chat) handleLine(ctx context.Context, line string, signals <-chan os.Signal) error {
	switch {
	case line == "":
		return nil
	case strings.HasPrefix(line, "/"):
		return s.command(ctx, line)
	}
	return s.turn(ctx, line, signals)
}

// turn answers text. Ctrl-C stops it.
func (s *Chat) turn(ctx context.Context, text string, signals <-chan os.Signal) error {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	surface := s.beginSurface()
	done := make(chan error, 1)
	message := &chat.Turn{
		Conversation: s.Conversation, Caller: s.Caller, Text: text, Files: s.takeFiles(), Locale: s.Locale,
		Surface: surface,
	}
	go func() {
		_, err := s.Engine.Turn(running, message)
		done <- err
	}()
	for {
		select {
		case err := <-done:
			surface.close()
			return s.reportEnd(err)
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

// turnSurface is the Surface of one turn at a terminal. close ends its output.
type turnSurface interface {
	chat.Surface
	close()
}

// beginSurface returns the surface of a turn that begins.
func (s *Chat) beginSurface() turnSurface {
	if s.editor == nil {
		return newChatSurface(s)
	}
	surface := editorSurface{s.editor, s}
	surface.begin()
	return surface
}

// reportEnd prints the error or interruption of a turn.
func (s *Chat) reportEnd(err error) error {
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled):
		s.say("%s\n", s.words().stopped)
	default:
		s.say("%v\n", s.failure(err))
	}
	return nil
}

// beginConversation makes the current conversation a new one, with a key that is short enough to type.
func (s *Chat) beginConversation() {
	s.Conversation = "t-" + strings.ToLower(rand.Text()[:8])
	s.begun = append(s.begun, s.Conversation)
}

// deleteBegun deletes the conversations that began here.
func (s *Chat) deleteBegun(ctx context.Context) (err error) {
	ctx = context.WithoutCancel(ctx)
	for _, id := range s.begun {
		if e := s.Engine.Delete(ctx, s.Caller, id); !errors.Is(e, chat.ErrUnknown) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// maxMessage bounds the message in a pipe, in bytes.
const maxMessage = 64 << 10

// pipe answers one message, and prints the answer alone.
func (s *Chat) pipe(ctx context.Context) error {
	text, err := io.ReadAll(io.LimitReader(s.In, maxMessage+1))
	if err != nil {
		return fmt.Errorf("read the message: %w", err)
	}
	answer, err := s.Engine.Turn(ctx, &chat.Turn{
		Conversation: s.Conversation, Caller: s.Caller, Text: strings.TrimSpace(string(text)), Files: s.takeFiles(),
		Locale: s.Locale, Surface: pipeSurface{s},
	})
	if err != nil {
		return s.failure(err)
	}
	return Printf(s.Out, "%s\n", Block(answer.Text))
}

// failure returns err with its text for the person.
func (s *Chat) failure(err error) error {
	var told *chat.Error
	if !errors.As(err, &told) {
		return err
	}
	text := told.Text
	var model *llm.Error
	switch {
	case errors.As(err, &model): // the person runs hako and may see details
		text += "\n" + model.Error()
	case told.Reason == chat.ReasonHost:
		text += "\n" + told.Err.Error()
	}
	return &NoAnswer{text}
}

// takeFiles returns the files that have not been sent yet.
func (s *Chat) takeFiles() []chat.File {
	files := s.Files
	s.Files = nil
	return files
}
