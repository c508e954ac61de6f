package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/muesli/cancelreader"
	"golang.org/x/term"

	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/internal/visible"
)

// editor is the lower end of a terminal during a chat: what runs, the message that is being typed, and completions.
// Everything else is printed above it, also what others write to the screens of the process, such as logs.
type editor struct {
	colour bool
	words  *chatWords
	now    func() time.Time
	// complete returns what may follow a line that begins with a slash.
	complete func(line string) []completion
	signals  chan<- os.Signal
	// typed delivers messages in their order. Ctrl-D closes it, and ended.
	typed chan string
	ended chan struct{}

	file *os.File
	// changes are made in the loop, until it ends and closes stopped.
	changes chan func()
	stopped chan struct{}
	// stop ends the loop and restores the terminal.
	stop func()

	// asking is held by the question on the screen.
	asking sync.Mutex

	// written are lines that are printed next. writing guards them, and wake wakes the loop.
	writing sync.Mutex
	written []string
	wake    chan struct{}

	// The fields below belong to the loop.
	region  region
	input   textarea.Model
	history *history
	// queued are the messages that were typed and not answered yet.
	queued []string
	// closed reports whether the input has ended, left that the region was removed.
	closed, left bool
	// lastKey is the time of the last key press.
	lastKey time.Time
	// question is the one on the screen; nil if there is none.
	question    *question
	suggestions []completion
	// above is text that is printed with the next change, printed the kind of the last printed text.
	above   []string
	printed kind
	turn    turnView
}

// kind is a kind of output. An empty row separates one from another.
type kind int

const (
	kindNone kind = iota
	kindPlain
	kindMessage
	kindAnswer
	kindTool
	kindQuestion
)

// question is a question that waits for a line.
type question struct {
	prompt string
	// expires is the time at which it ends. Zero means never.
	expires time.Time
	reply   chan string
	// answering reports whether the person types the answer; draft is the text typed before.
	answering bool
	draft     string
}

// maxInput is the number of rows of a message that are visible at once.
const maxInput = 10

// maxQueued is the number of messages that can wait.
const maxQueued = 16

// edits reports whether lines can be edited: input and output are terminals that know control sequences.
func (t IO) edits() bool {
	in, isFile := t.In.(*os.File)
	return t.Interactive && isFile && term.IsTerminal(int(in.Fd())) && terminalFile(t.Out) != nil &&
		terminalFile(t.Err) != nil && knowsSequences(t.Err)
}

