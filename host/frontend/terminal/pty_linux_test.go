package terminal

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/hako-run/hako/dev/kit/testpty"
	"github.com/hako-run/hako/dev/kit/testwait"
)

// emulator shows what a program writes to a pseudo-terminal. It knows the control sequences that the editor needs, and
// reports others, so nothing else reaches a terminal.
type emulator struct {
	// master is the end of the keyboard, tty the program's.
	master, tty *os.File

	mu sync.Mutex
	// cells are the lines of the screen, a cell for each column; the second cell of a wide character is empty. gone are
	// the lines that were scrolled off.
	cells         [][]string
	gone          []string
	x, y          int
	width, height int
	rest          string
	changed       chan struct{}
	problems      []string
}

// newEmulator opens a pseudo-terminal with so many columns and rows.
func newEmulator(t *testing.T, width, height int) *emulator {
	t.Helper()
	master, tty := testpty.Open(t)
	v := &emulator{master: master, tty: tty, changed: make(chan struct{})}
	v.resize(t, width, height)
	read := make(chan struct{})
	go func() {
		defer close(read)
		data := make([]byte, 4096)
		for {
			n, err := master.Read(data)
			if err != nil {
				return
			}
			v.feed(string(data[:n]))
		}
	}()
	t.Cleanup(func() {
		_ = tty.Close()
		<-read
		_ = master.Close()
		for _, problem := range v.problems {
			t.Error(problem)
		}
	})
	return v
}

// resize changes the size, as a terminal does that does not break lines anew.
func (v *emulator) resize(t *testing.T, width, height int) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	size := &unix.Winsize{Col: uint16(width), Row: uint16(height)}
	if err := unix.IoctlSetWinsize(int(v.master.Fd()), unix.TIOCSWINSZ, size); err != nil {
		t.Fatal(err)
	}
	v.width, v.height = width, height
	for len(v.cells) < height {
		v.cells = append(v.cells, nil)
	}
	for i, line := range v.cells {
		v.cells[i] = append(line, make([]string, max(0, width-len(line)))...)[:width]
		for x := len(line); x < width; x++ {
			v.cells[i][x] = " "
		}
	}
}

// sequence matches a control sequence.
var sequence = regexp.MustCompile(`^\x1b\[(\??[0-9;]*)([A-Za-z])`)

func (v *emulator) feed(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	text = v.rest + text
	for text != "" {
		n := v.step(text)
		if n == 0 {
			break
		}
		text = text[n:]
	}
	v.rest = text
	close(v.changed)
	v.changed = make(chan struct{})
}

// step handles one character or sequence, and returns its length; 0 if it is incomplete.
func (v *emulator) step(text string) int {
	switch {
	case text[0] == '\r':
		v.x = 0
		return 1
	case text[0] == '\n':
		v.lineFeed()
		return 1
	case text[0] == 0x1b:
		m := sequence.FindStringSubmatch(text)
		if m == nil {
			if len(text) > 20 {
				v.problems = append(v.problems, fmt.Sprintf("an unknown sequence: %q", text[:20]))
				return 1
			}
			return 0
		}
		v.control(m[0], m[1], m[2])
		return len(m[0])
	case text[0] < ' ' || text[0] == 0x7f:
		v.problems = append(v.problems, fmt.Sprintf("a control character: %q", text[0]))
		return 1
	case !utf8.FullRuneInString(text):
		return 0
	}
	_, size := utf8.DecodeRuneInString(text)
	v.put(cells([]span{{text: text[:size]}})[0])
	return size
}

func (v *emulator) lineFeed() {
	if v.y < v.height-1 {
		v.y++
		return
	}
	v.gone = append(v.gone, strings.TrimRight(strings.Join(v.cells[0], ""), " "))
	v.cells = append(v.cells[1:], blank(v.width))
}

func blank(width int) []string {
	line := make([]string, width)
	for i := range line {
		line[i] = " "
	}
	return line
}

// put writes a character. Half of a wide character that is overwritten leaves the other half as a ghost.
func (v *emulator) put(c cell) {
	if c.width == 0 {
		v.cells[v.y][max(0, v.x-1)] += c.text
		return
	}
	if v.x+c.width > v.width {
		v.x = 0
		v.lineFeed()
	}
	line := v.cells[v.y]
	if line[v.x] == "" {
		line[v.x-1] = "▒"
	}
	if end := v.x + c.width; end < v.width && line[end] == "" {
		line[end] = "▒"
	}
	line[v.x] = c.text
	if c.width == 2 {
		line[v.x+1] = ""
	}
	v.x += c.width
}

func (v *emulator) control(all, parameters, final string) {
	n := 1
	if i, err := strconv.Atoi(parameters); err == nil {
		n = i
	}
	switch final {
	case "A":
		v.y = max(0, v.y-n)
	case "C":
		v.x = min(v.width-1, v.x+n)
	case "K":
		copy(v.cells[v.y][min(v.x, v.width):], blank(v.width))
	case "J":
		copy(v.cells[v.y][min(v.x, v.width):], blank(v.width))
		for y := v.y + 1; y < v.height; y++ {
			v.cells[y] = blank(v.width)
		}
	case "m":
	case "h", "l":
		if !strings.Contains("?25 ?2026 ?2004", parameters) {
			v.problems = append(v.problems, fmt.Sprintf("an unknown mode: %q", all))
		}
	default:
		v.problems = append(v.problems, fmt.Sprintf("an unknown sequence: %q", all))
	}
}

// text is all that was shown, and the place of the cursor.
func (v *emulator) text() (text string, x, y int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	lines := append([]string(nil), v.gone...)
	y = len(lines) + v.y
	for _, line := range v.cells {
		lines = append(lines, strings.TrimRight(strings.Join(line, ""), " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n", v.x, y
}

// see waits until the text holds for what is shown, and returns it.
func (v *emulator) see(t *testing.T, holds func(text string) bool) string {
	t.Helper()
	for {
		v.mu.Lock()
		changed := v.changed
		v.mu.Unlock()
		text, _, _ := v.text()
		if holds(text) {
			return text
		}
		select {
		case <-changed:
		case <-testwait.Context(t).Done():
			t.Fatalf("this was never shown:\n%s", text)
		}
	}
}

// ends waits until what is shown ends with text.
func (v *emulator) ends(t *testing.T, text string) string {
	t.Helper()
	return v.see(t, func(shown string) bool { return strings.HasSuffix(shown, text) })
}

// shows waits until text is shown.
func (v *emulator) shows(t *testing.T, text string) string {
	t.Helper()
	return v.see(t, func(shown string) bool { return strings.Contains(shown, text) })
}

// types presses keys.
func (v *emulator) types(t *testing.T, keys string) {
	t.Helper()
	if _, err := v.master.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}