// terminalFile is the terminal behind a stream; nil if there is none.
func terminalFile(stream io.Writer) *os.File {
	screen, ok := stream.(*Screen)
	if !ok {
		return nil
	}
	file, ok := screen.Target().(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return file
}

// newEditor prepares the editor of a terminal.
func newEditor(s *Chat, h *history, signals chan<- os.Signal) *editor {
	e := &editor{
		colour: coloured(s.Err), words: s.words(), now: s.Now, complete: s.complete, signals: signals,
		typed: make(chan string, maxQueued), ended: make(chan struct{}), history: h,
		changes: make(chan func()), stopped: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	if e.now == nil {
		e.now = time.Now
	}
	e.input = textarea.New()
	e.input.ShowLineNumbers, e.input.CharLimit, e.input.MaxWidth = false, 0, 0
	e.input.DynamicHeight, e.input.MinHeight, e.input.MaxHeight = true, 1, maxInput
	e.input.MaxContentHeight = maxMessage
	e.input.EndOfBufferCharacter = ' '
	none := textarea.StyleState{Selection: lipgloss.NewStyle().Reverse(true)}
	e.input.SetStyles(textarea.Styles{Focused: none, Blurred: none})
	e.input.SetVirtualCursor(false)
	e.input.SetPromptFunc(2, func(p textarea.PromptInfo) string {
		if p.LineNumber == 0 {
			return "> "
		}
		return "  "
	})
	keys := &e.input.KeyMap
	keys.InsertNewline = key.NewBinding(key.WithKeys("alt+enter", "shift+enter", "ctrl+j"))
	keys.Paste.SetEnabled(false) // terminals paste; the clipboard of the machine may be another one
	keys.CopySelection.SetEnabled(false)
	e.input.Focus()
	return e
}

// start takes over the terminal until stop is called.
func (e *editor) start(t IO) error {
	in := t.In.(*os.File)
	e.file = terminalFile(t.Err)
	e.region.out = e.file
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	reader, err := cancelreader.NewReader(in)
	if err != nil {
		return errors.Join(fmt.Errorf("terminal: %w", err), term.Restore(int(in.Fd()), state))
	}
	events := make(chan uv.Event)
	reading, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(events)
		_ = uv.NewTerminalReader(reader, os.Getenv("TERM")).StreamEvents(reading, events) // ends with the input
	}()
	go e.loop(events)
	stdout, stderr := t.Out.(*Screen), t.Err.(*Screen)
	toOut, toErr := &lineWriter{editor: e}, &lineWriter{editor: e}
	formerOut, formerErr := stdout.Redirect(toOut), stderr.Redirect(toErr)
	stopResizes := onResize(func() { e.do(func() {}) })
	control(e.file, "\x1b[?2004h") // bracketed paste
	e.stop = func() {
		stopResizes()
		stdout.Redirect(formerOut)
		stderr.Redirect(formerErr)
		toOut.flush()
		toErr.flush()
		e.do(e.leave)
		cancel()
		if reader.Cancel() {
			for range events { // until the reader has ended
			}
		}
		<-e.stopped
		control(e.file, "\x1b[?2004l")
		_ = term.Restore(int(in.Fd()), state)
	}
	return nil
}

// loop handles input and changes until leave.
func (e *editor) loop(events <-chan uv.Event) {
	defer close(e.stopped)
	ticker := time.NewTicker(frame)
	defer ticker.Stop()
	for !e.left {
		select {
		case change := <-e.changes:
			change()
		case <-e.wake:
			e.printPlain(e.takeWritten())
		case event, ok := <-events:
			if !ok {
				events = nil
				e.end()
			}
			e.handle(event)
		case <-ticker.C:
			if !e.turn.running {
				continue
			}
			e.turn.changed = false
		}
		if !e.left && !e.turn.changed {
			e.draw()
		}
	}
}

// handle handles an event of the terminal.
func (e *editor) handle(event uv.Event) {
	switch event := event.(type) {
	case uv.KeyPressEvent:
		e.press(tea.KeyPressMsg(event))
	case uv.PasteEvent:
		e.touch()
		text := visible.Clean(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(event.Content))
		e.input, _ = e.input.Update(tea.PasteMsg{Content: text})
	}
}

// end closes typed.
func (e *editor) end() {
	if !e.closed {
		e.closed = true
		close(e.typed)
		close(e.ended)
	}
}

// do makes a change in the loop, after printing what was written before. After the end it does nothing.
func (e *editor) do(change func()) {
	lines := e.takeWritten()
	select {
	case e.changes <- func() {
		e.printPlain(lines)
		change()
	}:
	case <-e.stopped:
	}
}

// takeWritten returns the lines that were written and not printed.
func (e *editor) takeWritten() (lines []string) {
	e.writing.Lock()
	defer e.writing.Unlock()
	lines, e.written = e.written, nil
	return lines
}

// typingPause is the pause after which a key is meant for the question on the screen, and not for the message that was
// being typed.
const typingPause = 500 * time.Millisecond

// touch notes that something was typed, and decides whether it is the beginning of an answer.
func (e *editor) touch() {
	now := e.now()
	if q := e.question; q != nil && !q.answering && (e.input.Value() == "" || now.Sub(e.lastKey) >= typingPause) {
		q.answering, q.draft = true, e.input.Value()
		e.input.Reset()
	}
	e.lastKey = now
}

// press handles a key.
func (e *editor) press(msg tea.KeyPressMsg) {
	e.touch()
	e.suggestions = nil
	text := e.input.Value()
	switch name := msg.String(); {
	case name == "ctrl+c":
		e.interrupt(text)
	case name == "ctrl+d" && text == "":
		e.end()
	case name == "ctrl+l":
		control(e.file, "\x1b[H\x1b[2J")
		e.region.widths, e.region.cursor, e.region.column = nil, 0, 0
	case name == "enter":
		e.enter(text)
	case name == "tab":
		e.completeInput(text)
	case name == "up" && e.atEdge(-1), name == "ctrl+p" && e.atEdge(-1):
		e.recall(-1, text)
	case name == "down" && e.atEdge(1), name == "ctrl+n" && e.atEdge(1):
		e.recall(1, text)
	default:
		if msg.Text != "" {
			if msg.Text = visible.Clean(msg.Text); msg.Text == "" {
				return
			}
		}
		e.input, _ = e.input.Update(msg) // without a cursor that blinks there are no commands
		if text := e.input.Value(); strings.HasPrefix(text, "/") && !strings.ContainsAny(text, " \n") {
			e.suggestions = e.complete(text)
		}
	}
}

// interrupt handles Ctrl-C: it empties a message, or it is a signal.
func (e *editor) interrupt(text string) {
	if text != "" && e.question == nil && !e.turn.running {
		e.input.Reset()
		return
	}
	select {
	case e.signals <- os.Interrupt:
	default: // there is one already
	}
}

// enter ends the answer to a question, or a message.
func (e *editor) enter(text string) {
	if q := e.question; q != nil && q.answering {
		e.print(kindQuestion, row{e.styled(dim, "› "+visible.Line(text))}.String())
		e.input.Reset()
		e.reply(q, text)
		return
	}
	if strings.TrimSpace(text) == "" || e.closed || len(e.queued) == maxQueued {
		return
	}
	e.input.Reset()
	if err := e.history.add(text); err != nil {
		e.print(kindPlain, visible.Line(err.Error()))
		e.history.path = ""
	}
	e.queued = append(e.queued, text)
	e.typed <- text // has room for maxQueued
}

// reply hands a line to whoever reads the answers to q, who may make changes before and may have enough.
func (e *editor) reply(q *question, line string) {
	for e.question == q && !e.left {
		select {
		case q.reply <- line:
			return
		case change := <-e.changes:
			change()
		}
	}
}

// began prints a message that is answered now.
func (e *editor) began(text string) {
	e.do(func() {
		e.queued = e.queued[1:]
		e.printMessage(text)
	})
}

// replay prints a message of a conversation.
func (e *editor) replay(m chat.Message) {
	e.do(func() {
		if m.Role != llm.RoleAssistant {
			e.printMessage(m.Text)
			return
		}
		for _, r := range rowsOf(layOut(m.Text, 0, e.width(), e.colour)) {
			e.print(kindAnswer, r.String())
		}
	})
}

// atEdge reports whether the cursor cannot move up (-1) or down (1) within the message.
func (e *editor) atEdge(by int) bool {
	if e.question != nil && e.question.answering {
		return false
	}
	info := e.input.LineInfo()
	if by < 0 {
		return e.input.Line() == 0 && info.RowOffset == 0
	}
	return e.input.Line() == e.input.LineCount()-1 && info.RowOffset >= info.Height-1
}

func (e *editor) recall(by int, shown string) {
	if text, ok := e.history.move(by, shown); ok {
		e.input.SetValue(text)
	}
}

// completeInput completes a command as far as it is unambiguous.
func (e *editor) completeInput(text string) {
	if !strings.HasPrefix(text, "/") || strings.Contains(text, "\n") {
		return
	}
	e.suggestions = e.complete(text)
	if len(e.suggestions) == 0 {
		return
	}
	common := e.suggestions[0].line
	for _, s := range e.suggestions[1:] {
		for !strings.HasPrefix(s.line, common) {
			common = common[:len(common)-1]
		}
	}
	common = strings.ToValidUTF8(common, "")
	if len(e.suggestions) == 1 {
		e.suggestions = nil
		common += " "
	}
	if len(common) > len(text) {
		e.input.SetValue(common)
	}
}

// leave removes the region.
func (e *editor) leave() {
	e.turn.flush(e, e.width())
	e.region.draw(e.above, []string{""}, 0, 0, e.width()+1)
	e.above, e.left = nil, true
}

// readLines asks for lines below what was printed until done returns true for one.
func (e *editor) readLines(ctx context.Context, prompt string, expires time.Time, done func(line string) bool) error {
	q := &question{prompt: prompt, expires: expires, reply: make(chan string)}
	e.do(func() { e.question = q })
	defer e.do(func() {
		if e.question = nil; q.answering {
			e.input.SetValue(q.draft)
		}
	})
	for {
		select {
		case line := <-q.reply:
			if done(line) {
				return nil
			}
		case <-e.ended:
			return io.EOF
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// readLine asks for one line.
func (e *editor) readLine(ctx context.Context, prompt string, expires time.Time) (line string, err error) {
	err = e.readLines(ctx, prompt, expires, func(typed string) bool {
		line = typed
		return true
	})
	return line, err
}
